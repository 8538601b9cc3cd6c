/* loop - the main loop of `reftest watch`, which keeps verdicts up to date while files change. */
#ifndef REFTEST_WATCHER_LOOP_H
#define REFTEST_WATCHER_LOOP_H

#include <stdbool.h>

#include "base/err.h"
#include "engine/run_state.h"

struct watch_options {
	struct run_options run; /* `interactive`, `spares` and `watcher` are set by watch_run */
	const char *command;
	bool json, once, poll;
	int spares, watches;
};

/* Runs until the user ends the watcher or, if `once` is set, until every definition has a verdict. Returns the exit
 * status, and sets `err` if the watcher cannot start. The function does not return if the rebuilt program replaces this
 * process (watcher/rebuild.h). */
int watch_run(struct program *program, const struct watch_options *options, struct err *err);

#endif
