/* loop - the main loop of `reftest watch`, which keeps verdicts up to date while files change. */
#ifndef REFTEST_WATCHER_LOOP_H
#define REFTEST_WATCHER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/cases.h"
#include "engine/program.h"

struct watch_options {
	const char *root, *repos, *device, *python, *sizes, *ground_truth, *command, *required, *accept, *isolation;
	bool no_workloads, json, once, poll;
	int jobs, spares, watches;
	double timeout;
	uint64_t seed;
	int64_t memory;
	struct case_options cases; /* the tolerances; the other members are set by watch_run */
};

/* Runs until the user ends the watcher or, if `once` is set, until every definition has a verdict. Returns the exit
 * status, and sets `err` if the watcher cannot start. The function does not return if the rebuilt program replaces this
 * process (watcher/rebuild.h). */
int watch_run(struct program *program, const struct watch_options *options, struct err *err);

#endif
