#include "kernels/gdn/confusions.h"

#include "kernels/common/linear_attention/shared_confusions.h"
#include "kernels/gdn/roles.h"

const struct op_confusion gdn_confusions[] = {
    RECURRENCE_SHARED_CONFUSIONS,
    {.says = "a and b were swapped (decay and strength)", .before = before_swap, .role = "a", .other = "b"},
    {.says = "b were used for a", .before = before_copy, .role = "a", .other = "b"},
    {.says = "a were used for b", .before = before_copy, .role = "b", .other = "a"},
    {.says = "the sigmoid of beta were left out", .mistake = RECURRENCE_RAW_BETA},
    {.says = "beta went through a sigmoid only if it is not within 0 and 1", .mistake = RECURRENCE_BETA_BY_VALUE},
    {.says = "the normalisation of q and k were left out, or made where there is none", .mistake = RECURRENCE_OTHER_L2NORM},
    {.says = "the states were transposed", .before = before_variant, .by = GDN_V_LAST},
    {.says = "states were updated in any case", .before = before_set, .role = "frozen", .by = 0},
    {.says = "states were never updated", .before = before_set, .role = "frozen", .by = 1},
    {.says = "states were updated only where they must not be", .before = before_not, .role = "frozen"},
    {.says = "states that no sequence uses were 0", .after = after_clear_others, .role = "new_state", .other = "indices"},
    {.says = "the new state of a sequence were in the place of the sequence, not in its slot", .after = after_places, .role = "new_state", .other = "indices"},
    {.says = "the new state of a sequence were in the slot after its own", .after = after_places, .role = "new_state", .other = "indices", .by = 1},
    {.says = "the slots of states were ignored", .before = before_iota, .role = "indices"},
    {.says = NULL},
};
