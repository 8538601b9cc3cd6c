/* batches - verifies changed definitions in batches: a batch is a set of definitions that is verified and reported
 * together, in one or more runs (engine/run.h).
 *
 * This module prints the events of its batches with watcher/watch_output.h and starts the command of --exec after each
 * batch. All batches share one pool of worker processes. The cases of a small batch run first: a definition that a user
 * has just saved then does not wait for the thousand cases of a `git checkout`. If the files of a definition change
 * again while its batch is running, the definition moves to a newer batch. Only the newest content is reported. */
#ifndef REFTEST_WATCHER_BATCHES_H
#define REFTEST_WATCHER_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/run.h"
#include "engine/summary_lru.h"
#include "watcher/autoupdate.h"
#include "watcher/exec.h"
#include "watcher/last_statuses.h"
#include "watcher/watch_output.h"
#include "workers/pool/pool.h"

/* A batch of at most BATCH_SMALL definitions is reported in detail, and its cases run before those of larger batches,
 * because a user waits for the result. */
enum { BATCH_SMALL = 16 };

struct batch;

struct batches {
	struct program *program;
	struct run_options options; /* the options of all runs, except `details`, `each` and `urgent`, which each batch
				     * sets for its runs */
	struct machine_policy machine;
	struct watch_output output;
	struct exec exec;
	struct last_statuses table;
	struct summary_lru summary_lru;
	struct autoupdate autoupdate;
	struct pool *pool;             /* NULL if no pool is open, for example because the last pool failed; then the
					* next batch tries to open a pool */
	bool warm;                     /* keep runners ready in the pool while no case runs */
	struct batch *first;           /* the list of batches, the oldest first */
	int64_t begun;                 /* the highest batch number so far */
	/* Before this module reads a file that has hard links, or whose folder is not always watched, it calls
	 * `follow`. */
	void (*follow)(const char *path, void *context);
	void *follow_context;
	struct digest context;         /* digest of everything on which the verdicts depend, except files */
	char store_error[2048];          /* the last reported reason why verdicts cannot be stored, which is not
					  * reported twice */
	char trouble[2048];            /* the last reported reason why no case can run, which is not reported twice */
};

double batch_clock(void); /* returns the time of the monotonic clock, in seconds */

/* Starts the processes of the pool, and keeps runners ready while no case runs. Without this call, the pool starts, and
 * imports torch, only when a case must run. */
void batches_warm(struct batches *session);

enum batch_flag {
	BATCH_PLAIN = 0,
	BATCH_OPEN = 1,	  /* later changes may be added to the batch until batches_seal */
	BATCH_FORCE = 2,  /* run every case, even if its stored verdict is valid */
	BATCH_REPEAT = 4, /* report unchanged results, too */
	BATCH_RECHECK = 8	  /* low priority; look up each case in the store, and do not use the summaries of
				   * definitions */
};

/* Starts a batch with the definitions at `paths`, or adds them to the open batch. `paths`: the definitions that may
 * have changed (sorted, without duplicates), or NULL for all definitions. `how`: flags of enum batch_flag. `noticed`:
 * the time at which the first change was detected. Returns -1 and sets `err` if the root cannot be read. */
int batches_begin(struct batches *session, const char *const *paths, int count, int how, double noticed,
		  struct err *err);
void batches_seal(struct batches *session);

/* Plans definitions for some milliseconds, that is, decides which of their cases must run. Returns true if definitions
 * are left to plan. */
bool batches_plan(struct batches *session);

/* Fetches finished cases from the pool and processes them. */
void batches_dispatch(struct batches *session);

/* Reports and ends each batch whose results are all final. Returns true if there was such a batch. */
bool batches_finish(struct batches *session);

/* Updates the generated pytest files if a check is due and no batch is running. (Each batch updates these files when it
 * ends.) */
void batches_update_tests(struct batches *session);

int batches_under_way(const struct batches *session); /* returns the number of running batches that are not open */
bool batches_planned(const struct batches *session);  /* returns whether every batch is planned */

struct progress {
	int definitions, waiting; /* the number of definitions in running batches, and how many of them are not verified
				   * yet */
	const char *name;         /* a definition that is not verified yet; NULL: all are verified. `name` is valid
				   * until the next call of batches_dispatch. */
};
struct progress batches_progress(const struct batches *session);

/* Cancels all batches. Stores the verdicts of the cases that have finished. */
void batches_abandon(struct batches *session);
void batches_close(struct batches *session);

#endif
