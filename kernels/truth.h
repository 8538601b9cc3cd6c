/* truth - the builtin ground truth for programs that are not reftest: plain C functions that both kernels libraries
 * show by name, so that a pytest file reaches them through ctypes. They are few and they stay as they are; what a later
 * version adds gets a name of its own.
 *
 * A case is one JSON text:
 *
 *   {"definition": {…}, "axes": {"batch_size": 3, …}, "scalars": {"sm_scale": 0.1, …}, "constants": {"eps": 1e-6},
 *    "seed": 0}
 *
 * `definition` is what the dataset's file holds (its `reference` is not looked at), `axes` has a value for every var
 * axis, `scalars` for those Python-scalar inputs that are not to have the family's own value, `constants` for hidden
 * ones that nothing attests; these three may be missing when they would be empty, `seed` always. "contents": 1 asks for the
 * second contents of the same shapes (op_case.contents).
 *
 * Inputs and outputs are given in the definition's order, as places: address and bytes, row-major and dense. `data`
 * NULL is an optional input that is absent, or a Python scalar. Bytes must be exactly what shape and dtype come to.
 *
 * Every function returns a TRUTH_ value; unless that is TRUTH_OK, `why` (of `room` bytes) holds a sentence. */
#ifndef REFTEST_KERNELS_TRUTH_H
#define REFTEST_KERNELS_TRUTH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	TRUTH_BAD = -1, /* the case cannot be read, a place does not fit, memory or the device failed */
	TRUTH_OK = 0,
	TRUTH_NONE = 1, /* no family has this truth, or a constant that it needs is attested nowhere; of reftest_judge:
			   the element rule (reftest_rule) is to decide */
	TRUTH_REFUSED = 2 /* reftest_judge: the output is wrong, and how */
};

struct truth_place {
	void *data;
	int64_t bytes;
};

/* Name of the family that has this truth, into `why`. */
int reftest_family(const char *text, char *why, size_t room);

/* Bounds of one output: atol, rtol, hit ratio. Those of what the operation leaves in an input (reftest_truth_left)
 * stand behind those of the outputs, at the number of outputs + the input's index. */
int reftest_rule(const char *text, int output, double rule[3], char *why, size_t room);

/* The same, as `reftest verify` applies them: with the definition's own "tolerance" in place of the family's. */
int reftest_bounds(const char *text, int output, double rule[3], char *why, size_t room);

/* One input as `reftest verify` would make it, on the host; or, of a Python scalar, its value. */
int reftest_fill(const char *text, int input, struct truth_place to, char *why, size_t room);
int reftest_scalar(const char *text, int input, double *value, char *why, size_t room);

/* A hidden constant of the case ("eps"): TRUTH_NONE when the family has none of that name, or nothing attests it. */
int reftest_constant(const char *text, const char *name, double *value, char *why, size_t room);

/* The outputs, computed from the inputs on the host, or (libreftest_kernels_cuda.so alone) on GPU `index`, where the
 * places are then; what made the inputs must be finished. */
int reftest_truth(const char *text, const struct truth_place *in, const struct truth_place *out, char *why,
		  size_t room);
int reftest_truth_cuda(const char *text, int index, const struct truth_place *in, const struct truth_place *out,
		       char *why, size_t room);

/* The same, and what the operation leaves in inputs that it writes to without returning them (op.leaves): `left` has a
 * place for every input, of the input's shape and dtype; data NULL: not asked for. */
int reftest_truth_left(const char *text, const struct truth_place *in, const struct truth_place *out,
		       const struct truth_place *left, char *why, size_t room);
int reftest_truth_left_cuda(const char *text, int index, const struct truth_place *in, const struct truth_place *out,
			    const struct truth_place *left, char *why, size_t room);

/* What the family says of an output that no element rule fits (samples, sets of indices). All on the host; `truth` is
 * what reftest_truth made. */
int reftest_judge(const char *text, int output, const struct truth_place *in, const struct truth_place *reference,
		  const struct truth_place *truth, char *why, size_t room);

/* For the two libraries themselves: the truth on whichever device `open` opens. `left` NULL: of the outputs alone. */
struct device;
int truth_on(struct device *(*open)(int index, struct err *err), int index, const char *text,
	     const struct truth_place *in, const struct truth_place *out, const struct truth_place *left, char *why,
	     size_t room);

#ifdef __cplusplus
}
#endif
#endif
