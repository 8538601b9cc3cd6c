#include "kernels/gdn/confusions.h"

#include "kernels/common/linear_attention/shared_confusions.h"
#include "kernels/gdn/roles.h"

const struct op_confusion gdn_confusions[] = {
    RECURRENCE_SHARED_CONFUSIONS,
    {.says = "a and b were swapped (decay and strength)", .before = before_swap, .role = "a", .other = "b"},
    {.says = "b were used for a", .before = before_copy, .role = "a", .other = "b"},
    {.says = "a were used for b", .before = before_copy, .role = "b", .other = "a"},
    {.says = "the sigmoid of beta were left out", .mistake = RECURRENCE_RAW_BETA},
    {.says = "the normalisation of q and k were left out, or made where there is none", .before = before_variant, .by = GDN_L2NORM},
    {.says = "the states were transposed", .before = before_variant, .by = GDN_V_LAST},
    {.says = "the slots of states were ignored", .before = before_iota, .role = "indices"},
    {.says = NULL},
};
