/* gemm inputs - how the three matrices lie, and the value of every input element, the same on CPU and GPU.
 *
 * C[m][n] = sum over k of A[m][k] * B(n, k), where B lies as [N][K] ("NT") or as [K][N] ("NN"). A and C may have more
 * leading axes; their product is M.
 *
 * First contents. Values are uniform on [-1, 1) in steps that the dtype holds exactly and an 8-bit float does not: 2^-10
 * for float16, 2^-7 for bfloat16, 2^-20 for float32 (which TF32 does not hold either).
 *
 * Second contents. The steps are so coarse, 2^-5 at K = 4096, that a sum of K products in float32 is
 * exact in any order: with T = 22 - log2 K bits for both, the magnitudes of all products together are at most 2^22
 * steps of their product.
 *
 * Both. One element in GEMM_PERIOD of each row of A is +8 or -8 instead, in the columns with k % GEMM_PERIOD ==
 * m % GEMM_PERIOD: each k is the heavy one in one of any 128 rows, so a k that is left out moves some place of C by up to
 * 8 whatever K is. Where A, B and C are all of 16 bits and K is large enough, the columns GEMM_LIFT and GEMM_DROP of A
 * and B are special: in B they have one sign, that of the row, and magnitude 24 … 28; in A they are +-4096 and
 * -+2304 in one row of GEMM_LIFTED, and a quarter of what they would be in the others. In such a row the sum goes to
 * 98304 … 114688, beyond float16, at the one and comes back to 33792 … 59392 at the other: a sum kept in float16 is
 * infinite. GEMM_LIFT and GEMM_DROP lie in one block of 256, so that partial sums of larger blocks, which torch lets
 * cuBLAS round to float16, stay finite. In the second contents A has 2^-7 of those magnitudes and B 2^7 times them.
 *
 * Where neither A nor B is float16, column k of A has 2^30 times its magnitudes and that of B 2^-30 times if k % 8 is 5, the
 * other way round if k % 8 is 6: products are what they were, and an input that passes through float16 overflows or
 * vanishes. Where one is float16, that is 2^12 and 2^-12, in the first contents alone: a quarter of the small columns'
 * elements are below 2^-14, float16's subnormals, and exact there, since their steps are 2^-22; the heavy elements of
 * the large ones are 2^15. (A matrix that a workload brings has no such columns: then the other has none, either.) */
#ifndef REFTEST_KERNELS_GEMM_INPUTS_H
#define REFTEST_KERNELS_GEMM_INPUTS_H

#include <stdint.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variants: how B lies. */
enum { GEMM_NT = 0, GEMM_NN = 1 };

enum { GEMM_PERIOD = 128, GEMM_HEAVY = 8 };

/* The powers of two between columns of A and B: of those that are beyond float16 on both sides, and of those that reach
 * its largest numbers and its subnormals. */
enum { GEMM_SPREAD = 30, GEMM_SPREAD_HALF = 12 };

/* The columns of the rise above float16's maximum and of the way back; the rows (m % GEMM_LIFTED == 1) that have them, no two
 * of which are GEMM_PERIOD apart; the least K. */
enum { GEMM_LIFT = 64, GEMM_DROP = 192, GEMM_LIFTED = 33, GEMM_LIFT_FROM = 256 };

/* The greatest K for which the second contents are exact. */
enum { GEMM_EXACT_K = 1 << 16 };

/* Where the parts are among the problem's inputs, and the case's extents. */
struct gemm_extent {
	int a, b;
	int64_t m, n, k;
	int nn; /* 0: B[n][k], 1: B[k][n] */
};

/* Can input `a` be A (C's leading axes, then K) with the other input B, lying as `nn` says? By axes alone. */
static inline int gemm_fits(const struct op_problem *problem, int a, int nn)
{
	const struct op_arg *left = &problem->inputs[a], *right = &problem->inputs[1 - a], *out = &problem->outputs[0];
	int rank = out->rank;

	if (rank < 2 || left->rank != rank || right->rank != 2)
		return 0;
	for (int d = 0; d + 1 < rank; d++)
		if (left->axis[d] != out->axis[d])
			return 0;
	return right->axis[nn] == out->axis[rank - 1] && right->axis[1 - nn] == left->axis[rank - 1];
}

/* Index of A: the first input if it can be A, else the second. */
static inline int gemm_left(const struct op_problem *problem, int variant)
{
	return gemm_fits(problem, 0, variant == GEMM_NN) ? 0 : 1;
}

/* For every problem that op.match takes. M stays at most 2^62, whatever the axes are. Host only. */
static inline struct gemm_extent gemm_extent_of(const struct op_case *c)
{
	const struct op_problem *problem = c->problem;
	const struct op_arg *out = &problem->outputs[0];
	struct gemm_extent e;

	e.nn = c->variant == GEMM_NN;
	e.a = gemm_left(problem, c->variant);
	e.b = 1 - e.a;
	e.m = 1;
	for (int d = 0; d + 1 < out->rank; d++) {
		int64_t size = c->axis[out->axis[d]];

		e.m = size > 0 && e.m > (INT64_MAX >> 1) / size ? INT64_MAX >> 1 : e.m * size;
	}
	e.n = c->axis[out->axis[out->rank - 1]];
	e.k = c->axis[problem->inputs[e.a].axis[out->rank - 1]];
	return e;
}

