/* recall - what a watcher remembers of contents that stood in the files before: of which definition's contents which
 * summary was true. A `git checkout` that brings them back is then answered without parsing anything.
 *
 * Only in memory, and of the newest RECALL_MOST at least and twice as many at most; what is forgotten is planned as if
 * it had never been seen. Pure: no disk, no clock. */
#ifndef REFTEST_COMMANDS_RECALL_H
#define REFTEST_COMMANDS_RECALL_H

#include "cache/store.h"

enum { RECALL_MOST = 16384 };

struct recall_entry;

struct recall {				  /* {0} is empty */
	struct recall_entry *young, *old; /* tables of RECALL_SLOTS; NULL: empty */
	int count;			  /* of the young one */
};

/* `summary->inputs` are the contents, and `summary->context` is what else it depends on. */
void recall_keep(struct recall *recall, const char *path, const struct summary *summary);
/* NULL: nothing is known. Valid until the next recall_keep. */
const struct summary *recall_find(const struct recall *recall, const char *path, const struct digest *context,
				  const struct digest *inputs);
void recall_free(struct recall *recall);

#endif
