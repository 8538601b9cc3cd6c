/* batches - sets of changed definitions on their way to their verdicts, each one a pass (commands/pass.h) of its own.
 *
 * Several may be under way, sharing one pool: a save does not wait behind the thousand cases of a checkout. A definition
 * is in one of them at most: what changes again is dropped from the older batch, and only its newest text is told. */
#ifndef REFTEST_COMMANDS_BATCHES_H
#define REFTEST_COMMANDS_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "commands/hook.h"
#include "commands/upkeep.h"
#include "commands/pass.h"
#include "commands/recall.h"
#include "commands/roll.h"
#include "commands/watch_tell.h"
#include "workers/pool.h"

/* A batch no larger is told in every detail, and goes before what waits in the pool: somebody is looking. */
enum { BATCH_SMALL = 16 };

struct batch;

struct batches {
	struct reftest *reftest;
	struct pass_options options;   /* of every pass; details, each and urgent are a batch's own */
	struct machine_policy machine;
	struct watch_teller teller;
	struct hook hook;
	struct roll roll;
	struct recall recall;
	struct upkeep upkeep;
	struct pool *pool;             /* NULL: nothing can run, or it broke; then the next batch tries again */
	bool warm;                     /* the pool is to be kept warm */
	struct batch *first;           /* oldest first */
	int64_t begun;                 /* batches so far */
	/* Called for each blob that lies where the watcher does not look by itself, before it is read. */
	void (*follow)(const char *path, void *context);
	void *follow_context;
	struct digest context;         /* of the passes: what a verdict depends on beside its files */
	char complaint[2048];          /* the last sentence why verdicts could not be kept: told once */
	char trouble[2048];            /* and why nothing could run */
};

double batch_clock(void); /* seconds, monotonic */

/* From here on the pool is kept warm, if anything can run at all. Before, it starts when something has to run: at the
 * start of a watch in which nothing does, importing torch would only be in the way. */
void batches_warm(struct batches *batches);

enum batch_how {
	BATCH_PLAIN = 0,
	BATCH_OPEN = 1,   /* more belongs to it, until batches_seal */
	BATCH_FORCE = 2,  /* everything of it runs, whatever is stored */
	BATCH_REPEAT = 4, /* what is no news is told, too */
	BATCH_AGAIN = 8   /* what summaries have answered is looked at case by case, while nobody waits for it */
};

/* The definitions at these paths (sorted, each once) may have changed; NULL: everything may have. `noticed`: when the
 * first of it was heard of. `how`: of enum batch_how. -1: the root cannot be read now. */
int batches_begin(struct batches *batches, const char *const *paths, int count, int how, double noticed,
                  struct err *err);
void batches_seal(struct batches *batches);

/* Plans for some milliseconds. true: there is more to plan. */
bool batches_plan(struct batches *batches);

/* Takes what the pool has to say. */
void batches_dispatch(struct batches *batches);

/* Tells and ends the batches that are done. true: there was one. */
bool batches_finish(struct batches *batches);

/* Looks after the generated pytest files, if there is a reason to and no batch is under way that would. */
void batches_keep(struct batches *batches);

int batches_under_way(const struct batches *batches); /* those that are whole, and that somebody waits for */
bool batches_planned(const struct batches *batches); /* is all planned that has begun? */

struct progress {
	int definitions, waiting; /* in the batches under way, and those of them that wait for the pool */
	const char *name;         /* of one that waits; NULL: none does. Valid until something is dispatched */
};
struct progress batches_progress(const struct batches *batches);

/* Everything under way is given up; what had its verdict is kept. */
void batches_abandon(struct batches *batches);
void batches_close(struct batches *batches);

#endif
