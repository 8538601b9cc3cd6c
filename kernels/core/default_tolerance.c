#include "kernels/core/default_tolerance.h"

/* rtol of float16 and bfloat16 is about one unit in the last place (2^-10 and 2^-7). Adjacent numbers of an 8-bit or
 * 4-bit float dtype differ by an eighth or more; for these dtypes, rtol is 0.2, and 85 % of the elements must meet the
 * bound. The bounds of float64 are those of FlashInfer's own tests. Outputs of all other dtypes must equal the ground
 * truth. This includes float8_e8m0fnu, whose numbers are powers of two that serve as scales. */
struct rule rule_default(enum dtype dtype)
{
	static const struct rule rules[DTYPE_COUNT] = {
	    [DTYPE_FLOAT64] = {1e-7, 1e-7, 1},       [DTYPE_FLOAT32] = {1e-5, 1e-5, 1},
	    [DTYPE_FLOAT16] = {1e-3, 1e-3, 1},       [DTYPE_BFLOAT16] = {8e-3, 1e-2, 1},
	    [DTYPE_FLOAT8_E4M3FN] = {1e-1, 2e-1, 0.85}, [DTYPE_FLOAT8_E5M2] = {1e-1, 2e-1, 0.85},
	    [DTYPE_FLOAT4_E2M1] = {1e-1, 2e-1, 0.85},
	};
	struct rule rule = rules[dtype];

	if (rule.hit_ratio == 0)
		rule.hit_ratio = 1; /* the table has no row for this dtype */
	return rule;
}