/* Everything an element depends on; plain data, given to the GPU by value. */
struct gemm_fill {
	uint64_t key;
	int64_t k;
	int64_t across; /* B lies as [K][across]; 0: by rows of K */
	int is_a;
	int bits;   /* fraction bits */
	int lifted; /* the sums of some rows rise above float16's maximum */
	int shift;  /* bits that magnitudes in the special columns are moved from A to B */
	int scale;  /* bits by which ordinary elements of lifted rows are larger */
	int spread; /* the power of two of columns with k % 8 == 5; that of those with 6 is its inverse */
};

static inline int gemm_is_short(enum dtype dtype)
{
	return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

/* Fraction bits of A and B together for which sums of K products are exact in float32. */
static inline int gemm_exact_bits(int64_t k)
{
	int bits = 22;

	while (bits > 6 && (INT64_C(1) << (22 - bits)) < k)
		bits--;
	return bits < 11 ? bits : 11;
}

/* Can some columns of A and B be beyond float16's range? */
static inline int gemm_is_beyond_half(const struct op_problem *problem)
{
	return problem->inputs[0].dtype != DTYPE_FLOAT16 && problem->inputs[1].dtype != DTYPE_FLOAT16;
}

/* The power of two of A's columns with k % 8 == 5. Host only. */
static inline int gemm_spread(const struct op_case *c)
{
	if (c->given != 0)
		return 0;
	if (gemm_is_beyond_half(c->problem))
		return GEMM_SPREAD;
	return c->contents == CONTENTS_FIRST ? GEMM_SPREAD_HALF : 0;
}

/* Host only. */
static inline struct gemm_fill gemm_fill_of(const struct op_case *c, int input)
{
	struct gemm_extent e = gemm_extent_of(c);
	enum dtype dtype = c->problem->inputs[input].dtype;
	int together = gemm_exact_bits(e.k), of_a = together / 2;
	int second = c->contents == CONTENTS_SECOND, is_a = input == e.a;
	int fine = dtype == DTYPE_FLOAT16 ? 10 : dtype == DTYPE_BFLOAT16 ? 7 : 20, coarse = is_a ? of_a : together - of_a;
	int lifted = e.k >= GEMM_LIFT_FROM && gemm_is_short(c->problem->inputs[0].dtype) &&
	             gemm_is_short(c->problem->inputs[1].dtype) && gemm_is_short(c->problem->outputs[0].dtype);
	int spread = is_a ? gemm_spread(c) : -gemm_spread(c);
	struct gemm_fill f = {input_key(c, input), e.k,    !is_a && e.nn ? e.n : 0, is_a, second ? coarse : fine, lifted,
	                      second ? 7 : 0,      second ? together - 6 : 0, spread};

	return f;
}

/* An ordinary element of A or B. */
HOST_DEVICE static inline float gemm_plain(const struct gemm_fill *f, int64_t row, int64_t column, uint32_t random)
{
	if (f->is_a && (column - row) % GEMM_PERIOD == 0)
		return random & 1 ? GEMM_HEAVY : -GEMM_HEAVY;
	return uniform_signed(random, f->bits);
}

/* Of the special columns. The sign is that of the row, whichever of the two columns it is. */
HOST_DEVICE static inline float gemm_special(const struct gemm_fill *f, int64_t row, int64_t column, uint32_t random,
                                             uint32_t of_lift)
{
	float sign = of_lift & 1 ? 1.0f : -1.0f;

	if (!f->is_a)
		return sign * float_power(f->shift) * (24 + (float)(random >> 27) * float_power(-3));
	if (row % GEMM_LIFTED != 1)
		return gemm_plain(f, row, column, random) * float_power(-2 - f->shift);
	return sign * float_power(-f->shift) * (column == GEMM_LIFT ? 4096.0f : -2304.0f);
}

/* Of the others. */
HOST_DEVICE static inline float gemm_usual(const struct gemm_fill *f, int64_t row, int64_t column, uint32_t random)
{
	int bits = f->lifted && f->is_a && row % GEMM_LIFTED == 1 ? f->scale : 0;

	bits += column % 8 == 5 ? f->spread : column % 8 == 6 ? -f->spread : 0;
	return gemm_plain(f, row, column, random) * float_power(bits);
}

HOST_DEVICE static inline int gemm_is_special(const struct gemm_fill *f, int64_t column)
{
	return f->lifted && (column == GEMM_LIFT || column == GEMM_DROP);
}

/* Element (row, column) as A[m][k] or B(n, k) has it, `index` being its place in memory and that of (row, GEMM_LIFT)
 * `lift`: exact in the input's dtype. */
HOST_DEVICE static inline float gemm_at(const struct gemm_fill *f, int64_t row, int64_t column, int64_t lift,
                                        uint32_t random)
{
	return gemm_is_special(f, column) ? gemm_special(f, row, column, random, philox_bits(f->key, lift))
	                                  : gemm_usual(f, row, column, random);
}

/* Element `index` of the input that `f` was made for, from its random bits. */
HOST_DEVICE static inline float gemm_element(const struct gemm_fill *f, int64_t index, uint32_t random)
{
	if (f->across > 0) /* B lies as [K][N] */
		return gemm_at(f, index % f->across, index / f->across, GEMM_LIFT * f->across + index % f->across, random);
	return gemm_at(f, index / f->k, index % f->k, index / f->k * f->k + GEMM_LIFT, random);
}

#endif
