/* content - what a run's files hold, by digest: believed from an earlier look while a file's stat stands still, read
 * anew otherwise. The looks of this run are gathered and written back in one transaction. */
#ifndef REFTEST_COMMANDS_CONTENT_H
#define REFTEST_COMMANDS_CONTENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cache/store.h"
#include "commands/cases.h"
#include "dataset/dataset.h"

struct contents; /* opaque */

/* Reads the table of files. `store` may be NULL: then every file is read. Lives in `arena`. Of a dataset of only some
 * definitions (dataset_some) only their rows are read, and their files whatever their stat says: who names them has
 * heard that they changed. */
struct contents *contents_open(struct store *store, const struct dataset *dataset, struct arena *arena, struct err *err);

/* What the table holds of a definition of the dataset (its content may be out of date); NULL: it was never seen. */
const struct file_entry *contents_entry(const struct contents *contents, const struct dataset_file *definition);

/* The digest of a dataset file. Believed, or read: then `bytes` gets what was hashed (`bytes->length` 0 and `*read`
 * false otherwise). `need_bytes`: read in any case. -1 with a sentence: it cannot be read (it vanished, too large). */
struct look {
	struct file_seen seen;
	bool read;   /* bytes were read in this run */
	bool absent; /* it is not there any more: that is why the look failed */
};
int contents_look(struct contents *contents, const struct dataset_file *file, size_t limit, bool need_bytes,
                  struct buf *bytes, struct look *out, struct err *err);

/* A blob below the root: hashed as a whole, or believed. Never fails: what is wrong is in the blob. */
struct blob contents_blob(struct contents *contents, const char *path, struct arena *arena);

/* Does the file at `path` still hold this content? Reads it unless its stat proves it. */
bool contents_unchanged(struct contents *contents, const char *path, const struct digest *content);

/* Notes an entry to be written back by contents_write (copied), if it says something new. */
void contents_note(struct contents *contents, const struct file_entry *entry);
int contents_write(struct contents *contents, struct err *err);

#endif
