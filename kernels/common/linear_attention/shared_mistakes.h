/* shared_mistakes - the mistakes that people make in references of any kind of linear attention, as rows of the table
 * op.mistakes. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_SHARED_MISTAKES_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_SHARED_MISTAKES_H

#include "kernels/common/linear_attention/recurrence_work.h"
#include "kernels/core/mistakes.h"

/* A scale of 0 means 1 / sqrt(K). A reference with the mistake uses op_mistake.by instead. */
bool recurrence_scale_of_zero(struct op_variation *v, const struct op_mistake *mistake);
/* A reference with the mistake replaces a given scale of 1 by 1 / sqrt(K). */
bool recurrence_scale_of_one(struct op_variation *v, const struct op_mistake *mistake);

/* clang-format off */
/* Three rows for one mistake in the normalisation: in both q and k, in q only, and in k only. */
#define RECURRENCE_NORM_ROWS(kind, what, number) \
    {.says = "q and k were " what, .in_oracle = RECURRENCE_NORM(kind, RECURRENCE_OF_BOTH), .by = number}, \
    {.says = "q alone was " what, .in_oracle = RECURRENCE_NORM(kind, RECURRENCE_OF_Q), .by = number}, \
    {.says = "k alone was " what, .in_oracle = RECURRENCE_NORM(kind, RECURRENCE_OF_K), .by = number}
