#include "kernels/gemm/mistakes.h"

#include <math.h>

#include "kernels/core/mistakes.h"

static bool divided_by_root(struct op_variation *v, const struct op_mistake *mistake)
{
	int a = variation_input(v, mistake->other);
	struct op_mistake scale = *mistake;

	if (a < 0)
		return false;
	scale.by = 1 / sqrt((double)v->in[a].shape[v->in[a].rank - 1]);
	return after_scale(v, &scale);
}

const struct op_mistake gemm_mistakes[] = {
    {.says = "the last of the K products was left out of each sum", .in_oracle = GEMM_LAST_K},
    {.says = "the first of the K products was left out of each sum", .in_oracle = GEMM_FIRST_K},
    {.says = "the product was divided by sqrt(K)", .after = divided_by_root, .role = "output", .other = "a"},
    {.says = "the sum over K was split into two halves, and each half was rounded to the dtype of the output", .in_oracle = GEMM_HALVES},
    {.says = "partial sums of 16 products were rounded to the dtype of the output", .in_oracle = GEMM_PARTS_16},
    {.says = "partial sums of 32 products were rounded to the dtype of the output", .in_oracle = GEMM_PARTS_32},
    {.says = "partial sums of 64 products were rounded to the dtype of the output", .in_oracle = GEMM_PARTS_64},
    {.says = "partial sums of 128 products were rounded to the dtype of the output", .in_oracle = GEMM_PARTS_128},
    {.says = "A was rounded to float8_e4m3fn", .before = before_round, .role = "a", .by = DTYPE_FLOAT8_E4M3FN},
    {.says = "A was rounded to float16", .before = before_round, .role = "a", .by = DTYPE_FLOAT16},
    {.says = "A was rounded to bfloat16", .before = before_round, .role = "a", .by = DTYPE_BFLOAT16},
    {.says = "elements of A with magnitudes below 2^-14 (subnormal in float16) were set to 0", .before = before_flush, .role = "a", .by = 0x1p-14},
    {.says = "elements of A with magnitudes below 2^-24 (the smallest positive number of float16) were set to 0", .before = before_flush, .role = "a", .by = 0x1p-24},
    {.says = "B was rounded to float8_e4m3fn", .before = before_round, .role = "b", .by = DTYPE_FLOAT8_E4M3FN},
    {.says = "B was rounded to float16", .before = before_round, .role = "b", .by = DTYPE_FLOAT16},
    {.says = "B was limited to the range of float16", .before = before_clamp, .role = "b", .by = 65504},
    {.says = "B was transposed", .before = before_transpose, .role = "b"},
    {.says = "elements of B with magnitudes below 2^-14 (subnormal in float16) were set to 0", .before = before_flush, .role = "b", .by = 0x1p-14},
    {.says = NULL},
};
