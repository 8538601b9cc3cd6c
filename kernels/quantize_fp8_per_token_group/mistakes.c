#include "kernels/quantize_fp8_per_token_group/mistakes.h"

#include "kernels/core/mistakes.h"

static bool inverted(struct op_variation *v, const struct op_mistake *mistake)
{
	int at = variation_output(v, mistake->role);
	double *scale = at < 0 ? NULL : v->out[at].data;

	for (int64_t i = 0; scale != NULL && i < v->out[at].elements; i++)
		scale[i] = 1 / scale[i];
	return scale != NULL;
}

const struct op_mistake quantize_mistakes[] = {
    {.says = "the scale was computed from the largest magnitude of the whole row", .in_oracle = QUANTIZE_MOST_OF_ROW},
    {.says = "the scale was computed from the largest magnitude of the whole "
	     "tensor", .in_oracle = QUANTIZE_MOST_OF_TENSOR},
    {.says = "the scale of a group was computed from the largest magnitude over all "
	     "tokens", .in_oracle = QUANTIZE_MOST_OF_TOKENS},
    {.says = "the scale was computed from the largest number, not from the largest "
	     "magnitude", .in_oracle = QUANTIZE_LARGEST_NUMBER},
    {.says = "the scale was computed from the smallest number, not from the largest "
	     "magnitude", .in_oracle = QUANTIZE_SMALLEST_NUMBER},
    {.says = "each group began one channel too late", .in_oracle = QUANTIZE_ONE_CHANNEL_LATER},
    {.says = "elements were divided by the scale of the previous group", .in_oracle = QUANTIZE_PREVIOUS_GROUP},
    {.says = "elements were divided by the scale of the next group", .in_oracle = QUANTIZE_NEXT_GROUP},
    {.says = "the scale of a group was computed only from the group's first half", .in_oracle = QUANTIZE_FIRST_HALF},
    {.says = "the scale of a group was computed without the group's last channel", .in_oracle = QUANTIZE_LAST_LEFT_OUT},
    {.says = "the scale of a group was computed without the group's first "
	     "channel", .in_oracle = QUANTIZE_FIRST_LEFT_OUT},
    {.says = "the floor was added to the largest magnitude, not used as its lower "
	     "limit", .in_oracle = QUANTIZE_FLOOR_ADDED},
    {.says = "the floor was applied to the scale, not to the largest magnitude", .in_oracle = QUANTIZE_FLOOR_OF_SCALE},
    {.says = "the size of groups was doubled", .in_oracle = QUANTIZE_DOUBLE_GROUP},
    {.says = "the largest number of float8_e4m3fn was assumed to be 240, not 448", .in_oracle = QUANTIZE_FOR_240},
    {.says = "groups were scaled so that the largest quotient is 480, not 448", .in_oracle = QUANTIZE_FOR_480},
    {.says = "scales were rounded to bfloat16", .in_oracle = QUANTIZE_SCALE_BFLOAT16},
    {.says = "elements were divided by a scale rounded to bfloat16, not by the scale that is "
	     "returned", .in_oracle = QUANTIZE_FACTOR_BFLOAT16},
    {.says = "scales were rounded to float16", .in_oracle = QUANTIZE_SCALE_FLOAT16},
    {.says = "scales were rounded up to powers of two", .in_oracle = QUANTIZE_SCALE_POWER},
    {.says = "elements were divided by the scale twice", .in_oracle = QUANTIZE_SQUARED},
    {.says = "quotients were rounded to float8_e5m2", .in_oracle = QUANTIZE_TO_E5M2},
    {.says = "quotients were truncated, not rounded", .in_oracle = QUANTIZE_TRUNCATED},
    {.says = "ties were rounded away from zero, not to even", .in_oracle = QUANTIZE_AWAY},
    {.says = "quotients were rounded to bfloat16 first", .in_oracle = QUANTIZE_QUOTIENT_BFLOAT16},
    {.says = "quotients were rounded to float16 first", .in_oracle = QUANTIZE_QUOTIENT_FLOAT16},
    {.says = "quotients were limited to 416", .in_oracle = QUANTIZE_LIMIT_416},
    {.says = "subnormal quotients (below 2^-6) were 0", .in_oracle = QUANTIZE_NO_SUBNORMALS},
    {.says = "the sign of quotients was lost", .in_oracle = QUANTIZE_NO_SIGN},
    {.says = "the inverse of the scale was returned", .after = inverted, .role = "scale"},
    {.says = "every scale was 1", .after = after_set, .role = "scale", .by = 1},
    {.says = NULL},
};
