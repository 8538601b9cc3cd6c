/* case_inputs - fills the inputs of a case and checks them. An input has one of three sources: reftest generates it,
 * the definition's own code has made it, or the workload provides it as a number or as a tensor in a blob file. Invalid
 * inputs are not an error of the judge. For invalid inputs, the functions return a rejection, which has the status and
 * the reason of the case. */
#ifndef REFTEST_WORKERS_JUDGE_CASE_INPUTS_H
#define REFTEST_WORKERS_JUDGE_CASE_INPUTS_H

#include "base/arena.h"
#include "dataset/verdict.h"
#include "dataset/workload.h"
#include "kernels/core/device.h"
#include "workers/judge/tensor_files.h"
#include "workers/protocol/job.h"

struct rejection {
	enum status status;
	enum reason reason;
	struct err why; /* the message about the inputs */
};

/* Returns the value that is passed to the reference for an input that is a Python scalar. The value comes from the
 * workload, or else from the op family. If the case has no op family, the value depends on the name of the input
 * (described_inputs.h). If the op family specifies no value, the value is 1.0 for floats and 0 for other types. */
struct input_source case_inputs_scalar(const struct job *job, const struct op *op, const struct op_case *c, int input);

/* Writes the value of the Python scalar with the index `input` to `c`, where the ground truth reads it. The description
 * of the scalar may say that a certain number stands for its default. If so, the reference is called with this number,
 * and the default is written to `c` (kernels/core/described_default.h). */
void case_inputs_set_scalar(const struct job *job, const struct op *op, struct op_case *c, int input);

/* Fills every tensor of `in` whose `data` is set; `data` must be device memory of the tensor's size. Before that, lets
 * the op family check the lengths of the axes (op.check without tensors). If a blob file does not have the digest that
 * the job states, the reason of the rejection is `changed`. If `op` is NULL, described_inputs.h chooses the values.
 * Returns 0 if the inputs are valid. Otherwise sets the rejection and returns -1. */
int case_inputs_fill(struct device *device, struct tensors *tensors, const struct job *job, const struct op *op,
		     const struct op_case *c, struct tensor *in, struct rejection *rejection);

/* Returns a bit set, as in op_case.absent: bit i is set if the case omits the optional input i. */
uint64_t case_inputs_absent(const struct job *job);

/* Returns a bit set, as in op_case.given: bit i is set if the workload or the definition's code
 * provides input i. */
uint64_t case_inputs_given(const struct job *job);

/* Replaces unknown (negative) lengths of axes by the lengths that follow from the job's constraints. */
void case_inputs_solve_axes(const struct job *job, int64_t *axis, struct arena *arena);

/* Checks the filled inputs against the definition's constraints on tensor values. If the workload or the definition's
 * code provides a tensor, then lets the op family check the inputs (op.check). Returns 0 if the inputs are valid.
 * Otherwise sets the rejection and returns -1. */
int case_inputs_check(struct device *device, const struct job *job, const struct op *op, const struct op_case *c,
		      const struct tensor *in, struct arena *arena, struct rejection *rejection);

#endif
