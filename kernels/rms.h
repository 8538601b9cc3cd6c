/* rms - root mean square norms, which differ in what a weight is applied as:
 *
 *   y[r][c] = x[r][c] / sqrt(mean over c of x[r][c]^2 + eps) * (offset + w[c])
 *
 * where x is the hidden state or, fused, the sum of hidden state and residual, which is not rounded before it is used.
 * `offset` is 0 or 1 (Gemma's norms). Activations have any shape [..., H], float32, float16 or bfloat16; the weight is
 * [H]. A second output is the updated residual: x, rounded to its dtype.
 *
 * Bound. A reference that computes in float32 is off by some 1e-6 of y before its one rounding: the sum of H squares,
 * all positive, in any sensible order, is good to sqrt(H) 2^-24 and the square root halves that (1 + w adds half an ulp
 * of float32). So its output and the oracle's are roundings of nearly the same number, and differ by one unit in the
 * last place at most: rtol 2^-10 for float16, 2^-7 for bfloat16 (in [2^e, 2^(e+1)) one unit is at most rtol |y|, and
 * two are always more), 1e-5 for float32, ten times what the sum is off. y has no cancellation, so atol is only the
 * last place of the subnormals, and for the wide formats 2^-126, below which a machine may flush float32 to zero. What
 * that shows, rms_inputs.h says. What it cannot show: 1 + w, 1 / rms or the product x / rms being rounded once more on
 * the way. That moves y by one unit in the last place too. */
#ifndef REFTEST_KERNELS_RMS_H
#define REFTEST_KERNELS_RMS_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rms_match's variants. */
enum { RMS_PLAIN = 0, RMS_FUSED_ADD = 1 };

/* Indices into the problem's inputs and outputs; -1: the problem has none. */
struct rms_roles {
	int hidden, residual, weight, eps; /* eps: a Python scalar that gives epsilon */
	int output, updated;		   /* updated: hidden + residual, rounded to its dtype */
};

/* By shape, and by name only where shapes leave a choice (two activations, two outputs, activations of rank 1).
 * Complete for every problem that rms_match takes. */
struct rms_roles rms_roles_of(const struct op_problem *problem);

/* Epsilon of a case; NaN while nothing gives it (a probing case). */
double rms_eps(const struct op_case *c);

/* Rows and columns of the activations: the last axis is normalised, the others make the rows (at most 2^62 of them,
 * whatever the axes are). */
void rms_extent(const struct op_case *c, int64_t *rows, int64_t *columns);

/* One case: `rows` rows shared out over the var axes in front (the last takes what the others, 4 each, leave), and
 * `columns` columns if that axis is var. A var axis that no activation has is 1. */
void rms_set_axes(const struct op_problem *problem, int64_t rows, int64_t columns, int64_t *axis);

/* A case's tensors by part, NULL where it has none (no weight: every column counts once); those of the outputs too if `out` is not NULL. 0, or -1 if there is
 * nothing to normalise or the sizes do not fit together. */
struct rms_parts {
	const struct tensor *hidden, *residual, *weight;
	struct tensor *output, *updated;
	int64_t rows, columns;
	double eps;
};
int rms_find_parts(const struct op_case *c, const struct tensor *in, struct tensor *out, struct rms_parts *parts,
		   struct err *err);

/* Row `row` of x as doubles; `scratch` takes a row too. */
void rms_read_row(const struct rms_parts *parts, int64_t row, double *x, double *scratch);

/* As their namesakes in struct op have it. */
int rms_match(const struct op_problem *problem, struct err *why);
int rms_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);
extern const struct op_edge rms_edges[];
bool rms_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis);
struct rule rms_rule(const struct op_case *c, int output);
double rms_scalar(const struct op_case *c, int input);
bool rms_range(const struct op_problem *problem, int offset, int input, struct op_range *out);
int64_t rms_reach(const struct op_problem *problem, int variant, int axis);
int rms_fill(const struct op_case *c, int offset, int input, struct tensor *out, struct err *err);
int rms_check(const struct op_case *c, const struct tensor *in, struct err *err);
int rms_oracle(const struct op_case *c, int offset, const struct tensor *in, struct tensor *out, struct err *err);

/* As those of struct op_cuda; in the CUDA library alone. */
int rms_fill_cuda(const struct op_case *c, int offset, int input, struct tensor *out, void *stream, struct err *err);
int rms_launch(const struct op_case *c, int offset, const struct tensor *in, struct tensor *out, void *stream,
	       struct err *err);

#ifdef __cplusplus
}
#endif
#endif
