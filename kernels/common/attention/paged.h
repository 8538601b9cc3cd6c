/* paged - implements struct op for the attention families with a paged KV cache (decode, and prefill with a cache). The
 * operation is the same for both kinds of heads:
 *
 *   whole   q [queries, heads, d], k_cache and v_cache [pages, page size, kv heads, d] -> output [queries, heads, d];
 *           head h reads kv head h / (heads / kv heads)
 *   latent  q_nope [queries, heads, c], q_pe [queries, heads, r], ckv_cache [pages, page size, c], kpe_cache [pages,
 *           page size, r] -> output [queries, heads, c]; the weights are absorbed into the queries: a logit is the sum
 *           of both dot products, the latent is also the value, and all heads read the same keys
 *
 * Further inputs are kv_indptr [sequences + 1], offsets into kv_indices (page numbers); kv_last_page_len, the number of
 * keys in each sequence's last page; and sm_scale. A further output is lse [queries, heads]. Without kv_last_page_len,
 * all pages are full. kv_last_page_len may have one element more than the number of sequences, as the offset vectors
 * have; its last element is then never read.
 *
 * With qo_indptr, the operation is prefill. The definition's name says whether prefill is causal; masks are aligned at
 * the end of the keys. Without qo_indptr, each sequence has one query. The formulas, and the result of queries that see
 * no key, are in kernels/common/attention/attention.h; the inputs and bounds are in input_values.{h,c} in the same
 * folder. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_PAGED_H
#define REFTEST_KERNELS_COMMON_ATTENTION_PAGED_H

#include "kernels/common/attention/roles.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum attention_heads { ATTENTION_WHOLE, ATTENTION_LATENT };

/* Returns the roles of a problem that attention_paged_match accepted. */
struct attention_roles attention_paged_roles(const struct op_problem *problem);
void attention_paged_bind(const struct op_problem *problem, int variant, void *roles);

/* These functions implement the members of struct op that have the same names. */
int attention_paged_match(const struct op_problem *problem, enum attention_heads heads, struct err *why);
int attention_paged_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);
bool attention_paged_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis);
bool attention_paged_range(const struct op_problem *problem, int variant, int input, struct op_range *out);
int64_t attention_paged_reach(const struct op_problem *problem, int variant, int axis);
struct rule attention_paged_rule(const struct op_case *c, int output);
double attention_paged_scalar(const struct op_case *c, int input);
int attention_paged_fill(const struct op_case *c, int input, struct tensor *out, struct err *err);
int attention_paged_check(const struct op_case *c, const struct tensor *in, struct err *err);
int attention_paged_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

/* These functions implement members of struct op_cuda; only the CUDA library has them. */
int attention_paged_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);
int attention_paged_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch,
			   void *stream, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
