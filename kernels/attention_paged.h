/* attention_paged - the calls of the families whose keys and values lie in pages of a cache: decode, and prefill with
 * it. The same operation, whatever a head is made of:
 *
 *   whole   q [queries, heads, d], k_cache and v_cache [pages, page size, kv heads, d] -> output [queries, heads, d];
 * head h looks at kv head h / (heads / kv heads) latent  q_nope [queries, heads, c], q_pe [queries, heads, r],
 * ckv_cache [pages, page size, c], kpe_cache [pages, page size, r] -> output [queries, heads, c]; weights absorbed: a
 * logit is the sum of both dot products, the latent is the value too, and all heads look at the same keys
 *
 * and kv_indptr [sequences + 1] offsets into kv_indices (page numbers), kv_last_page_len: keys in each sequence's last
 * page (without it all pages are full; it may be declared one longer than there are sequences, by the length of the
 * offset vectors, and what is beyond them is read by nobody), sm_scale; lse [queries, heads].
 *
 * With qo_indptr it is prefill, causal if the name says so, and masks are aligned at the end of the keys; without it
 * one query a sequence. The formulas, and what a query has that sees nothing, stand in kernels/attention.h; inputs and
 * bounds in kernels/attention_inputs.{h,c}. */
#ifndef REFTEST_KERNELS_ATTENTION_PAGED_H
#define REFTEST_KERNELS_ATTENTION_PAGED_H

#include "kernels/attention_roles.h"
#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum attention_heads { ATTENTION_WHOLE, ATTENTION_LATENT };

/* For problems that attention_paged_match took. */
struct attention_roles attention_paged_roles(const struct op_problem *problem);

/* As their namesakes in struct op have it. */
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

/* As those of struct op_cuda; in the CUDA library alone. */
int attention_paged_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);
int attention_paged_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch,
			   void *stream, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
