#include "kernels/quantize_fp8_per_token_group/confusions.h"

#include "kernels/core/confusion.h"
#include "kernels/quantize_fp8_per_token_group/mistakes.h"

static bool inverted(struct op_variation *v, const struct op_confusion *confusion)
{
	int at = variation_output(v, confusion->role);
	double *scale = at < 0 ? NULL : v->out[at].data;

	for (int64_t i = 0; scale != NULL && i < v->out[at].elements; i++)
		scale[i] = 1 / scale[i];
	return scale != NULL;
}

const struct op_confusion quantize_confusions[] = {
    {.says = "the largest magnitude of the whole row set the scale", .mistake = QUANTIZE_MOST_OF_ROW},
    {.says = "the scale came from the largest magnitude of the whole tensor", .mistake = QUANTIZE_MOST_OF_TENSOR},
    {.says = "the largest magnitude over all tokens set the scale of a group", .mistake = QUANTIZE_MOST_OF_TOKENS},
    {.says = "the largest number, not the largest magnitude, set the scale", .mistake = QUANTIZE_LARGEST_NUMBER},
    {.says = "the smallest number, not the largest magnitude, set the scale", .mistake = QUANTIZE_SMALLEST_NUMBER},
    {.says = "groups began one channel later", .mistake = QUANTIZE_ONE_CHANNEL_LATER},
    {.says = "elements were divided by the scale of the previous group", .mistake = QUANTIZE_PREVIOUS_GROUP},
    {.says = "elements were divided by the scale of the next group", .mistake = QUANTIZE_NEXT_GROUP},
    {.says = "the first half of a group alone set its scale", .mistake = QUANTIZE_FIRST_HALF},
    {.says = "the last channel of a group were left out of its scale", .mistake = QUANTIZE_LAST_LEFT_OUT},
    {.says = "the first channel of a group were left out of its scale", .mistake = QUANTIZE_FIRST_LEFT_OUT},
    {.says = "the floor were added to the largest magnitude, instead of being its lower limit", .mistake = QUANTIZE_FLOOR_ADDED},
    {.says = "the lower bound were applied to the scale, not to the largest magnitude", .mistake = QUANTIZE_FLOOR_OF_SCALE},
    {.says = "groups were twice as large", .mistake = QUANTIZE_DOUBLE_GROUP},
    {.says = "the largest number of the format were 240, not 448", .mistake = QUANTIZE_FOR_240},
    {.says = "quotients were scaled for 480, not for 448", .mistake = QUANTIZE_FOR_480},
    {.says = "scales were rounded to bfloat16", .mistake = QUANTIZE_SCALE_BFLOAT16},
    {.says = "elements were divided by a scale that is rounded to bfloat16, not by the returned one", .mistake = QUANTIZE_FACTOR_BFLOAT16},
    {.says = "scales were rounded to float16", .mistake = QUANTIZE_SCALE_FLOAT16},
    {.says = "scales were rounded up to powers of two", .mistake = QUANTIZE_SCALE_POWER},
    {.says = "elements were divided by the scale twice", .mistake = QUANTIZE_SQUARED},
    {.says = "quotients were rounded to float8_e5m2", .mistake = QUANTIZE_TO_E5M2},
    {.says = "quotients were truncated, not rounded", .mistake = QUANTIZE_TRUNCATED},
    {.says = "ties were rounded away from zero, not to even", .mistake = QUANTIZE_AWAY},
    {.says = "quotients were rounded to bfloat16 first", .mistake = QUANTIZE_QUOTIENT_BFLOAT16},
    {.says = "quotients were rounded to float16 first", .mistake = QUANTIZE_QUOTIENT_FLOAT16},
    {.says = "quotients were limited to 416", .mistake = QUANTIZE_LIMIT_416},
    {.says = "subnormal quotients (below 2^-6) were 0", .mistake = QUANTIZE_NO_SUBNORMALS},
    {.says = "the sign of quotients were lost", .mistake = QUANTIZE_NO_SIGN},
    {.says = "the inverse of the scale were returned", .after = inverted, .role = "scale"},
    {.says = "every scale were 1", .after = after_set, .role = "scale", .by = 1},
    {.says = NULL},
};
