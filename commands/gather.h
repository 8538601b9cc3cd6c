/* gather - which changes belong together: those of a git that is at work, and those of a rush.
 *
 * Git holds its lock while it writes. Other bulk writers (cp -r, rsync, sed -i, a program that rewrites many files)
 * announce nothing: a rush is on once several definitions at a time come so soon after those before that nobody can
 * have looked at a verdict in between, or once so many batches are under way that one more would only wait behind them.
 * What comes first is taken at once, and a single save is never in a rush; what follows is taken in parts of one open
 * batch, each gathered for GATHER_MS, for a part costs as much as some ten files, and a transaction. Pure but for the
 * look at git's lock: the time is given. */
#ifndef REFTEST_COMMANDS_GATHER_H
#define REFTEST_COMMANDS_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "commands/git_lock.h"

enum {
	GATHER_MS = 20,
	GATHER_LONGEST_MS = 5000, /* so long may one batch be open */
	RUSH_NAMES = 4,		  /* definitions at a time */
	RUSH_BATCHES = 4,	  /* batches under way */
	RUSH_REST_MS = 50	  /* after so long without another it is over */
};

struct gather { /* {0}, and git_lock_find */
	struct git_lock lock;
	int64_t held_ms;  /* since when git's lock has been seen; 0: it is not there */
	int64_t rush_ms;  /* since when there has been a rush; 0: there is none */
	int64_t taken_ms; /* when changes were last taken */
	int64_t done_ms;  /* when the work on a batch last ended */
	bool held;	  /* git is at work */
	bool seal;	  /* the batch that is open is whole, once what is in the queue has been taken */
};

/* Looks at git's lock. */
void gather_look(struct gather *gather, int64_t now_ms);
/* Somebody waits for an answer: a rush is over. */
void gather_hurry(struct gather *gather);
/* Is what has come to be kept for the next part? */
bool gather_keeps(const struct gather *gather, int64_t now_ms);
/* Changes are taken: `names` definitions, while so many batches are under way. true: they belong to an open batch. */
bool gather_take(struct gather *gather, int64_t now_ms, int names, int under_way);
/* Nothing was to be taken. */
void gather_rest(struct gather *gather, int64_t now_ms);
/* true, once: the batch that is open is whole. */
bool gather_seals(struct gather *gather);
/* When it has something to do at the latest; INT64_MAX: never. */
int64_t gather_deadline(const struct gather *gather);

#endif
