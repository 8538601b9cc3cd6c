#include "kernels/gdn/mistakes.h"

#include "kernels/common/linear_attention/shared_mistakes.h"
#include "kernels/gdn/roles.h"

const struct op_mistake gdn_mistakes[] = {
    RECURRENCE_SHARED_MISTAKES,
    {.says = "a (for the decay) and b (for the strength) were swapped", .before = before_swap, .role = "a", .other = "b"},
    {.says = "decay and strength were swapped after both were computed", .in_oracle = RECURRENCE_SWAPPED_VALUES},
    {.says = "every token used the initial state, not the state after the previous token", .in_oracle = RECURRENCE_STATE_AGAIN},
    {.says = "the decay was left out", .in_oracle = RECURRENCE_NO_DECAY},
    {.says = "every token used the decay of the first token", .before = before_first, .role = "a", .by = -2},
    {.says = "a scale of 0 was used unchanged, not replaced by 1 / sqrt(K)", .before = recurrence_scale_of_zero, .role = "scale", .by = 1e-300},
    {.says = "a scale of 0 was replaced by 1, not by 1 / sqrt(K)", .before = recurrence_scale_of_zero, .role = "scale", .by = 1},
    {.says = "a scale of 1 was replaced by 1 / sqrt(K)", .before = recurrence_scale_of_one, .role = "scale"},
    {.says = "b was used for a", .before = before_copy, .role = "a", .other = "b"},
    {.says = "a was used for b", .before = before_copy, .role = "b", .other = "a"},
    {.says = "the sigmoid of beta was left out", .in_oracle = RECURRENCE_RAW_BETA},
    {.says = "beta went through a sigmoid only if an element of beta was below 0 or above 1", .in_oracle = RECURRENCE_BETA_BY_VALUE},
    {.says = "the normalisation of q and k was left out, or added where the definition has none", .in_oracle = RECURRENCE_OTHER_L2NORM},
    {.says = "the states were transposed", .before = before_variant, .by = GDN_V_LAST},
    {.says = "states were updated although updates are disabled", .before = before_set, .role = "frozen", .by = 0},
    {.says = "states were never updated", .before = before_set, .role = "frozen", .by = 1},
    {.says = "states were updated only if updates are disabled", .before = before_not, .role = "frozen"},
    {.says = "the unused states, which belong to no sequence, were set to 0", .after = after_clear_others, .role = "new_state", .other = "indices"},
    {.says = "the new state of a sequence was stored at the sequence's index, not in its slot", .after = after_places, .role = "new_state", .other = "indices"},
    {.says = "the new state of a sequence was stored in the slot after its own", .after = after_places, .role = "new_state", .other = "indices", .by = 1},
    {.says = "the slot indices were ignored: sequence i used slot i", .before = before_iota, .role = "indices"},
    {.says = NULL},
};
