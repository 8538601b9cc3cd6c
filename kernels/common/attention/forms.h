/* forms - describes the forms in which definitions pass the inputs of attention, and defines the members of struct op
 * that all attention families share. The operation is the same for all forms; only the storage of the keys and values
 * differs:
 *
 *   ragged  q [queries, heads, d], k [keys, kv heads, d], v [keys, kv heads, value d] -> output [queries, heads, value
 *           d]; there is no cache: the keys of all sequences are stored one after the other (prefill)
 *   whole   q [queries, heads, d], k_cache and v_cache [pages, page size, kv heads, d] -> output [queries, heads, d]
 *   latent  q_nope [queries, heads, c], q_pe [queries, heads, r], ckv_cache [pages, page size, c], kpe_cache [pages,
 *           page size, r] -> output [queries, heads, c]; q_nope is already multiplied by the keys' up-projection; a
 *           logit is the sum of the dot products of both parts, ckv_cache is also the value, and all heads read the
 *           same keys
 *   sparse  the tensors of the latent form, and an input that lists the keys of each query
 *
 * Head h reads kv head h / (heads / kv heads). Further inputs are sm_scale and, except in the sparse form, kv_indptr
 * [sequences + 1]. In the forms with pages, kv_indptr contains offsets into kv_indices (page numbers), and
 * kv_last_page_len contains the number of keys in each sequence's last page. A further output is lse [queries, heads].
 * If there is no kv_last_page_len, all pages are full. Like the offset vectors, kv_last_page_len may have one element
 * more than there are sequences; this last element is never read.
 *
 * With qo_indptr, the operation is prefill. The definition's name, tags or description says whether prefill is causal
 * (attention_is_causal). Without qo_indptr, each sequence has one query. The formulas, and the result of queries that
 * see no key, are in kernels/common/attention/attention.h. In the same folder, sizes.{h,c} chooses the sizes of the
 * cases, sequence_plan.{h,c} chooses the lengths of the sequences, and input_values.{h,c} computes the inputs and
 * bounds. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_FORMS_H
#define REFTEST_KERNELS_COMMON_ATTENTION_FORMS_H

#include "kernels/common/attention/roles.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum attention_form { ATTENTION_RAGGED, ATTENTION_WHOLE, ATTENTION_LATENT, ATTENTION_SPARSE };

/* Matches a problem with a form. Returns ATTENTION_FULL or ATTENTION_CAUSAL, or -1 with a message in `why` if the
 * problem does not have the form. */
int attention_match(const struct op_problem *problem, enum attention_form form, struct err *why);

/* Returns the roles of a problem that attention_match accepted. */
struct attention_roles attention_roles_of(const struct op_problem *problem);

/* Implements op.bind. */
void attention_bind(const struct op_problem *problem, int variant, void *roles);

/* Initialises the members of struct op that are the same in all families with these forms. A file that uses this macro
 * must also include attention.h, input_values.h and sizes.h. */
#define ATTENTION_MEMBERS                                                                                                 \
	.bind = attention_bind, .modes = attention_mode_names, .sizes = attention_sizes, .edges = attention_edges,        \
	.edge_axes = attention_edge_axes, .rule = attention_rule, .scalar = attention_scalar, .range = attention_range,   \
	.reach = attention_reach, .fill = attention_fill, .check = attention_check, .oracle = attention_oracle, \
	.mistakes = attention_mistakes

#ifdef __cplusplus
}
#endif
#endif
