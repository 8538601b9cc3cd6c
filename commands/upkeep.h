/* upkeep - the generated pytest files under a running watcher: brought up to date after each batch, and when one of them was
 * touched. Where none were generated, nothing is done.
 *
 * Our own writing is heard of like anybody's, and a look costs as much as all classes of a file while one of its definitions was
 * saved just now, for then no stat is believed. So who touches a file is looked at UPKEEP_REST_MS later: what is saved in quick
 * succession costs one more look and not one a save, and that look may believe stats and note what it saw. */
#ifndef REFTEST_COMMANDS_UPKEEP_H
#define REFTEST_COMMANDS_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "commands/watch_tell.h"
#include "dataset/dataset.h"
#include "reftest.h"

enum { UPKEEP_REST_MS = 150 }; /* a stat is believed after 100 (commands/renewal.c) */

struct upkeep {           /* {0}: never looked */
	int64_t due_ms;     /* one of them was touched since the last look: when to look; 0: none was */
	bool there;         /* files had been generated when they were last looked at */
	bool failed;        /* they could not be made true, or something had to be said of them */
	int untold;         /* files replaced or removed that no batch has told of yet */
	struct digest said; /* over the sentences of the last look: the same are told once */
};

/* A path that changed, relative to the root. true: it is one of theirs, or a folder they may lie in. */
bool upkeep_heard(struct upkeep *upkeep, const char *path, int64_t now_ms);

/* When one that was touched is to be looked at; INT64_MAX: none was. */
int64_t upkeep_deadline(const struct upkeep *upkeep);

/* Makes them true, by `dataset` (NULL: by a walk of its own). What is wrong is told; files that were replaced or removed are
 * counted in `untold`. */
void upkeep_update(struct upkeep *upkeep, struct reftest *reftest, const struct dataset *dataset,
                   const struct watch_teller *teller);

/* How many were replaced or removed since the last time that this was asked: for the batch that tells it. What is done
 * between batches (a file that was deleted, an edit that is seen here before its batch begins) belongs to the next one. */
int upkeep_written(struct upkeep *upkeep);

/* Is there a reason to look at them (again), now or at the deadline? */
bool upkeep_is_due(const struct upkeep *upkeep, const char *root);

#endif
