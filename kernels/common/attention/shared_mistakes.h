/* shared_mistakes - mistakes that references of any kind of attention may contain, as rows of the table op.mistakes. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_SHARED_MISTAKES_H
#define REFTEST_KERNELS_COMMON_ATTENTION_SHARED_MISTAKES_H

#include "kernels/common/attention/attention.h"
#include "kernels/core/mistakes.h"

#define ATTENTION_LN_2 0.69314718055994530942

/* The mistake: the scale is 1 / sqrt(n), where n is the length of both parts of a key together. */
bool attention_scale_of_both_parts(struct op_variation *v, const struct op_mistake *mistake);
/* The mistake: the scale is 1 / sqrt(op_mistake.by), or 1 / sqrt(head dim) if op_mistake.by is 0. */
bool attention_scale_of_dim(struct op_variation *v, const struct op_mistake *mistake);
/* The mistake: a scale of 1 counts as not given, and is replaced by 1 / sqrt(op_mistake.by), or by 1 / sqrt(head dim)
 * if op_mistake.by is 0. */
bool attention_scale_of_one(struct op_variation *v, const struct op_mistake *mistake);
/* The mistake: every query is replaced with the first query, in both parts of the query. */
bool attention_first_query(struct op_variation *v, const struct op_mistake *mistake);
/* The mistake: the dot products of the rotary parts are not scaled. */
bool attention_unscaled_rotary(struct op_variation *v, const struct op_mistake *mistake);
/* Two mistakes for definitions in which q and k end with a rotary part, so that they are longer than v.
 * attention_no_tail sets the rotary part of q to 0. attention_keys_for_values uses k without its rotary part as v. */
bool attention_no_tail(struct op_variation *v, const struct op_mistake *mistake);
bool attention_keys_for_values(struct op_variation *v, const struct op_mistake *mistake);

/* clang-format off */
#define ATTENTION_SHARED_MISTAKES \
    {.says = "lse was a natural logarithm, not of base 2", .after = after_scale, .role = "lse", .by = ATTENTION_LN_2}, \
    {.says = "lse was converted to base 2 twice", .after = after_scale, .role = "lse", .by = 1 / ATTENTION_LN_2}, \
    {.says = "lse of a query without keys was 0, not -infinity", .after = after_infinity, .role = "lse", .by = 0}, \
    {.says = "the scale was left out", .before = before_set, .role = "scale", .by = 1}, \
    {.says = "the scale was 1 / sqrt(head dim), not the given one", .before = before_root_scale, .role = "scale", .other = "q"}, \
    {.says = "the scale was 1 / sqrt(latent dim + rotary dim), not the given one", .before = attention_scale_of_both_parts, .role = "scale"}, \
    {.says = "the scale was 1 / sqrt(192), that of heads of 128 with a rotary part of 64, not the given one", .before = attention_scale_of_dim, .role = "scale", .by = 192}, \
    {.says = "a scale of 1 was ignored, and the scale was 1 / sqrt(head dim)", .before = attention_scale_of_one, .role = "scale"}, \
    {.says = "a scale of 1 was ignored, and the scale was 1 / sqrt(192)", .before = attention_scale_of_one, .role = "scale", .by = 192}, \
    {.says = "lse was that of the logits before they are scaled", .in_oracle = ATTENTION_UNSCALED_LSE}, \
    {.says = "the causal mask was shifted by one: a query sees one key too many", .in_oracle = ATTENTION_MASK_LATE}, \
    {.says = "the causal mask was shifted by one: a query does not see its own key", .in_oracle = ATTENTION_MASK_EARLY}, \
    {.says = "the causal mask was aligned at the first key, not at the last", .in_oracle = ATTENTION_MASK_AT_START}, \
    {.says = "there was no causal mask", .in_oracle = ATTENTION_NO_MASK}, \
    {.says = "there was no causal mask, except that a query without keys has no output", .in_oracle = ATTENTION_NO_MASK_IF_SEEN}, \
    {.says = "there was a causal mask", .in_oracle = ATTENTION_MASKED}, \
    {.says = "the last key of every sequence was left out", .in_oracle = ATTENTION_LAST_KEY}, \
    {.says = "the last key of every sequence was left out, even if it is the only one", .in_oracle = ATTENTION_ANY_LAST_KEY}, \
    {.says = "the first key of every sequence was left out", .in_oracle = ATTENTION_FIRST_KEY}, \
    {.says = "the last key was left out if the number of keys is a multiple of 32", .in_oracle = ATTENTION_LAST_OF_MULTIPLE, .by = 32}, \
    {.says = "the last key was left out if the number of keys is a multiple of 64", .in_oracle = ATTENTION_LAST_OF_MULTIPLE, .by = 64}, \
    {.says = "the last key was left out if the number of keys is a multiple of 128", .in_oracle = ATTENTION_LAST_OF_MULTIPLE, .by = 128}, \
    {.says = "keys after the 512th were left out", .in_oracle = ATTENTION_MOST_KEYS, .by = 512}, \
    {.says = "keys after the 1024th were left out", .in_oracle = ATTENTION_MOST_KEYS, .by = 1024}, \
    {.says = "keys after the 2048th were left out", .in_oracle = ATTENTION_MOST_KEYS, .by = 2048}, \
    {.says = "kv heads were tiled, not interleaved (head h reads kv head h modulo the number of kv heads)", .before = before_tile, .after = after_tile, .role = "q", .other = "k"}, \
    {.says = "query heads were grouped as [heads of a group, kv heads], not as [kv heads, heads of a group]", .before = before_tile, .role = "q", .other = "k"}, \
    {.says = "keys were used for values", .before = before_copy, .role = "v", .other = "k"}, \
    {.says = "values were used for keys", .before = before_copy, .role = "k", .other = "v"}, \
    {.says = "the rotary part (q_pe, k_pe) was left out", .before = before_set, .role = "q_pe", .by = 0}, \
    {.says = "the rotary part (the end of q and k, which are longer than v) was left out", .before = attention_no_tail, .role = "q", .other = "v"}, \
    {.says = "the products of q_pe and k_pe were not scaled", .before = attention_unscaled_rotary, .role = "q_pe", .other = "scale"}, \
    {.says = "the beginning of keys (without their rotary part) was used for values", .before = attention_keys_for_values, .role = "v", .other = "k"}, \
    {.says = "every query was the first one (both of its parts)", .before = attention_first_query, .role = "q", .other = "q_pe"}, \
    {.says = "lse was the largest logit, not the logarithm of the sum", .in_oracle = ATTENTION_LARGEST_LSE}, \
    {.says = "logits were rounded to bfloat16", .in_oracle = ATTENTION_ROUNDED_LOGITS}, \
    {.says = "probabilities were rounded to bfloat16", .in_oracle = ATTENTION_ROUNDED_WEIGHTS}, \
    {.says = "the exponentials were not divided by their sum", .in_oracle = ATTENTION_NOT_DIVIDED}, \
    {.says = "the softmax was left out", .in_oracle = ATTENTION_RAW_WEIGHTS}, \
    {.says = "the softmax had base 2", .in_oracle = ATTENTION_BASE_2}, \
    {.says = "the largest logit was not subtracted before the exponentials, which overflow", .in_oracle = ATTENTION_NO_MAXIMUM}
/* clang-format on */

#endif
