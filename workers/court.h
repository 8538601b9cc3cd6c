/* court - what all trials of one judge use: the device, the memory shared with the runner, and private memory. */
#ifndef REFTEST_WORKERS_COURT_H
#define REFTEST_WORKERS_COURT_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/library.h"
#include "workers/shared.h"
#include "workers/tensors.h"

struct court {
	const char *device_name; /* "cpu", "cuda:0" */
	struct device *device;
	const struct kernels *kernels;
	struct tensors *tensors; /* owned by the judge: what is known of files of tensors */
	struct shared shared;    /* with the runner's child */
	struct shared stand;     /* with the provider, which must not see what a reference can write to */
	int64_t wish;            /* bytes of the largest case of this definition, so that the arena is made once */
	unsigned char *private;  /* device memory for the private copies; reused from case to case */
	int64_t private_size;
	unsigned char *inputs;   /* the judge's own of a case's inputs, beside the private ones; NULL: given back */
	int64_t inputs_size;
	int64_t keep;            /* more bytes of inputs than these are given back while a reference runs */
	struct op_constant recovered[OP_CONSTANTS]; /* constants that probing this definition's reference has shown */
	int recovered_count;
};

/* Forgets what belonged to the last definition; gives memory back. */
void court_renew(struct court *court);

/* Memory for so many bytes of inputs, at least one. NULL: there is none. */
unsigned char *court_take_inputs(struct court *court, int64_t bytes, struct err *err);
/* Gives it back if it is more than is kept: the inputs are made again when they are wanted. True: it was. */
bool court_drop_inputs(struct court *court);

enum court_answer { COURT_ERROR = -1, COURT_NO_MEMORY = 0, COURT_OK = 1 };

/* Sees to it that the arena has `arena` bytes, private memory `private` bytes, and that `inputs` and `scratch` bytes are
 * left beside them. What earlier cases took serves again. NO_MEMORY: `need` and `available` are the two figures. */
struct court_need {
	int64_t arena, private, inputs, scratch;
	int64_t need, available; /* set by court_reserve */
};
enum court_answer court_reserve(struct court *court, struct court_need *need, struct err *err);

#endif
