/* trial - judges one case: fills its inputs, requests the runs from the runner, checks the shared arena after each run,
 * obtains the ground truth, and gives the verdict.
 *
 * The judge keeps private copies of all data on which the verdict depends: the inputs that it filled, the outputs of
 * the first run, and the ground truth. The reference can write to the shared arena, so the judge only compares the
 * content of the arena with these copies.
 *
 * If you add a value to enum status, look at every file that sets the status of a case, because some of them may have
 * to set the new value. In the judge, these are the files that call trial_decide, and case_inputs.c, which returns a
 * status in a struct rejection. Outside the judge, workers/pool/lane.c and pool.c set a status. */
#ifndef REFTEST_WORKERS_JUDGE_TRIAL_H
#define REFTEST_WORKERS_JUDGE_TRIAL_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "workers/judge/judge_context.h"

struct trial; /* an opaque type */

enum trial_answer {
	TRIAL_MAKE,    /* `out` has the message to the process that makes inputs: call the definition's code */
	TRIAL_STORE,   /* `out` has the message to the process that makes inputs: store the inputs that the code made */
	TRIAL_RUN,     /* `out` has the message to the runner */
	TRIAL_PROVIDE, /* `out` has the message to the provider */
	TRIAL_VERDICT  /* `out` has the verdict as JSON, and the trial has ended */
};

/* Creates a trial for `json`, a job (workers/protocol/job.h); trial_close frees it. */
struct trial *trial_open(struct judge_context *context, const cJSON *json);
enum trial_answer trial_begin(struct trial *trial, struct buf *out);

/* trial_made handles {"made": …}, the answer to a TRIAL_MAKE. trial_stored handles {"stored": true}, the answer to a
 * TRIAL_STORE. */
enum trial_answer trial_made(struct trial *trial, const cJSON *message, struct buf *out);
enum trial_answer trial_stored(struct trial *trial, struct buf *out);

/* Handles the runner's answer {"ran": …}. */
enum trial_answer trial_ran(struct trial *trial, const cJSON *ran, struct buf *out);

/* Handles the provider's answer, or the failure that the pool reports instead. */
enum trial_answer trial_provided(struct trial *trial, const cJSON *message, struct buf *out);

/* While the runner works on a run, compares the outputs of the previous run with the ground truth, and computes the
 * ground truth for this run. If the inputs were freed because of their size, does neither; both then happen after the
 * runner's answer. */
void trial_think(struct trial *trial);

/* Turns a failure of the runner, {"reason", "message", "line", "loading", "raised", "certain"}, into a verdict. May be
 * called at any time after trial_open. */
void trial_blame(struct trial *trial, const cJSON *blame, struct buf *out);

void trial_close(struct trial *trial);

/* Returns the memory that has the tensors for the trial's last message. */
struct shared_memory *trial_stage_memory(struct trial *trial);

#endif
