/* gemm inputs - finds the layout of the three matrices, and computes the inputs. The CPU and the GPU compute the same
 * values.
 *
 * C[m][n] = sum over k of A[m][k] * B(n, k), with B stored as [N][K] ("NT") or as [K][N] ("NN"). A and C may have
 * several leading axes; M is then the product of their lengths.
 *
 * In the first set of values, elements are uniform on [-1, 1). Elements are multiples of 2^-10 for float16, 2^-7 for
 * bfloat16, and 2^-20 for float32. The dtype represents these multiples exactly. An 8-bit float does not represent
 * them, and TF32 does not represent multiples of 2^-20.
 *
 * In the second set of values, elements have fewer fraction bits (they are multiples of 2^-5 if K = 4096), so that a
 * sum of K products is exact in float32, in any order. A and B together have T = min(11, 22 - log2 K) fraction bits.
 * All products are multiples of 2^-T, and the sum of their magnitudes is at most 2^22 * 2^-T.
 *
 * In both sets, row m of A has "heavy" elements, +8 or -8, in the columns with k % GEMM_PERIOD == m % GEMM_PERIOD. In
 * any 128 consecutive rows, each column has one heavy element. Therefore, if a reference omits a column, at least one
 * row of C loses its heavy element and changes by up to 8, however large K is.
 *
 * If A, B and C are all 16-bit and K is at least GEMM_LIFT_FROM, two columns of A and B are special: GEMM_LIFT and
 * GEMM_DROP. In each row of B, the two special elements have the same sign and a magnitude of 24 … 28. One of every
 * GEMM_LIFTED rows of A is "lifted": its two special elements are 4096 and -2304, or -4096 and 2304. In ordinary rows
 * of A, the two special elements are computed like all other elements, and then divided by 4. In a lifted row, the sum
 * of products rises to 98304 … 114688 at column GEMM_LIFT. This is beyond float16's maximum, so a float16 accumulator
 * becomes infinite. The sum falls to 33792 … 59392 at column GEMM_DROP. Torch allows cuBLAS to add up blocks of 256
 * columns separately, and to round the sum of each block to float16. Both special columns are in the same block, so
 * that the sum of this block stays finite. In the second set of values, the special elements are 2^-7 times as large in
 * A and 2^7 times as large in B.
 *
 * The row of A after each lifted row is "high": it is like a lifted row, but its element at GEMM_DROP is 0, so the sum
 * of products stays at 98304 … 114688. In float16, a sum of this size is infinite, so a reference that limits the sum
 * to float16's maximum fails. If a workload provides A or B, there are no high rows: a sum could then be close to
 * float16's maximum, and rounding would decide whether it is infinite. In the second set of values, the row after each
 * high row is "faint". It is scaled so that its smallest elements are 2^-24, the smallest number above 0 in float16.
 * Its two special elements are 0. The products in a faint row are below 2^-14, where float16 is subnormal. If K is
 * 4096, about half of the elements of C in a faint row are also below 2^-14.
 *
 * If neither A nor B is float16, two of eight columns are scaled. If k % 8 is 5, column k of A is scaled by 2^30 and
 * column k of B by 2^-30. If k % 8 is 6, column k of A is scaled by 2^-30 and column k of B by 2^30. The products do
 * not change, but a reference that converts A or B to float16 makes the elements of these columns infinite or zero. If
 * A or B is float16, the factors are 2^12 and 2^-12, and only the first set of values has scaled columns. In columns
 * scaled by 2^-12, a quarter of the elements are then below 2^-14. These elements are subnormal in float16, but exact,
 * because they are multiples of 2^-22. The heavy elements of columns scaled by 2^12 are 2^15. If a workload provides A
 * or B, no column is scaled, because products stay the same only if both matrices are scaled. */
#ifndef REFTEST_KERNELS_GEMM_INPUT_VALUES_H
#define REFTEST_KERNELS_GEMM_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

/* The variants that op.match returns, which are the layouts of B. */
enum { GEMM_NT = 0, GEMM_NN = 1 };

enum { GEMM_PERIOD = 128, GEMM_HEAVY = 8 };

