/* trial - one case before the judge: its inputs, the two runs that the runner is asked for, what is found in the arena
 * after each, the ground truth, and the verdict.
 *
 * The judge keeps a private copy of everything that decides: the inputs as they were made, the outputs as they were
 * found after the first run, the ground truth. The arena is only ever compared with it. */
#ifndef REFTEST_WORKERS_TRIAL_H
#define REFTEST_WORKERS_TRIAL_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "workers/court.h"

struct trial; /* opaque */

enum trial_answer {
	TRIAL_RUN,     /* `out` has the message to the runner */
	TRIAL_PROVIDE, /* `out` has the message to the provider */
	TRIAL_VERDICT  /* `out` has the verdict's JSON; the trial is over */
};

/* Begins; trial_close frees. `json` is a job. */
struct trial *trial_open(struct court *court, const cJSON *json);
enum trial_answer trial_begin(struct trial *trial, struct buf *out);

/* The runner has answered {"ran": …}. */
enum trial_answer trial_ran(struct trial *trial, const cJSON *ran, struct buf *out);

/* The provider has answered, or somebody answers for it that it failed. */
enum trial_answer trial_provided(struct trial *trial, const cJSON *message, struct buf *out);

/* While the runner works on its second run: ground truth and comparison of the first. Put off until the runner has
 * answered where the inputs are so large that their memory was given back. */
void trial_think(struct trial *trial);

/* The runner failed: {"reason", "message", "line", "loading"}. Always a verdict; may come at any time after trial_open.
 */
void trial_blame(struct trial *trial, const cJSON *blame, struct buf *out);

void trial_close(struct trial *trial);

#endif
