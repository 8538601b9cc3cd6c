#include "kernels/moe/confusions.h"

#include "kernels/core/confusion.h"
#include "kernels/moe/experts.h"

const struct op_confusion moe_confusions[] = {
    {.says = "gate and up were swapped", .mistake = MOE_SWAPPED},
    {.says = "silu were left out", .mistake = MOE_NO_SILU},
    {.says = "gelu were used for silu", .mistake = MOE_GELU},
    {.says = "sigmoid were used for silu", .mistake = MOE_SIGMOID},
    {.says = "silu were applied to the product of gate and up", .mistake = MOE_SILU_OF_PRODUCT},
    {.says = "one expert more than top_k were chosen", .mistake = MOE_PICK_MORE},
    {.says = "one expert less than top_k were chosen", .mistake = MOE_PICK_LESS},
    {.says = "the limit of groups were ignored", .mistake = MOE_NO_GROUPS},
    {.says = "one group more than topk_group were kept", .mistake = MOE_GROUP_MORE},
    {.says = "weights were taken from the biased scores", .mistake = MOE_BIASED},
    {.says = "weights were not divided by their sum", .mistake = MOE_NOT_DIVIDED},
    {.says = "every chosen expert had the same weight", .mistake = MOE_EVEN},
    {.says = "the routing bias were left out", .before = before_set, .role = "bias", .by = 0},
    {.says = "the routed scaling factor were left out", .before = before_set, .role = "scaling", .by = 1},
    {.says = "the routed scaling factor were 2.5, whatever is given", .before = before_set, .role = "scaling", .by = 2.5},
    {.says = "the offset of the local experts were ignored", .before = before_set, .role = "offset", .by = 0},
    {.says = "the offset of the local experts were one too large", .before = before_add, .role = "offset", .by = 1},
    {.says = "the routing weight were applied on the other side: to the input, or to the output", .before = before_variant, .by = MOE_WEIGHT_ON_INPUT},
    {.says = "the scales of the hidden states were left out", .before = before_set, .role = "hidden_scale", .by = 1},
    {.says = "the scale of the second product were left out", .before = before_set, .role = "factor_down", .by = 1},
    {.says = "the weights of the choices were left out", .before = before_set, .role = "id_weights", .by = 1},
    {.says = NULL},
};
