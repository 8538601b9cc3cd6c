/* shared_confusions - the mistakes that people make in references of every kind of linear attention, as rows of a table
 * op.confusions. Tables of families add rows of their own. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_SHARED_CONFUSIONS_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_SHARED_CONFUSIONS_H

#include "kernels/common/linear_attention/recurrence_work.h"
#include "kernels/core/confusion.h"

/* A scale of 0 means 1 / sqrt(K): the scale is `by` if 0 is given. */
bool recurrence_scale_of_zero(struct op_variation *v, const struct op_confusion *confusion);
/* The scale is 1 / sqrt(K) if 1 is given. */
bool recurrence_scale_of_one(struct op_variation *v, const struct op_confusion *confusion);

/* clang-format off */
#define RECURRENCE_SHARED_CONFUSIONS \
    {.says = "the gate (the logarithm of the decay) were used as the decay, without its exponential", .mistake = RECURRENCE_NO_EXP}, \
    {.says = "the softplus of the gate were left out", .mistake = RECURRENCE_SOFTPLUS}, \
    {.says = "A_log were used without its exponential", .mistake = RECURRENCE_NO_A_EXP}, \
    {.says = "A_log were left out", .before = before_set, .role = "a_log", .by = 0}, \
    {.says = "dt_bias were left out", .before = before_set, .role = "dt_bias", .by = 0}, \
    {.says = "the state were decayed after the token, not before", .mistake = RECURRENCE_DECAY_LAST}, \
    {.says = "the delta rule read the state before the decay", .mistake = RECURRENCE_RECALL_FIRST}, \
    {.says = "the delta rule read the state with q, not with k", .mistake = RECURRENCE_RECALL_QUERY}, \
    {.says = "nothing were erased: beta k v^T is added, without the delta rule", .mistake = RECURRENCE_NOT_ERASED}, \
    {.says = "beta scaled v alone, not what the state had for k", .mistake = RECURRENCE_VALUE_STRENGTH}, \
    {.says = "the output were read before the token updates the state", .mistake = RECURRENCE_ANSWER_FIRST}, \
    {.says = "the state did not carry over from token to token", .mistake = RECURRENCE_ADDED_NOTHING}, \
    {.says = "beta were left out (taken as 1)", .mistake = RECURRENCE_BETA_1}, \
    {.says = "q alone were not normalised (or were, where neither is)", .mistake = RECURRENCE_Q_NORM}, \
    {.says = "k alone were not normalised (or were, where neither is)", .mistake = RECURRENCE_K_NORM}, \
    {.says = "the initial state were transposed", .before = before_transpose, .role = "state"}, \
    {.says = "the final state were transposed", .after = after_transpose, .role = "new_state"}, \
    {.says = "the initial state were ignored", .before = before_set, .role = "state", .by = 0}, \
    {.says = "the final state were the initial one", .after = after_input, .role = "new_state", .other = "state"}, \
    {.says = "heads of q and k were tiled, not interleaved", .mistake = RECURRENCE_TILED}, \
    {.says = "the scale were left out", .before = before_set, .role = "scale", .by = 1}, \
    {.says = "the scale were 1 / sqrt(K), not the given one", .before = before_root_scale, .role = "scale", .other = "q"}, \
    {.says = "the last token of every sequence were left out", .mistake = RECURRENCE_LAST_TOKEN}, \
    {.says = "the state were rounded to bfloat16 after each token", .mistake = RECURRENCE_ROUNDED_STATE}, \
    {.says = "the state were rounded to float16 after each token", .mistake = RECURRENCE_HALF_STATE}, \
    {.says = "the state were rounded to bfloat16 before each token", .mistake = RECURRENCE_ROUNDED_BEFORE}, \
    {.says = "the state were rounded to float16 before each token", .mistake = RECURRENCE_HALF_BEFORE}, \
    {.says = "the state were rounded to bfloat16 after each decay", .mistake = RECURRENCE_ROUNDED_DECAYED}, \
    {.says = "the state were rounded to float16 after each decay", .mistake = RECURRENCE_HALF_DECAYED}
/* clang-format on */

#endif
