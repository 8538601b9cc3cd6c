#include "kernels/mamba_ssu/mistakes.h"

#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/core/mistakes.h"
#include "kernels/mamba_ssu/roles.h"

/* Turns some sequences into padding: the sequences with slot 0 if op_mistake.by is 0, and all sequences after the first
 * padding sequence if op_mistake.by is 1. */
static bool change_slots(struct op_variation *v, const struct op_mistake *mistake)
{
	struct ssu_roles roles = ssu_roles_of(v->c.problem);
	struct tensor *slots = variation_change(v, roles.indices);
	int64_t pad = ssu_pad(&v->c, &roles);
	bool ended = false;

	for (int64_t n = 0; slots != NULL && n < slots->elements; n++) {
		int64_t slot = check_integer(slots, n);

		ended = ended || (mistake->by > 0 && slot == pad);
		if (ended || (mistake->by == 0 && slot == 0))
			dtype_store(slots->data, slots->dtype, n, (double)pad);
	}
	return slots != NULL;
}

const struct op_mistake ssu_mistakes[] = {
    {.says = "the decay was exp(A), not exp(A dt)", .in_oracle = NO_STEP_IN_DECAY},
    {.says = "the decay was A dt, not exp(A dt)", .in_oracle = NO_EXP},
    {.says = "A was used as a logarithm: the decay was exp(-exp(A) dt)", .in_oracle = A_LOG},
    {.says = "softplus was not applied to dt, or it was applied although the definition does not do so", .in_oracle = OTHER_SOFTPLUS},
    {.says = "softplus was applied to dt although dt_softplus is false", .before = before_set, .role = "softplus", .by = 1},
    {.says = "softplus was not applied to dt although dt_softplus is true", .before = before_set, .role = "softplus", .by = 0},
    {.says = "softplus was not applied to values of dt above 5", .in_oracle = SOFTPLUS_UP_TO, .by = 5},
    {.says = "the bias was added to dt after the softplus", .in_oracle = SOFTPLUS_FIRST},
    {.says = "dt with its bias was rounded to bfloat16", .in_oracle = ROUNDED_STEP},
    {.says = "negative values of dt were set to 0", .in_oracle = STEP_AT_LEAST_0},
    {.says = "negative values of dt lost their sign", .in_oracle = STEP_MAGNITUDE},
    {.says = "all elements of a head used the dt of the head's first element", .in_oracle = FIRST_STEP},
    {.says = "the decay was left out", .in_oracle = NO_DECAY},
    {.says = "the decay was 1 + A dt, not exp(A dt)", .in_oracle = LINEAR_DECAY},
    {.says = "all elements of a head used the A of the head's first element", .in_oracle = FIRST_DECAY},
    {.says = "the product dt B, without the factor x, was added to the state", .in_oracle = NO_X},
    {.says = "the last element of the state was not read", .in_oracle = LAST_STATE},
    {.says = "the groups of B, but not those of C, were tiled instead of interleaved", .in_oracle = TILED_B},
    {.says = "the groups of C, but not those of B, were tiled instead of interleaved", .in_oracle = TILED_C},
    {.says = "all heads used the first group of B, but the correct groups of C", .in_oracle = FIRST_GROUP_B},
    {.says = "all heads used the first group of C, but the correct groups of B", .in_oracle = FIRST_GROUP_C},
    {.says = "the product x B, without the factor dt, was added to the state", .in_oracle = NO_STEP_IN_X},
    {.says = "softplus was not applied to dt in the term dt x B, which is added to the state", .in_oracle = RAW_STEP_IN_X},
    {.says = "the output was computed from the old state, before the decay and before x was added to the state", .in_oracle = READ_FIRST},
    {.says = "the output was computed after the decay, but before x was added to the state", .in_oracle = READ_DECAYED},
    {.says = "x was added to the state before the decay was applied", .in_oracle = X_FIRST},
    {.says = "the skip was D dt x, not D x", .in_oracle = STEP_ON_D},
    {.says = "the groups of B and C were tiled, not interleaved", .in_oracle = TILED},
    {.says = "the first group of B and C was used for all heads", .in_oracle = FIRST_GROUP},
    {.says = "the gate was sigmoid(z), not silu(z)", .in_oracle = SIGMOID_GATE},
    {.says = "the gate was z, not silu(z)", .in_oracle = PLAIN_GATE},
    {.says = "the gate was left out", .in_oracle = NO_GATE},
    {.says = "the gate was applied before the skip", .in_oracle = GATE_FIRST},
    {.says = "the gate was applied before the skip, and once more after it", .in_oracle = GATE_TWICE},
    {.says = "the dt bias was left out", .before = before_set, .role = "dt_bias", .by = 0},
    {.says = "the skip D x was left out", .before = before_set, .role = "d", .by = 0},
    {.says = "B and C were swapped", .before = before_swap, .role = "b", .other = "c"},
    {.says = "the initial state was ignored", .in_oracle = NO_STATE},
    {.says = "the state was not updated", .after = after_input, .role = "new_state", .other = "state"},
    {.says = "the slot indices were ignored: sequence i used slot i", .before = before_iota, .role = "indices"},
    {.says = "slot 0 was treated as padding", .before = change_slots, .by = 0},
    {.says = "the sequences after the first padding sequence were ignored", .before = change_slots, .by = 1},
    {.says = "the unused states, which belong to no sequence, were set to 0", .after = after_clear_others, .role = "new_state", .other = "indices"},
    {.says = "the new state of a sequence was stored at the sequence's index, not in its slot", .after = after_places, .role = "new_state", .other = "indices"},
    {.says = "the new state of a sequence was stored in the slot after its own", .after = after_places, .role = "new_state", .other = "indices", .by = 1},
    {.says = NULL},
};
