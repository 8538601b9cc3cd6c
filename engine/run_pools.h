/* run_pools - the worker processes of a run. There is a pool for each device, with as many lanes (a judge and its
 * runner) as fit on the device. */
#ifndef REFTEST_ENGINE_RUN_POOLS_H
#define REFTEST_ENGINE_RUN_POOLS_H

#include "engine/run_state.h"

/* Returns the number of references that run in parallel: the value of --jobs, or a default for the machine
 * (engine/job_count.h). */
int run_lanes(const struct run_options *options, const struct machine_policy *machine);

/* Creates a pool of worker processes with these options. Returns NULL and sets `err` on error. */
struct pool *run_open_pool(struct program *program, const struct run_options *options,
			   const struct machine_policy *machine, struct err *err);

/* Opens the run's own runner, unless the run already has a runner. Returns -1 and sets `err` on error. */
int run_need_runner(struct run *run, struct err *err);

/* Closes the run's own runner. A runner that was lent stays open. */
void run_close_runner(struct run *run);

#endif
