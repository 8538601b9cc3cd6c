/* gemm inputs - how the three matrices lie, and the value of every input element, the same on CPU and GPU.
 *
 * C[m][n] = sum over k of A[m][k] * B(n, k), where B lies as [N][K] ("NT") or as [K][N] ("NN"). A and C may have more
 * leading axes; their product is M.
 *
 * Values are uniform on [-1, 1) in steps that the dtype holds exactly and an 8-bit float does not: 2^-10 for float16,
 * 2^-7 for bfloat16, 2^-20 for float32 (which TF32 does not hold either). One element in GEMM_PERIOD of each row of A
 * is +8 or -8 instead, in the columns with k % GEMM_PERIOD == m % GEMM_PERIOD: each k is the heavy one in one of any
 * 128 rows, so a k that is left out moves some place of C by up to 8 whatever K is. */
#ifndef REFTEST_KERNELS_GEMM_INPUTS_H
#define REFTEST_KERNELS_GEMM_INPUTS_H

#include <stdint.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variants: how B lies. */
enum { GEMM_NT = 0, GEMM_NN = 1 };

enum { GEMM_PERIOD = 128, GEMM_HEAVY = 8 };

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
	int is_a;
	int bits; /* fraction bits */
};

/* Host only. */
static inline struct gemm_fill gemm_fill_of(const struct op_case *c, int input)
{
	struct gemm_extent e = gemm_extent_of(c);
	enum dtype dtype = c->problem->inputs[input].dtype;
	struct gemm_fill f;

	f.key = input_key(c, input);
	f.k = e.k;
	f.is_a = input == e.a;
	f.bits = dtype == DTYPE_FLOAT16 ? 10 : dtype == DTYPE_BFLOAT16 ? 7 : 20;
	return f;
}

/* Element `index` of the input that `f` was made for, from its random bits: exact in the input's dtype. */
HOST_DEVICE static inline float gemm_element(const struct gemm_fill *f, int64_t index, uint32_t random)
{
	if (f->is_a && (index % f->k - index / f->k) % GEMM_PERIOD == 0)
		return random & 1 ? GEMM_HEAVY : -GEMM_HEAVY;
	return uniform_signed(random, f->bits);
}

#endif
