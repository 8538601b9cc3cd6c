/* debounce - decides which file changes the watcher puts into one batch: all changes of one git command, or all changes
 * of a burst.
 *
 * A git command is detected by git's lock file. Other programs that write many files (cp -r, rsync, sed -i) have no
 * lock file. Their changes are recognized as a burst because they follow each other quickly. A change starts a burst if
 * both of these conditions are met:
 * - The change comes at most DEBOUNCE_MS after earlier changes or after the end of a batch.
 * - At least BURST_NAMES definitions change together, or at least BURST_BATCHES batches are running.
 *
 * A single save starts a burst only if many batches are running.
 *
 * The first changes of a git command or a burst are put into a batch without delay. Later changes are collected for
 * DEBOUNCE_MS and then added to the open batch together. Adding changes one by one would take longer, because each
 * addition needs a transaction of the store, and a transaction takes as long as the work on ten files. The caller
 * passes the current time to the functions. The only system calls of this module are those that check git's lock. */
#ifndef REFTEST_WATCHER_DEBOUNCE_H
#define REFTEST_WATCHER_DEBOUNCE_H

#include <stdbool.h>
#include <stdint.h>

#include "git/index_lock.h"

enum {
	DEBOUNCE_MS = 20,
	DEBOUNCE_LONGEST_MS = 5000, /* the longest time that one batch stays open */
	BURST_NAMES = 4,	    /* the number of definitions that must change together to start a burst */
	BURST_BATCHES = 4,	    /* if at least this many batches are running, any change may start a burst */
	BURST_REST_MS = 50	    /* a burst ends after this time without changes */
};

struct debounce { /* to initialise it, set it to {0} and call git_lock_find for `lock` */
	struct git_lock lock;
	int64_t held_ms;  /* the time at which git's lock was first seen; 0: there is no lock */
	int64_t burst_ms; /* the time at which the burst started; 0: there is no burst */
	int64_t taken_ms; /* the time at which changes were last put into a batch */
	int64_t done_ms;  /* the time at which the last batch ended */
	bool held;	  /* git holds its lock, and has held it for less than DEBOUNCE_LONGEST_MS */
	bool seal;	  /* close the open batch once all events queued so far have been read */
};

/* Checks git's lock. */
void debounce_check_lock(struct debounce *debounce, int64_t now_ms);
/* Ends a burst. Call this if a client waits for an answer. */
void debounce_end_burst(struct debounce *debounce);
/* Returns whether new changes must be collected for some time before they are put into a batch. */
bool debounce_defers(const struct debounce *debounce, int64_t now_ms);
/* Call this before changes are put into a batch. `names` is the number of changed definitions, and `under_way` is the
 * number of running batches. Returns true if the changes must be put into an open batch. */
bool debounce_take(struct debounce *debounce, int64_t now_ms, int names, int under_way);
/* Call this if there are no new changes. Ends a burst if no changes have arrived for BURST_REST_MS. */
void debounce_rest(struct debounce *debounce, int64_t now_ms);
/* If the open batch must be closed to further changes, returns true, but only once. */
bool debounce_seals(struct debounce *debounce);
/* Returns the time at which the burst ends if no change arrives, or INT64_MAX if there is no burst. */
int64_t debounce_deadline(const struct debounce *debounce);

#endif