/* Some columns of A and B are scaled by powers of two with these exponents. With GEMM_SPREAD, the magnitudes of
 * elements are above float16's maximum or below its smallest positive number. With GEMM_SPREAD_HALF, elements are among
 * the largest or among the subnormal numbers of float16. */
enum { GEMM_SPREAD = 30, GEMM_SPREAD_HALF = 12 };

/* GEMM_LIFT is the column at which the sums of lifted rows rise above float16's maximum, and GEMM_DROP is the column at
 * which these sums fall back. If K is at least GEMM_LIFT_FROM, row m is lifted if m % GEMM_LIFTED is GEMM_LIFTED_ROW,
 * high if it is GEMM_HIGH_ROW, and faint if it is GEMM_FAINT_ROW. GEMM_LIFTED is chosen such that two lifted rows are
 * never exactly GEMM_PERIOD rows apart. */
enum { GEMM_LIFT = 64, GEMM_DROP = 192, GEMM_LIFTED = 33, GEMM_LIFT_FROM = 256 };
enum { GEMM_LIFTED_ROW = 1, GEMM_HIGH_ROW = 2, GEMM_FAINT_ROW = 3 };

/* The maximum K for which the sums of the second set of values are exact. */
enum { GEMM_EXACT_K = 1 << 16 };

/* The indices of A and B among the problem's inputs, and the extents of the case. */
struct gemm_extent {
	int a, b;
	int64_t m, n, k;
	int nn; /* 0 if B is stored as [N][K], 1 if B is stored as [K][N] */
};

/* Returns 1 if input `a` can be A and the other input can be B in the layout `nn`. A must have the leading axes of C
 * and then K. Compares only axes. */
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

/* Returns the index of A: the first input if it can be A, else the second. */
static inline int gemm_left(const struct op_problem *problem, int variant)
{
	return gemm_fits(problem, 0, variant == GEMM_NN) ? 0 : 1;
}

/* Returns the extents of a case of a problem that op.match accepts. M is at most 2^62. Host only. */
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

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct gemm_fill {
	uint64_t key;
	int64_t k;
	int64_t across; /* N if B is stored as [K][N], otherwise 0 */
	int is_a;
	int bits;   /* the number of fraction bits */
	int lifted; /* do the sums of some rows rise above float16's maximum and fall back? */
	int high;   /* do the sums of some rows rise above float16's maximum and stay there? */
	int faint;  /* faint rows of A are scaled by 2^faint; 0 if there are no faint rows */
	int shift;  /* special columns of A are multiplied by 2^-shift, and those of B by 2^shift */
	int scale;  /* in lifted and high rows, elements outside the special columns are multiplied by 2^scale */
	int spread; /* columns with k % 8 == 5 are multiplied by 2^spread, and columns with k % 8 == 6 by 2^-spread */
};

static inline int gemm_is_short(enum dtype dtype)
{
	return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

/* Returns the total number of fraction bits of A and B with which sums of K products are exact in float32. */
static inline int gemm_exact_bits(int64_t k)
{
	int bits = 22;

	while (bits > 6 && (INT64_C(1) << (22 - bits)) < k)
		bits--;
	return bits < 11 ? bits : 11;
}

/* Returns 1 if the elements of some columns of A and B may be outside float16's range. */
static inline int gemm_is_beyond_half(const struct op_problem *problem)
{
	return problem->inputs[0].dtype != DTYPE_FLOAT16 && problem->inputs[1].dtype != DTYPE_FLOAT16;
}

/* Returns the exponent by which A's columns with k % 8 == 5 are scaled. Host only. */
static inline int gemm_spread(const struct op_case *c)
{
	if (c->given != 0)
		return 0;
	if (gemm_is_beyond_half(c->problem))
		return GEMM_SPREAD;
	return c->contents == CONTENTS_FIRST ? GEMM_SPREAD_HALF : 0;
}

/* Only host code calls this function. */
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
	struct gemm_fill f;

	f.key = input_key(c, input);
	f.k = e.k;
	f.across = !is_a && e.nn ? e.n : 0;
	f.is_a = is_a;
	f.bits = second ? coarse : fine;
	f.lifted = lifted;
	f.high = lifted && c->given == 0;
	f.faint = f.high && second ? coarse - 24 : 0;
	f.shift = second ? 7 : 0;
	f.scale = second ? together - 6 : 0;
	f.spread = spread;
	return f;
}

