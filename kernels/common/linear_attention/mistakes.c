/* mistakes - mistakes that references of linear attention may contain. */
#include <math.h>

#include "kernels/common/linear_attention/recurrence.h"
#include "kernels/common/linear_attention/shared_mistakes.h"

/* If the case passes the scale `given`, replaces it by `by`. */
static bool scale_of(struct op_variation *v, const char *role, double given, double by)
{
	int at = variation_input(v, role);

	if (at < 0)
		return false;
	if (v->c.scalar[at] == given) {
		v->c.scalar[at] = by;
		v->c.absent &= ~(UINT64_C(1) << at); /* if the scale was absent (value 0), it is now given */
	}
	return true;
}

static double root_of(const struct op_variation *v)
{
	int q = variation_input(v, "q");

	return q < 0 || v->in[q].rank < 1 ? 1 : 1 / sqrt((double)v->in[q].shape[v->in[q].rank - 1]);
}

bool recurrence_scale_of_zero(struct op_variation *v, const struct op_mistake *mistake)
{
	return scale_of(v, mistake->role, 0, mistake->by);
}

bool recurrence_scale_of_one(struct op_variation *v, const struct op_mistake *mistake)
{
	return scale_of(v, mistake->role, 1, root_of(v));
}

const struct op_mistake recurrence_mistakes[] = {
    RECURRENCE_SHARED_MISTAKES,
    {.says = "the gate was left out (no decay)", .before = before_set, .role = "gate", .by = 0},
    {.says = "the gate was left out (no decay)", .before = before_set, .role = "gamma", .by = 0},
    {.says = "the gate was applied twice", .before = before_scale, .role = "gamma", .by = 2},
    {.says = "the gate was applied twice", .before = before_scale, .role = "gate", .by = 2},
    {.says = "the decay was 2^g, not e^g", .in_oracle = RECURRENCE_BASE_2},
    {.says = "a sigmoid was applied to the gate, not an exponential", .in_oracle = RECURRENCE_SIGMOID_GATE},
    {.says = "the gate of the first key was used for all keys", .in_oracle = RECURRENCE_FIRST_GATE},
    {.says = "the mean of the gates was used for all keys", .in_oracle = RECURRENCE_MEAN_GATE},
    {.says = "decays were rounded to bfloat16", .in_oracle = RECURRENCE_ROUNDED_STAYS},
    {.says = "decays were rounded to float16", .in_oracle = RECURRENCE_HALF_STAYS},
    {.says = "the gate was computed with softplus, not with lower_bound", .in_oracle = RECURRENCE_BOUND_SOFTPLUS},
    {.says = "exp(A_log) scaled only the gate, not the sum of gate and dt_bias", .in_oracle = RECURRENCE_A_ON_GATE},
    {.says = "lower_bound was always -5", .before = before_set, .role = "lower_bound", .by = -5},
    {.says = "lower_bound was always -1", .before = before_set, .role = "lower_bound", .by = -1},
    {.says = "a sigmoid was applied to beta, or the sigmoid of beta was left out", .in_oracle = RECURRENCE_OTHER_SIGMOID},
    {.says = "a sigmoid was applied to beta where there must be none", .before = before_set, .role = "sigmoid", .by = 1},
    {.says = "the sigmoid of beta was left out", .before = before_set, .role = "sigmoid", .by = 0},
    {.says = "a sigmoid was applied to beta only if an element of beta was below 0 or above 1", .in_oracle = RECURRENCE_BETA_BY_VALUE},
    {.says = "beta was doubled, or its doubling was left out", .in_oracle = RECURRENCE_OTHER_DOUBLED},
    {.says = "beta was doubled where it must not be", .before = before_set, .role = "doubled", .by = 1},
    {.says = "beta was not doubled where it must be", .before = before_set, .role = "doubled", .by = 0},
    {.says = "beta was doubled before its sigmoid", .in_oracle = RECURRENCE_DOUBLED_FIRST},
    {.says = "the normalisation of q and k was left out, or added where the definition has none", .in_oracle = RECURRENCE_OTHER_L2NORM},
    {.says = "the states were transposed", .before = before_variant, .by = RECURRENCE_V_FIRST},
    {.says = "q and k were swapped", .in_oracle = RECURRENCE_SWAPPED},
    {.says = "the state was lost after each chunk of 16 tokens", .in_oracle = RECURRENCE_STATE_LOST, .by = 16},
    {.says = "the state was lost after each chunk of 32 tokens", .in_oracle = RECURRENCE_STATE_LOST, .by = 32},
    {.says = "the state was lost after each chunk of 64 tokens", .in_oracle = RECURRENCE_STATE_LOST, .by = 64},
    {.says = "the state was lost after each chunk of 128 tokens", .in_oracle = RECURRENCE_STATE_LOST, .by = 128},
    {.says = "a scale of 0 was used unchanged, not replaced by 1 / sqrt(K)", .before = recurrence_scale_of_zero, .role = "scale", .by = 1e-300},
    {.says = "a scale of 0 was replaced by 1, not by 1 / sqrt(K)", .before = recurrence_scale_of_zero, .role = "scale", .by = 1},
    {.says = "a scale of 1 was replaced by 1 / sqrt(K)", .before = recurrence_scale_of_one, .role = "scale"},
    {.says = NULL},
};
