/* run - verifies the selected definitions. It looks up stored verdicts, runs the cases that have none, and stores new
 * verdicts.
 *
 * `verify`, `status` and `explain` use the same code, but `status` and `explain` run no case. Results are in the order
 * of the definitions' paths. If the files of a definition, the device, the versions and the options are unchanged, the
 * run reports the definition's stored summary. Otherwise the definition is parsed, and a stored verdict is looked up
 * for each case. A case runs if no stored verdict counts for it (engine/rerun_reason.h). If a file of a definition
 * changes while its cases run, their verdicts are not stored.
 *
 * run.c contains the loop over the definitions. run_to_end is the loop of `verify`; `watch` calls the same steps
 * (run_begin, run_visit, run_end) from its own loop. engine/definition_files.h processes the files of a definition,
 * engine/definition_status.h decides which verdicts count, engine/save_verdicts.h stores them, and engine/selection.h
 * selects definitions by name. run_open.c has run_open* and run_close, which open and close what a run uses, except the
 * worker processes. engine/run_pools.h starts those when they are first needed. */
#ifndef REFTEST_ENGINE_RUN_H
#define REFTEST_ENGINE_RUN_H

#include "engine/run_state.h"

/* Opens the dataset, the cache and the machine policy (engine/accepted_machines.h). Returns 0 on success. Otherwise
 * sets `err` and returns an exit status: EXIT_USAGE if the user named a root or a device that does not exist, and
 * EXIT_INTERNAL for any other error. */
int run_open(struct run *run, struct program *program, const struct run_options *options, struct err *err);

/* Selects definitions by name and by op_type. A name is "rmsnorm_h4096", "rmsnorm/rmsnorm_h4096", a path to the file,
 * or a pattern with * or ?. Without names and op_types, selects all definitions. If a name matches no definition,
 * returns -1 and sets `err` to a message that suggests the most similar name. */
int run_select(struct run *run, const char *const *names, int name_count, const char *const *op_types,
	       int op_type_count, struct err *err);

/* Does the whole run. Returns 0, even if a signal interrupted the run. Returns -1 and sets `err` on an internal
 * error. */
int run_to_end(struct run *run, struct err *err);

double run_seconds(const struct run *run); /* seconds since the start of the run */

void run_close(struct run *run);

/* ---- the steps of a run, for a caller with its own event loop and its own pool (`watch`) ---------------------- */

/* Opens a run over the definitions at `paths`, and does not scan the rest of the dataset (dataset_some). If `paths` is
 * NULL, opens a run over all definitions. The root, the kernels library and the store of `program` must be open.
 * `machine` and `options` must outlive the run. */
int run_open_some(struct run *run, struct program *program, const struct run_options *options,
		  const struct machine_policy *machine, const char *const *paths, int count, struct err *err);

/* Opens a run over all definitions of `parts->dataset`, for unit tests. The run uses the files, the store and the
 * runner in `parts`, which must outlive the run. The dataset may have no directory descriptor (fd -1). */
struct run_parts {
	const struct machine_policy *machine;
	const struct dataset *dataset;
	struct run_files files;
	struct run_store records;
	struct runner runner;
};
int run_open_parts(struct run *run, struct program *program, const struct run_options *options,
		   const struct run_parts *parts, struct err *err);

/* Makes the run execute its cases on `runner`, which the run does not close. If `runner` is empty, the run opens its
 * own pool. If several runs use the same `equal_cases`, cases that are equal in these runs are executed only once, and
 * the runs must be closed together. If `equal_cases` is NULL, the run does not share cases with other runs. */
void run_lend(struct run *run, struct runner runner, struct equal_cases *equal_cases);

int run_begin(struct run *run, struct err *err);
bool run_visit(struct run *run);      /* plans the next definition; returns false if all definitions are planned */
bool run_done(const struct run *run); /* returns whether every result is final */
void run_end(struct run *run);	      /* stores the remaining verdicts, summaries and file digests */

/* Fetches the results of finished cases from the runner, and passes each result to the run that submitted the case. */
void run_take_answers(struct runner runner);

/* Call this when the pool has failed. Skips all cases that wait for the pool, and gives `why` as the reason. */
void run_give_up(struct run *run, const char *why);

/* Call this when a file of the definition at `path` has changed. Cancels the cases that verify the old content. These
 * cases get no result. If an equal case of another definition waits for a cancelled case, the waiting case runs.
 * Returns true if the result of the definition was not final yet. */
bool run_drop(struct run *run, const char *path);

#endif
