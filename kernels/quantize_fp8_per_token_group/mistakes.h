/* mistakes - the mistakes that people make in references of quantising groups of channels to float8. */
#ifndef REFTEST_KERNELS_QUANTIZE_FP8_PER_TOKEN_GROUP_MISTAKES_H
#define REFTEST_KERNELS_QUANTIZE_FP8_PER_TOKEN_GROUP_MISTAKES_H

#include "kernels/core/op.h"

/* The mistakes that the oracle simulates. The code depends on their order: first the mistakes in the largest magnitude
 * of a group, then the mistakes in the scale, and from QUANTIZE_TO_E5M2 on, the mistakes in the quotient. */
enum quantize_mistake {
	QUANTIZE_NO_MISTAKE,
	QUANTIZE_MOST_OF_ROW,
	QUANTIZE_MOST_OF_TENSOR,
	QUANTIZE_MOST_OF_TOKENS,
	QUANTIZE_LARGEST_NUMBER,
	QUANTIZE_SMALLEST_NUMBER,
	QUANTIZE_ONE_CHANNEL_LATER,
	QUANTIZE_PREVIOUS_GROUP,
	QUANTIZE_NEXT_GROUP,
	QUANTIZE_FIRST_HALF,
	QUANTIZE_LAST_LEFT_OUT,
	QUANTIZE_FIRST_LEFT_OUT,
	QUANTIZE_FLOOR_ADDED,
	QUANTIZE_FLOOR_OF_SCALE,
	QUANTIZE_DOUBLE_GROUP,
	QUANTIZE_FOR_240,
	QUANTIZE_FOR_480,
	QUANTIZE_SCALE_BFLOAT16,
	QUANTIZE_FACTOR_BFLOAT16,
	QUANTIZE_SCALE_FLOAT16,
	QUANTIZE_SCALE_POWER,
	QUANTIZE_SQUARED,
	QUANTIZE_TO_E5M2,
	QUANTIZE_TRUNCATED,
	QUANTIZE_AWAY,
	QUANTIZE_QUOTIENT_BFLOAT16,
	QUANTIZE_QUOTIENT_FLOAT16,
	QUANTIZE_LIMIT_416,
	QUANTIZE_NO_SUBNORMALS,
	QUANTIZE_NO_SIGN
};

/* all mistakes; the table ends with a row whose `says` is NULL */
extern const struct op_mistake quantize_mistakes[];

#endif
