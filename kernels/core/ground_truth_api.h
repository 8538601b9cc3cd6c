/* ground_truth_api - gives programs other than reftest access to the builtin ground truth. Both kernels libraries
 * export these plain C functions, so that a pytest file, for example, can call them through ctypes. The signatures of
 * the functions are stable: later versions only add functions.
 *
 * A caller passes a case as one JSON text:
 *
 *   {"definition": {…}, "axes": {"batch_size": 3, …}, "scalars": {"sm_scale": 0.1, …}, "constants": {"eps": 1e-6},
 *    "seed": 0}
 *
 * `definition` is the content of the definition's file in the dataset; the member `reference` of this content is
 * ignored. `axes` has a value for every var axis. `scalars` has values for Python-scalar inputs, which replace the
 * family's own values. `constants` has values for constants that the definition does not state, such as an epsilon. An
 * empty `axes`, `scalars` or `constants` may be left out; `seed` is required.
 *
 * The following members are optional. "contents": 1 selects the second set of input values (op_case.contents). "edge":
 * "no_rows" selects the edge case of that name (op.edges). "probe": true selects the case from whose outputs unknown
 * constants can be computed (op.probe). For an edge or probe case, `axes` must contain the lengths that op.edge_axes or
 * op.probe_axes writes. "given": ["k"] names the inputs that a workload provides. "absent": ["z"] names the optional
 * inputs that the case omits.
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
	TRUTH_BAD = -1, /* the case cannot be parsed, the size of a tensor does not match, memory ran out, or the device
			 * failed */
	TRUTH_OK = 0,
	/* No family can compute the truth of the case, or the value of a constant that the family needs is unknown. As
	 * a result of reftest_judge: the elementwise rule (reftest_rule) applies to the output. */
	TRUTH_NONE = 1,
	/* As a result of reftest_judge: the output is wrong, and `why` says why. As a result of reftest_probe: no
	 * values of the constants explain these outputs. */
	TRUTH_REFUSED = 2
};

struct truth_place {
	void *data;
	int64_t bytes;
};

/* Writes to `why` the name of the family that computes the ground truth of the case in `text`. */
int reftest_family(const char *text, char *why, size_t room);

/* Writes the role of each input and output, and the modes of the problem (kernels/core/roles.h), as one JSON object:
 *
 *   {"roles": {"hidden": "x", …}, "output_roles": {"output": "y", …}, "modes": ["causal", …]}
 *
 * `text` is a case, or a definition alone. Returns TRUTH_BAD if the object does not fit in `room` bytes. */
int reftest_roles(const char *text, char *out, size_t room);

/* Writes the bounds of one output: atol, rtol, hit ratio. To get the bounds of an input that the operation writes to
 * (reftest_truth_left), pass the number of outputs plus the input's index as `output`. */
int reftest_rule(const char *text, int output, double rule[3], char *why, size_t room);

/* Writes the bounds that `reftest verify` applies. The definition's own "tolerance", if any, replaces the family's
 * rule. */
int reftest_bounds(const char *text, int output, double rule[3], char *why, size_t room);

/* Fills one input on the host, with the values that `reftest verify` would use. For a Python scalar, call
 * reftest_scalar instead, which writes the value. */
int reftest_fill(const char *text, int input, struct truth_place to, char *why, size_t room);
int reftest_scalar(const char *text, int input, double *value, char *why, size_t room);

/* Writes the value of a constant of the case, such as "eps". Returns TRUTH_NONE if the family has no constant of that
 * name, or if its value is unknown. */
int reftest_constant(const char *text, const char *name, double *value, char *why, size_t room);

/* Computes the unknown constants from the outputs of a reference for a case with "probe". All tensors are on the host.
 * Writes the constants to `why`, for example {"eps": 1e-06}. Returns TRUTH_NONE if the family has no probe case. */
int reftest_probe(const char *text, const struct truth_place *in, const struct truth_place *out, char *why, size_t room);

/* Computes the outputs from the inputs, on the host or (only in libreftest_kernels_cuda.so) on GPU `index`. For a GPU,
 * all tensors must be in the memory of that GPU, and the work that writes the inputs must be finished. */
int reftest_truth(const char *text, const struct truth_place *in, const struct truth_place *out, char *why,
		  size_t room);
int reftest_truth_cuda(const char *text, int index, const struct truth_place *in, const struct truth_place *out,
		       char *why, size_t room);

/* Computes the same as reftest_truth, and also the truth of inputs that the operation writes to without returning them
 * (op.in_place). left[i] is the place for the truth of input i, with the shape and dtype of the input. If the `data` of
 * a place is NULL, the truth of that input is not requested. */
int reftest_truth_left(const char *text, const struct truth_place *in, const struct truth_place *out,
		       const struct truth_place *left, char *why, size_t room);
int reftest_truth_left_cuda(const char *text, int index, const struct truth_place *in, const struct truth_place *out,
			    const struct truth_place *left, char *why, size_t room);

/* Judges an output to which no elementwise rule applies, such as samples or sets of indices. Calls the judge of the
 * family (op.judge). All tensors are on the host. `truth` is the result of reftest_truth. */
int reftest_judge(const char *text, int output, const struct truth_place *in, const struct truth_place *reference,
		  const struct truth_place *truth, char *why, size_t room);

/* Examines an output that the elementwise rule accepts. Returns TRUTH_REFUSED if the output is truncated instead of
 * rounded (kernels/core/compare_truncation.h), else TRUTH_OK. For the arguments, see reftest_judge. */
int reftest_rounding(const char *text, int output, const struct truth_place *reference, const struct truth_place *truth,
		     char *why, size_t room);

/* The arguments of reftest_judge for one set of input values. */
struct truth_judged {
	const char *text;
	const struct truth_place *in, *reference, *truth;
};

/* Judges an output on both sets of input values together. If reftest_judge returns a value other than TRUTH_OK for one
 * of the sets, returns this value. Returns TRUTH_NONE if the family judges each set separately. */
int reftest_judge_both(const struct truth_judged sets[2], int output, char *why, size_t room);

/* Only the two libraries themselves call this function. Opens a device by calling `open`, and computes the truth on
 * this device. If `left` is NULL, computes only the outputs. */
struct device;
int truth_on(struct device *(*open)(int index, struct err *err), int index, const char *text,
	     const struct truth_place *in, const struct truth_place *out, const struct truth_place *left, char *why,
	     size_t room);

#ifdef __cplusplus
}
#endif
#endif