/* The kinds of rows of A. All rows of B are GEMM_USUAL. */
enum gemm_row { GEMM_USUAL, GEMM_RISES_AND_FALLS, GEMM_RISES, GEMM_FAINT };

HOST_DEVICE static inline int gemm_row_of(const struct gemm_fill *f, int64_t row)
{
	int64_t at = row % GEMM_LIFTED;

	if (!f->is_a || !f->lifted)
		return GEMM_USUAL;
	if (at == GEMM_LIFTED_ROW)
		return GEMM_RISES_AND_FALLS;
	if (at == GEMM_HIGH_ROW && f->high)
		return GEMM_RISES;
	return at == GEMM_FAINT_ROW && f->faint != 0 ? GEMM_FAINT : GEMM_USUAL;
}

/* Computes an element of A or B without the scales of its row and column. */
HOST_DEVICE static inline float gemm_plain(const struct gemm_fill *f, int64_t row, int64_t column, uint32_t random)
{
	if (f->is_a && (column - row) % GEMM_PERIOD == 0)
		return random & 1 ? GEMM_HEAVY : -GEMM_HEAVY;
	return uniform_signed(random, f->bits);
}

/* Computes an element of the special columns. The sign depends on the row, and is the same in both columns. `of_lift`
 * holds the random bits of the row's element in column GEMM_LIFT. */
HOST_DEVICE static inline float gemm_special(const struct gemm_fill *f, int64_t row, int64_t column, uint32_t random,
                                             uint32_t of_lift)
{
	float sign = of_lift & 1 ? 1.0f : -1.0f;

	if (!f->is_a)
		return sign * float_power(f->shift) * (24 + (float)(random >> 27) * float_power(-3));
	switch (gemm_row_of(f, row)) {
	case GEMM_RISES_AND_FALLS:
		return sign * float_power(-f->shift) * (column == GEMM_LIFT ? 4096.0f : -2304.0f);
	case GEMM_RISES:
		return column == GEMM_LIFT ? sign * float_power(12 - f->shift) : 0.0f;
	case GEMM_FAINT:
		return 0.0f;
	default:
		return gemm_plain(f, row, column, random) * float_power(-2 - f->shift);
	}
}

/* Computes an element of a column that is not special. */
HOST_DEVICE static inline float gemm_usual(const struct gemm_fill *f, int64_t row, int64_t column, uint32_t random)
{
	int kind = gemm_row_of(f, row);
	int bits = kind == GEMM_FAINT ? f->faint : kind != GEMM_USUAL ? f->scale : 0;

	bits += column % 8 == 5 ? f->spread : column % 8 == 6 ? -f->spread : 0;
	return gemm_plain(f, row, column, random) * float_power(bits);
}

HOST_DEVICE static inline int gemm_is_special(const struct gemm_fill *f, int64_t column)
{
	return f->lifted && (column == GEMM_LIFT || column == GEMM_DROP);
}

/* Computes element (row, column) of A[m][k] or B(n, k). `lift` is the flat index of element (row, GEMM_LIFT). The
 * input's dtype represents the returned element exactly. */
HOST_DEVICE static inline float gemm_at(const struct gemm_fill *f, int64_t row, int64_t column, int64_t lift,
                                        uint32_t random)
{
	return gemm_is_special(f, column) ? gemm_special(f, row, column, random, philox_bits(f->key, lift))
	                                  : gemm_usual(f, row, column, random);
}

/* Computes element `index` of A or B from its random bits. */
HOST_DEVICE static inline float gemm_element(const struct gemm_fill *f, int64_t index, uint32_t random)
{
	if (f->across > 0) /* B is stored as [K][N] */
		return gemm_at(f, index % f->across, index / f->across, GEMM_LIFT * f->across + index % f->across, random);
	return gemm_at(f, index / f->k, index % f->k, index / f->k * f->k + GEMM_LIFT, random);
}

#endif
