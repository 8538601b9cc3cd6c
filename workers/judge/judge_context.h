/* judge_context - the resources that all trials of a judge use: the device, the memory shared with runner and
 * provider, and the judge's private memory. */
#ifndef REFTEST_WORKERS_JUDGE_JUDGE_CONTEXT_H
#define REFTEST_WORKERS_JUDGE_JUDGE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "dataset/verdict.h"
#include "kernels/core/kernels_library.h"
#include "workers/judge/judge_seconds.h"
#include "workers/judge/tensor_files.h"
#include "workers/protocol/shared_memory.h"

struct judge_context {
	const char *device_name; /* a name such as "cpu" or "cuda:0" */
	struct device *device;
	const struct kernels *kernels;
	struct tensors *tensors; /* for each blob file that was read: a cached list of its tensors and their digests;
				  * the judge frees the lists */
	struct shared_memory shared;	      /* the shared arena, which judge and runner map */
	struct shared_memory provider_memory; /* memory that judge and provider map; no reference can write to it */
	/* Memory that the judge shares with the process that runs a definition's code for inputs. No runner maps it. */
	struct shared_memory custom_memory;
	/* truth_memory[i]: memory that the judge shares with the runner of ground truth i, if ground truth i is Python
	 * source in the dataset */
	struct shared_memory truth_memory[GROUND_TRUTHS_MAX];
	int64_t runner;          /* the number of the runner that maps `shared`; 0: none */
	int64_t wish;            /* the size of the definition's largest case; a new shared arena has this size if there
				  * is enough memory */
	unsigned char *private;  /* device memory for private copies; reused from case to case */
	int64_t private_size;
	unsigned char *inputs;   /* the judge's own copy of a case's inputs, which is not part of `private`; NULL: the
				  * copy was freed */
	int64_t inputs_size;
	int64_t keep;            /* inputs larger than this are freed while a reference runs */
	struct op_constant recovered[OP_CONSTANTS]; /* constants that a probing case recovered from the definition's
						     * reference */
	int recovered_count;
	struct diagnosis diagnosis; /* the diagnosis of the failures of this definition so far */
	struct judge_seconds clock;
};

/* Frees the state of the last definition. The shared arena may be kept for a later runner
 * (workers/protocol/shared_memory.h). */
void judge_context_renew(struct judge_context *context);

/* Allocates at least `bytes` bytes (and at least one) for inputs. Returns NULL if there is not enough memory. */
unsigned char *judge_context_take_inputs(struct judge_context *context, int64_t bytes, struct err *err);
/* If the inputs are larger than `keep`, frees them and returns true. Freed inputs are filled again when they are
 * needed. */
bool judge_context_drop_inputs(struct judge_context *context);

enum judge_context_answer { CONTEXT_ERROR = -1, CONTEXT_NO_MEMORY = 0, CONTEXT_OK = 1 };

/* judge_context_reserve ensures that the shared arena has at least `arena` bytes, that private memory has at least
 * `private` bytes, and that `inputs` + `scratch` bytes are still free. Memory of earlier cases is reused. If the result
 * is CONTEXT_NO_MEMORY, it has set `need` and `available`. */
struct judge_context_need {
	int64_t arena, private, inputs, scratch;
	int64_t need, available; /* set by judge_context_reserve */
};
enum judge_context_answer judge_context_reserve(struct judge_context *context, struct judge_context_need *need,
						struct err *err);

#endif
