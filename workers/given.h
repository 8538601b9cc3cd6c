/* given - the inputs of a case as the judge makes them: by the family's rules, or from the blobs that a workload names.
 * What can be wrong with them is a ruling on the case, not an error of the judge. */
#ifndef REFTEST_WORKERS_GIVEN_H
#define REFTEST_WORKERS_GIVEN_H

#include "base/arena.h"
#include "dataset/verdict.h"
#include "dataset/workload.h"
#include "kernels/device.h"
#include "workers/job.h"
#include "workers/tensors.h"

struct ruling {
	enum status status;
	enum reason reason;
	struct err why; /* a sentence */
};

/* The value of a Python-scalar input: the workload's, the family's, or, where neither says, 1.0 for floats and 0. */
struct input_source given_scalar(const struct job *job, const struct op *op, const struct op_case *c, int input);

/* Fills every tensor of `in` that has data (device memory of the right size), unless the family finds no sense in the
 * axes (op.check, with nothing at hand). What the job has from files is of the contents that it says, or the ruling is
 * `changed`. `op` NULL: generic values. 0; or -1 with the ruling. */
int given_fill(struct device *device, struct tensors *tensors, const struct job *job, const struct op *op,
               const struct op_case *c, struct tensor *in, struct ruling *ruling);

/* The inputs that the case leaves out: bit i for input i, as op_case.absent has it. */
uint32_t given_absent(const struct job *job);

/* The inputs that the workload brings, as tensors or as numbers: bit i for input i, as op_case.given has it. */
uint32_t given_inputs(const struct job *job);

/* Do the constraints hold that speak of tensor contents, and does the family find sense in what the workload brings
 * (op.check)? 0; or -1 with the ruling. Needs filled inputs. */
int given_check(struct device *device, const struct job *job, const struct op *op, const struct op_case *c,
                const struct tensor *in, struct arena *arena, struct ruling *ruling);

#endif
