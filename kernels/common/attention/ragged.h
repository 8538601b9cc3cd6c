/* ragged - implements struct op for the attention families whose sequences are stored one after the other, without a
 * cache (prefill). The operation is the same for all head dims:
 *
 *   q [queries, heads, d], k [keys, kv heads, d], v [keys, kv heads, value d], qo_indptr and kv_indptr [sequences + 1],
 *   sm_scale -> output [queries, heads, value d], lse [queries, heads]
 *
 * The definition's name says whether attention is causal; masks are aligned at the end of the keys. Head h reads kv
 * head h / (heads / kv heads). The formulas, and the result of queries that see no key, are in
 * kernels/common/attention/attention.h; the inputs and bounds are in input_values.{h,c} in the same folder. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_RAGGED_H
#define REFTEST_KERNELS_COMMON_ATTENTION_RAGGED_H

#include "kernels/common/attention/roles.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the roles of a problem that attention_ragged_match accepted. */
struct attention_roles attention_ragged_roles(const struct op_problem *problem);
void attention_ragged_bind(const struct op_problem *problem, int variant, void *roles);

/* These functions implement the members of struct op that have the same names. */
int attention_ragged_match(const struct op_problem *problem, struct err *why);
int attention_ragged_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room);
bool attention_ragged_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis);
bool attention_ragged_range(const struct op_problem *problem, int variant, int input, struct op_range *out);
int64_t attention_ragged_reach(const struct op_problem *problem, int variant, int axis);
struct rule attention_ragged_rule(const struct op_case *c, int output);
double attention_ragged_scalar(const struct op_case *c, int input);
int attention_ragged_fill(const struct op_case *c, int input, struct tensor *out, struct err *err);
int attention_ragged_check(const struct op_case *c, const struct tensor *in, struct err *err);
int attention_ragged_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

/* These functions implement members of struct op_cuda; only the CUDA library has them. */
int attention_ragged_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);
int attention_ragged_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch,
                            void *stream, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
