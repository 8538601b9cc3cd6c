/* rms - computes root mean square norms (RMS norms). Some norms add an offset to the weight:
 *
 *   y[r][c] = x[r][c] / sqrt(mean over c of x[r][c]^2 + eps) * (offset + w[c])
 *
 * x is the hidden state or, in a fused norm, the sum of hidden state and residual. The norm uses the unrounded sum.
 * `offset` is 0, or 1 for Gemma's norms. Activations have any shape [..., H] in float32, float16 or bfloat16; the
 * weight is [H]. The optional second output is the updated residual: x, rounded to the dtype of this output.
 *
 * Bound. If a reference computes in float32, its error is about 1e-6 y before it rounds y to the output's dtype. A sum
 * of H squares, in any usual order, has a relative error of up to sqrt(H) 2^-24, and the square root halves this error;
 * 1 + w adds half an ulp of float32. The outputs of the reference and of the oracle are thus roundings of nearly the
 * same number, and differ by at most one ulp. rtol is 2^-10 for float16 and 2^-7 for bfloat16: for |y| in [2^e,
 * 2^(e+1)), rtol |y| is at least one ulp, but less than two ulps. For float32, rtol is 1e-5, ten times the error of the
 * sum. No terms of y cancel, so atol can be as small as one ulp of the subnormals. For bfloat16 and float32, atol is
 * 2^-126, because a machine may flush smaller float32 numbers to zero.
 *
 * In the exact row of rms_input_values.h, rtol is a quarter as large. A quarter of the usual rtol is less than one ulp,
 * so the exact row allows no difference. In the exact row, an epsilon of up to 1e-3 changes the result by at most 2e-6,
 * which the rounding to the output's dtype removes. If epsilon is larger, the usual bound applies.
 *
 * rms_input_values.h describes the errors that these bounds detect. Only the exact row detects an additional rounding
 * of 1 + w or, if the offset is 1, of x / rms. In other rows, such a rounding changes y by only one ulp. If the offset
 * is 0, a reference may round x / rms before the product with the weight, as Llama's norm does, or leave it
 * unrounded. */
#ifndef REFTEST_KERNELS_COMMON_NORM_RMS_H
#define REFTEST_KERNELS_COMMON_NORM_RMS_H

#include "kernels/common/norm/rms_roles.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The variants that rms_match returns. */
enum { RMS_PLAIN = 0, RMS_FUSED_ADD = 1 };

/* Writes the axis values of a case with `rows` rows and, if the last axis is var, `columns` columns. If several of the
 * other axes are var, the last of them gets the length with which the product of all axes except the columns is `rows`.
 * The others get the length 4. If a var axis does not occur in any activation, its length is 1. */
void rms_set_axes(const struct op_problem *problem, int64_t rows, int64_t columns, int64_t *axis);

/* The tensors of a case by role. A pointer is NULL if the case has no such tensor. If there is no weight, y is the
 * normalised row itself. rms_find_parts sets the output pointers only if `out` is not NULL. It returns 0, or -1 if the
 * hidden state is absent or the sizes are inconsistent. */
struct rms_parts {
	const struct tensor *hidden, *residual, *weight;
	struct tensor *output, *updated;
	int64_t rows, columns;
	double eps;
	int mistake; /* op_case.mistake: a value of enum rms_mistake */
};

/* The mistakes in rms_mistakes that the oracle simulates. */
enum rms_mistake { RMS_NO_MISTAKE, RMS_EPS_OUTSIDE, RMS_SUM, RMS_VARIANCE, RMS_ROUNDED_SUM };
extern const struct op_mistake rms_mistakes[];

int rms_find_parts(const struct op_case *c, const struct tensor *in, struct tensor *out, struct rms_parts *parts,
		   struct err *err);

/* Writes row `row` of the norm's input (the hidden state plus the residual, if any) to `x`. `x` and `scratch` must each
 * have space for one row. */
void rms_read_row(const struct rms_parts *parts, int64_t row, double *x, double *scratch);

/* rms_match implements op.match. In the same way, each of these declarations implements the member of struct op with
 * the same name. */
int rms_match(const struct op_problem *problem, struct err *why);
int rms_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);
extern const struct op_edge rms_edges[];
bool rms_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis);
struct rule rms_rule(const struct op_case *c, int output);
bool rms_range(const struct op_problem *problem, int offset, int input, struct op_range *out);
struct op_reach rms_reach(const struct op_problem *problem, int variant, int axis);
int rms_fill(const struct op_case *c, int offset, int input, struct tensor *out, struct err *err);
int rms_check(const struct op_case *c, const struct tensor *in, struct err *err);
int rms_oracle(const struct op_case *c, int offset, const struct tensor *in, struct tensor *out, struct err *err);

/* These functions implement members of struct op_cuda. Only the CUDA library contains them. */
int rms_fill_cuda(const struct op_case *c, int offset, int input, struct tensor *out, void *stream, struct err *err);
int rms_launch(const struct op_case *c, int offset, const struct tensor *in, struct tensor *out, void *stream,
	       struct err *err);

#ifdef __cplusplus
}
#endif
#endif
