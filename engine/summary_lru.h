/* summary_lru - keeps the results of definitions (struct summary) in the memory of a watcher, including results for
 * earlier contents of their files. If `git checkout` restores earlier contents of a definition's files, the result
 * comes from the kept summary, and no file is parsed.
 *
 * Keeps at most 2 * SUMMARY_LRU_MOST summaries, and always at least the newest SUMMARY_LRU_MOST. If the summary of a
 * definition was discarded, the definition is parsed, and its cases are looked up in the store. */
#ifndef REFTEST_ENGINE_SUMMARY_LRU_H
#define REFTEST_ENGINE_SUMMARY_LRU_H

#include "cache/store.h"

enum { SUMMARY_LRU_MOST = 16384 };

struct summary_lru_entry;

struct summary_lru {			       /* {0} is empty */
	struct summary_lru_entry *young, *old; /* tables with SUMMARY_LRU_SLOTS slots each; NULL: empty */
	int count;			       /* the number of entries in `young` */
};

/* Stores a summary. `summary->inputs` is the digest of the file contents. `summary->context` is the digest of
 * everything else that the summary depends on. */
void summary_lru_store(struct summary_lru *summary_lru, const char *path, const struct summary *summary);
/* Returns the summary of the definition at `path` for the contents `inputs`, or NULL if this summary is not kept. The
 * pointer is valid until the next summary_lru_store. */
const struct summary *summary_lru_find(const struct summary_lru *summary_lru, const char *path,
				       const struct digest *context, const struct digest *inputs);
void summary_lru_free(struct summary_lru *summary_lru);

#endif
