/* loop - the main loop of `reftest watch`, which keeps verdicts up to date while files change. */
#ifndef REFTEST_WATCHER_LOOP_H
#define REFTEST_WATCHER_LOOP_H

#include <stdbool.h>

#include "base/err.h"
#include "engine/run_state.h"

struct watch_options {
	struct run_options run; /* the options of the runs; watch_run sets `interactive`, `spares` and `watcher` in
				 * them */
	const char *command;
	bool json, once, poll;
	int spares, watches;
};

/* Runs until the user ends the watcher or, if `once` is set, until every definition has a verdict. Returns the exit
 * status, and sets `err` if the watcher cannot start. Does not return if this process is replaced by a newly built
 * program (watcher/rebuild.h). */
int watch_run(struct program *program, const struct watch_options *options, struct err *err);

#endif
