/* workshop - the checkout that this program was built in: when its kernels/ change, make is run, and when that made
 * another program or library, watch is to begin anew with it.
 *
 * A program and its libraries are of one build, and digests of sources stand in both; to load a new library into an old
 * program would have the old judge make verdicts in the name of the new one. So watch starts its new self instead, in the
 * same process: what is verified comes from the cache, and only the cases of the op family that changed run again. */
#ifndef REFTEST_COMMANDS_WORKSHOP_H
#define REFTEST_COMMANDS_WORKSHOP_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "watcher/watcher.h"
#include "workers/process.h"

enum { WORKSHOP_PRODUCTS = 3 };

struct workshop {
	struct watcher *watcher; /* NULL: this program lies in no checkout's build/ */
	struct process make;
	int said;                /* descriptor of what make says; -1 */
	bool wanted;             /* something changed while make was running */
	char folder[4096];
	struct stat before[WORKSHOP_PRODUCTS]; /* of what make makes; zeros: not there */
};

void workshop_open(struct workshop *workshop);
void workshop_close(struct workshop *workshop);

int workshop_fd(const struct workshop *workshop);      /* of the watcher; -1 */
int workshop_make_fd(const struct workshop *workshop); /* readable once make has ended; -1 */
int64_t workshop_deadline(const struct workshop *workshop);

enum workshop_news {
	WORKSHOP_NOTHING,
	WORKSHOP_MAKING, /* make has begun */
	WORKSHOP_FAILED, /* `err` has the end of what it said */
	WORKSHOP_SAME,   /* it had nothing to make */
	WORKSHOP_NEW     /* begin anew */
};
enum workshop_news workshop_turn(struct workshop *workshop, int64_t now_ms, struct err *err);

#endif
