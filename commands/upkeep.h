/* upkeep - the generated pytest files under a running watcher: brought up to date after each batch, and when one of them was
 * touched. Where none were generated, nothing is done. */
#ifndef REFTEST_COMMANDS_UPKEEP_H
#define REFTEST_COMMANDS_UPKEEP_H

#include <stdbool.h>

#include "base/hash.h"
#include "commands/watch_tell.h"
#include "dataset/dataset.h"
#include "reftest.h"

struct upkeep {           /* {0}: never looked */
	bool doubted;       /* one of them was touched since the last look */
	bool there;         /* files had been generated when they were last looked at */
	bool failed;        /* they could not be made true, or something had to be said of them */
	int untold;         /* files replaced or removed that no batch has told of yet */
	struct digest said; /* over the sentences of the last look: the same are told once */
};

/* A path that changed, relative to the root. true: it is one of theirs, or a folder they may lie in. */
bool upkeep_heard(struct upkeep *upkeep, const char *path);

/* Makes them true, by `dataset` (NULL: by a walk of its own). What is wrong is told; files that were replaced or removed are
 * counted in `untold`. */
void upkeep_update(struct upkeep *upkeep, struct reftest *reftest, const struct dataset *dataset,
                   const struct watch_teller *teller);

/* How many were replaced or removed since the last time that this was asked: for the batch that tells it. What is done
 * between batches (a file that was deleted, an edit that is seen here before its batch begins) belongs to the next one. */
int upkeep_written(struct upkeep *upkeep);

/* Must they be looked at (again)? */
bool upkeep_is_due(const struct upkeep *upkeep, const char *root);

#endif
