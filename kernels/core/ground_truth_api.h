/* ground_truth_api - the builtin ground truth for programs other than reftest: plain C functions that both kernels
 * libraries export, so that a pytest file can call them through ctypes. The signatures of these functions are stable:
 * later versions only add functions.
 *
 * A caller passes a case as one JSON text:
 *
 *   {"definition": {…}, "axes": {"batch_size": 3, …}, "scalars": {"sm_scale": 0.1, …}, "constants": {"eps": 1e-6},
 *    "seed": 0}
 *
 * `definition` is the content of the definition's file in the dataset; the member `reference` of this content is
 * ignored. `axes` has a value for every var axis. `scalars` has values for Python-scalar inputs, which replace the
 * family's own values. `constants` has values for hidden constants that no source states. An empty `axes`, `scalars` or
 * `constants` may be left out; `seed` is required.
 *
 * The following members are optional. "contents": 1 selects the second set of input values (op_case.contents). "edge":
 * "no_rows" selects the edge case of that name (op.edges). "probe": true selects the case that makes hidden constants
 * visible (op.probe). Edge and probe cases use the axes that op.edge_axes or op.probe_axes writes. "given": ["k"] names
 * the inputs that a workload provides. "absent": ["z"] names the optional inputs that the case omits.
 *
 * Inputs and outputs are passed in the definition's order. The caller passes each tensor as a truth_place: an address
 * and a size in bytes. The tensor must be row-major and dense. For an absent optional input or a Python scalar, `data`
 * is NULL. The size must be exactly the number of bytes of a tensor with the declared shape and dtype.
 *
 * Every function returns one of the TRUTH_ values below. If the value is not TRUTH_OK, the function writes a message to
 * `why`, a buffer of `room` bytes. */
#ifndef REFTEST_KERNELS_CORE_GROUND_TRUTH_API_H
#define REFTEST_KERNELS_CORE_GROUND_TRUTH_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	TRUTH_BAD = -1, /* the case cannot be parsed, a tensor's size does not match, or memory or the device failed */
	TRUTH_OK = 0,
	/* No family has the truth of the case, or no source states a constant that the family needs. From
	 * reftest_judge: the elementwise rule (reftest_rule) applies to the output. */
	TRUTH_NONE = 1,
	/* From reftest_judge: the output is wrong; the reason is in `why`. From reftest_probe: no value of the
	 * constants gives these outputs. */
	TRUTH_REFUSED = 2
};

struct truth_place {
	void *data;
	int64_t bytes;
};

/* Writes the name of the family that has the truth of this case to `why`. */
int reftest_family(const char *text, char *why, size_t room);

/* Writes the role of each input and output, and the modes of the problem (kernels/core/roles.h), as one JSON object:
 *
 *   {"roles": {"hidden": "x", …}, "output_roles": {"output": "y", …}, "modes": ["causal", …]}
 *
 * `text` is a case, or only a definition. Returns TRUTH_BAD if the object does not fit in `room` bytes. */
int reftest_roles(const char *text, char *out, size_t room);

/* Writes the bounds of one output: atol, rtol, hit ratio. For an input that the operation writes to
 * (reftest_truth_left), pass the number of outputs + the input's index as `output`. */
int reftest_rule(const char *text, int output, double rule[3], char *why, size_t room);

/* Writes the bounds that `reftest verify` applies: the definition's own "tolerance" replaces the family's rule. */
int reftest_bounds(const char *text, int output, double rule[3], char *why, size_t room);

/* Fills one input on the host, with the values that `reftest verify` would use. For a Python scalar, reftest_scalar
 * writes the value. */
int reftest_fill(const char *text, int input, struct truth_place to, char *why, size_t room);
int reftest_scalar(const char *text, int input, double *value, char *why, size_t room);

/* Writes the value of a hidden constant of the case ("eps"). Returns TRUTH_NONE if the family has no constant of that
 * name, or if no source states the constant. */
int reftest_constant(const char *text, const char *name, double *value, char *why, size_t room);

/* Recovers the hidden constants that no source states, from the outputs that a reference computed for a case with
 * "probe". All tensors are on the host. Writes {"eps": 1e-06} to `why`. Returns TRUTH_NONE if the family has no probe
 * case. */
int reftest_probe(const char *text, const struct truth_place *in, const struct truth_place *out, char *why, size_t room);

/* Computes the outputs from the inputs, on the host or (only in libreftest_kernels_cuda.so) on GPU `index`. On a GPU,
 * all tensors must be in that GPU's memory, and the work that writes the inputs must be finished. */
int reftest_truth(const char *text, const struct truth_place *in, const struct truth_place *out, char *why,
		  size_t room);
int reftest_truth_cuda(const char *text, int index, const struct truth_place *in, const struct truth_place *out,
		       char *why, size_t room);

/* Computes the same as reftest_truth, and also the truth of inputs that the operation writes to without returning them
 * (op.in_place). `left` has a place with the input's shape and dtype for every input. If the `data` of a place is NULL,
 * the truth of that input is not requested. */
int reftest_truth_left(const char *text, const struct truth_place *in, const struct truth_place *out,
		       const struct truth_place *left, char *why, size_t room);
int reftest_truth_left_cuda(const char *text, int index, const struct truth_place *in, const struct truth_place *out,
			    const struct truth_place *left, char *why, size_t room);

/* Judges an output to which no elementwise rule applies (samples, sets of indices). The family's own function judges.
 * All tensors are on the host; `truth` is the result of reftest_truth. */
int reftest_judge(const char *text, int output, const struct truth_place *in, const struct truth_place *reference,
		  const struct truth_place *truth, char *why, size_t room);

/* The arguments of reftest_judge for one set of input values. */
struct truth_judged {
	const char *text;
	const struct truth_place *in, *reference, *truth;
};

/* Judges an output on the first and the second set of input values together. If the output is wrong on one set, returns
 * the value that reftest_judge returns for that set. Returns TRUTH_NONE if the family judges each set alone. */
int reftest_judge_both(const struct truth_judged sets[2], int output, char *why, size_t room);

/* Only for the two libraries themselves: calls `open` to open a device, and computes the truth on this device. If
 * `left` is NULL, computes only the outputs. */
struct device;
int truth_on(struct device *(*open)(int index, struct err *err), int index, const char *text,
	     const struct truth_place *in, const struct truth_place *out, const struct truth_place *left, char *why,
	     size_t room);

#ifdef __cplusplus
}
#endif
#endif
