/* attention_ragged - the calls of the families whose keys and values lie one sequence after the other (prefill without a
 * cache): the same operation, whatever a head's dimensions are made of.
 *
 *   q [queries, heads, d], k [keys, kv heads, d], v [keys, kv heads, value d], qo_indptr and kv_indptr [sequences + 1],
 *   sm_scale -> output [queries, heads, value d], lse [queries, heads]
 *
 * Causal if the name says so, masks aligned at the end of the keys. Head h looks at kv head h / (heads / kv heads). The
 * formulas, and what a query has that sees nothing, stand in kernels/attention.h; inputs and bounds in
 * kernels/attention_inputs.{h,c}. */
#ifndef REFTEST_KERNELS_ATTENTION_RAGGED_H
#define REFTEST_KERNELS_ATTENTION_RAGGED_H

#include "kernels/attention_roles.h"
#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For problems that attention_ragged_match took. */
struct attention_roles attention_ragged_roles(const struct op_problem *problem);

/* As their namesakes in struct op have it. */
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

/* As those of struct op_cuda; in the CUDA library alone. */
int attention_ragged_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);
int attention_ragged_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch,
                            void *stream, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
