#include "kernels/gdn/confusions.h"

#include "kernels/common/linear_attention/recurrence_work.h"
#include "kernels/core/confusion.h"
#include "kernels/gdn/roles.h"

const struct op_confusion gdn_confusions[] = {
    {.says = "the logarithm of the decay were used as the decay, without its exponential", .mistake = RECURRENCE_NO_EXP},
    {.says = "the softplus of the gate were left out", .mistake = RECURRENCE_SOFTPLUS},
    {.says = "A_log were used without its exponential", .mistake = RECURRENCE_NO_A_EXP},
    {.says = "dt_bias were left out", .before = before_set, .role = "dt_bias", .by = 0},
    {.says = "a and b were swapped (decay and strength)", .before = before_swap, .role = "a", .other = "b"},
    {.says = "b were used for a", .before = before_copy, .role = "a", .other = "b"},
    {.says = "a were used for b", .before = before_copy, .role = "b", .other = "a"},
    {.says = "the state were decayed after the token, not before", .mistake = RECURRENCE_DECAY_LAST},
    {.says = "the delta rule read the state before the decay", .mistake = RECURRENCE_RECALL_FIRST},
    {.says = "nothing were erased: beta k v^T is added, without the delta rule", .mistake = RECURRENCE_NOT_ERASED},
    {.says = "the output were read before the token updates the state", .mistake = RECURRENCE_ANSWER_FIRST},
    {.says = "the state did not carry over from token to token", .mistake = RECURRENCE_ADDED_NOTHING},
    {.says = "beta were left out (taken as 1)", .mistake = RECURRENCE_BETA_1},
    {.says = "the sigmoid of beta were left out", .mistake = RECURRENCE_RAW_BETA},
    {.says = "the normalisation of q and k were the other way: left out, or made", .before = before_variant, .by = GDN_L2NORM},
    {.says = "q alone were not normalised (or were, where neither is)", .mistake = RECURRENCE_Q_NORM},
    {.says = "k alone were not normalised (or were, where neither is)", .mistake = RECURRENCE_K_NORM},
    {.says = "the states were transposed", .before = before_variant, .by = GDN_V_LAST},
    {.says = "the initial state were transposed", .before = before_transpose, .role = "state"},
    {.says = "the new state were transposed", .after = after_transpose, .role = "new_state"},
    {.says = "the initial state were ignored", .before = before_set, .role = "state", .by = 0},
    {.says = "the new state were the initial one", .after = after_input, .role = "new_state", .other = "state"},
    {.says = "heads of q and k were tiled, not interleaved", .mistake = RECURRENCE_TILED},
    {.says = "the scale were left out", .before = before_set, .role = "scale", .by = 1},
    {.says = "the scale were 1 / sqrt(K), whatever is given", .before = before_root_scale, .role = "scale", .other = "q"},
    {.says = "the slots of states were ignored", .before = before_iota, .role = "indices"},
    {.says = "the last token of every sequence were left out", .mistake = RECURRENCE_LAST_TOKEN},
    {.says = "the state were rounded to bfloat16 after each token", .mistake = RECURRENCE_ROUNDED_STATE},
    {.says = "the state were rounded to float16 after each token", .mistake = RECURRENCE_HALF_STATE},
    {.says = NULL},
};
