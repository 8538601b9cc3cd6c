/* seen - the table of files: one row a path, read in one pass. What a row means is told in cache/store.h. */
#ifndef REFTEST_CACHE_SEEN_H
#define REFTEST_CACHE_SEEN_H

#include "cache/env.h"
#include "cache/store.h"

/* store_each_file and store_files, with `damaged` counting the rows that were passed over. */
int seen_each(struct env *env, const char *prefix, store_visit *visit, void *context, int64_t *damaged,
              struct err *err);
int seen_read(struct env *env, const char *prefix, struct arena *arena, const struct file_entry **out, int64_t *damaged,
              struct err *err);

/* store_put_files. */
int seen_write(struct env *env, const struct file_entry *entries, int count, const char *const *removed,
               int removed_count, struct err *err);

#endif