#define RECURRENCE_SHARED_MISTAKES \
    {.says = "the gate (the logarithm of the decay) was used as the decay, without its exponential", .in_oracle = RECURRENCE_NO_EXP}, \
    {.says = "the softplus of the gate was left out", .in_oracle = RECURRENCE_SOFTPLUS}, \
    {.says = "A_log was used without its exponential", .in_oracle = RECURRENCE_NO_A_EXP}, \
    {.says = "A_log itself was used for -exp(A_log)", .in_oracle = RECURRENCE_A_AS_IT_IS}, \
    {.says = "A_log was left out", .before = before_set, .role = "a_log", .by = 0}, \
    {.says = "dt_bias were left out", .before = before_set, .role = "dt_bias", .by = 0}, \
    {.says = "the state was decayed after the token, not before", .in_oracle = RECURRENCE_DECAY_LAST}, \
    {.says = "the state was decayed before and after the token", .in_oracle = RECURRENCE_DECAY_TWICE}, \
    {.says = "the delta rule read the state before the decay", .in_oracle = RECURRENCE_RECALL_FIRST}, \
    {.says = "the delta rule read the state with q, not with k", .in_oracle = RECURRENCE_RECALL_QUERY}, \
    {.says = "nothing was erased: beta k v^T is added, without the delta rule", .in_oracle = RECURRENCE_NOT_ERASED}, \
    {.says = "beta scaled v alone, not what the state had for k", .in_oracle = RECURRENCE_VALUE_STRENGTH}, \
    {.says = "the output was read before the token updates the state", .in_oracle = RECURRENCE_ANSWER_FIRST}, \
    {.says = "the state did not carry over from token to token", .in_oracle = RECURRENCE_ADDED_NOTHING}, \
    {.says = "beta was left out (taken as 1)", .in_oracle = RECURRENCE_BETA_1}, \
    {.says = "beta was applied twice (squared)", .in_oracle = RECURRENCE_BETA_TWICE}, \
    {.says = "the softplus of the gate was relu", .in_oracle = RECURRENCE_RELU}, \
    {.says = "the softplus of the gate was left out above 5", .in_oracle = RECURRENCE_SOFTPLUS_UP_TO, .by = 5}, \
    {.says = "dt_bias was added after the softplus", .in_oracle = RECURRENCE_BIAS_LAST}, \
    {.says = "the logarithm of the decay was at least -5", .in_oracle = RECURRENCE_LEAST_GATE, .by = -5}, \
    {.says = "the logarithm of the decay was at least -10", .in_oracle = RECURRENCE_LEAST_GATE, .by = -10}, \
    {.says = "the gate of the token before was used", .in_oracle = RECURRENCE_DECAY_BEFORE}, \
    {.says = "the state was transposed where the delta rule reads it", .in_oracle = RECURRENCE_RECALL_TURNED}, \
    {.says = "k and the value were swapped in what is added to the state (v k^T for k v^T)", .in_oracle = RECURRENCE_LEARN_TURNED}, \
    {.says = "the state was transposed where q reads it", .in_oracle = RECURRENCE_ANSWER_TURNED}, \
    {.says = "cu_seqlens were ignored: one sequence has all tokens", .in_oracle = RECURRENCE_ONE_SEQUENCE}, \
    {.says = "cu_seqlens were ignored: sequences have equal lengths", .in_oracle = RECURRENCE_EQUAL_SEQUENCES}, \
    {.says = "a sequence began with the final state of the one before", .in_oracle = RECURRENCE_RUNS_ON}, \
    {.says = "tokens were read in reverse order", .in_oracle = RECURRENCE_BACKWARDS}, \
    {.says = "q and k were normalised where they must not be", .before = before_set, .role = "l2norm", .by = 1}, \
    {.says = "q and k were not normalised where they must be", .before = before_set, .role = "l2norm", .by = 0}, \
    RECURRENCE_NORM_ROWS(RECURRENCE_NORM_SQUARED, "divided by the squared norm", 0), \
    RECURRENCE_NORM_ROWS(RECURRENCE_NORM_MEAN, "divided by the root of the mean, not of the sum, of squares", 0), \
    RECURRENCE_NORM_ROWS(RECURRENCE_NORM_1, "divided by the sum of magnitudes (the 1-norm)", 0), \
    RECURRENCE_NORM_ROWS(RECURRENCE_NORM_HEADS, "normalised over the heads", 0), \
    RECURRENCE_NORM_ROWS(RECURRENCE_NORM_INSIDE, "normalised with an epsilon of 1e-2", 1e-2), \
    RECURRENCE_NORM_ROWS(RECURRENCE_NORM_INSIDE, "normalised with an epsilon of 1e-3", 1e-3), \
    RECURRENCE_NORM_ROWS(RECURRENCE_NORM_OUTSIDE, "normalised with 1e-3 added to the norm", 1e-3), \
    RECURRENCE_NORM_ROWS(RECURRENCE_NORM_ROUNDED, "rounded to bfloat16 after the normalisation", DTYPE_BFLOAT16), \
    RECURRENCE_NORM_ROWS(RECURRENCE_NORM_ROUNDED, "rounded to float16 after the normalisation", DTYPE_FLOAT16), \
    {.says = "q alone was not normalised", .in_oracle = RECURRENCE_Q_NOT_NORMALISED}, \
    {.says = "k alone was not normalised", .in_oracle = RECURRENCE_K_NOT_NORMALISED}, \
    {.says = "q was normalised where it must not be", .in_oracle = RECURRENCE_Q_NORMALISED}, \
    {.says = "k was normalised where it must not be", .in_oracle = RECURRENCE_K_NORMALISED}, \
    {.says = "the initial state was transposed", .before = before_transpose, .role = "state"}, \
    {.says = "the final state was transposed", .after = after_transpose, .role = "new_state"}, \
    {.says = "the initial state was ignored", .in_oracle = RECURRENCE_NO_STATE}, \
    {.says = "the final state decayed once more, after the last token", .in_oracle = RECURRENCE_LAST_DECAY}, \
    {.says = "the final state was the initial one", .after = after_input, .role = "new_state", .other = "state"}, \
    {.says = "heads of q and k were tiled, not interleaved", .in_oracle = RECURRENCE_TILED}, \
    {.says = "heads of q alone were tiled, not interleaved", .in_oracle = RECURRENCE_TILED_Q}, \
    {.says = "heads of k alone were tiled, not interleaved", .in_oracle = RECURRENCE_TILED_K}, \
    {.says = "the scale was left out", .before = before_set, .role = "scale", .by = 1}, \
    {.says = "the scale was 1 / sqrt(K), not the given one", .before = before_root_scale, .role = "scale", .other = "q"}, \
    {.says = "the last token of every sequence was left out", .in_oracle = RECURRENCE_LAST_TOKEN}, \
    {.says = "the state was rounded to bfloat16 after each token", .in_oracle = RECURRENCE_ROUNDED_STATE}, \
    {.says = "the state was rounded to float16 after each token", .in_oracle = RECURRENCE_HALF_STATE}, \
    {.says = "the state was rounded to bfloat16 before each token", .in_oracle = RECURRENCE_ROUNDED_BEFORE}, \
    {.says = "the state was rounded to float16 before each token", .in_oracle = RECURRENCE_HALF_BEFORE}, \
    {.says = "the state was rounded to bfloat16 after each decay", .in_oracle = RECURRENCE_ROUNDED_DECAYED}, \
    {.says = "the state was rounded to float16 after each decay", .in_oracle = RECURRENCE_HALF_DECAYED}
/* clang-format on */

#endif
