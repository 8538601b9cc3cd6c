/* recurrence - computes linear attention with a state. The families gla, simple_gla, delta_rule, gated_delta_rule and
 * kda differ only in how the state is decayed and updated.
 *
 * Each head has a state S [K, V]. The tokens of a sequence update it in order. g is the logarithm of the decay:
 *
 *   S <- diag(e^g) S                     g per head, per head and key, or no g (no decay)
 *   S <- S + k v^T                       without the delta rule
 *   S <- S + beta k (v - S^T k)^T        with the delta rule: corrects the value that the decayed state has for k
 *   output = scale S^T q                 with the state after the token
 *
 * Value head h uses q and k of head h / (H_v / H_q). Each value head has its own g and beta. A scale of 0 or an absent
 * scale means 1 / sqrt(K). Without an initial state, S begins as zeros. The final state may be an output.
 *
 * Names in a schema and their meaning:
 *   g (or gk)         the gate. Without A_log and lower_bound, g is the logarithm of the decay. With A_log [H_v], the
 *                     logarithm of the decay is -exp(A_log) softplus(g + dt_bias), with softplus(x) = log(1 + e^x).
 *                     With a scalar lower_bound < 0, the logarithm of the decay is lower_bound sigmoid(exp(A_log) (g +
 *                     dt_bias)), and A_log may be absent. In both formulas, dt_bias may be absent.
 *   g_gamma [H_v]     a constant gate per head, instead of g.
 *   beta              used unchanged, as sigmoid(beta), or doubled. The sigmoid is applied if the input is named b, or
 *                     if the definition's name, a tag or a Python scalar says "beta_sigmoid". Beta is doubled if the
 *                     name, a tag or a Python scalar says "neg_eigval". Not all implementations double a beta to which
 *                     no sigmoid is applied. Such a beta is doubled only if the description of the "neg_eigval" scalar
 *                     says that beta is doubled and does not mention the sigmoid. In all other definitions, no case has
 *                     a doubled beta without a sigmoid.
 *   "l2norm"          q / |q| and k / |k|. References may add up to 1e-5 to the sum of squares. The norms in the
 *                     default cases are so large that this changes no verdict.
 *   cu_seqlens        packed sequences: q [total, H, K], or [1, total, H, K]. Without cu_seqlens: q [batch, tokens, H,
 *                     K]. The final state of a sequence without tokens is its initial state.
 *   states            [sequences, H_v, K, V] or [sequences, H_v, V, K]. If K = V, the shape does not show the layout.
 *                     The layout is then [.., V, K] if the definition's name, a tag or the description says "v_first"
 *                     or "k_last" (with a hyphen or an underscore), else [.., K, V].
 *
 * Sources of these formulas: Yang et al., "Gated linear attention transformers with hardware-efficient training", ICML
 * 2024 (gla); Schlag et al., "Linear transformers are secretly fast weight programmers", ICML 2021 (the delta rule);
 * Yang et al., "Gated delta networks", ICLR 2025; Kimi Team, "Kimi Linear", 2025 (kda and its gates). */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_H

#include "kernels/common/linear_attention/roles.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct op_mistake recurrence_mistakes[]; /* described in recurrence_work.h */

/* Implements op.oracle. */
int recurrence_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

/* The members of struct op that the families have in common. A file that uses this macro must also include
 * gradient_oracle.h and input_values.h. */
#define RECURRENCE_MEMBERS                                                                                                \
	.roles = recurrence_role_names, .bind = recurrence_bind, .modes = recurrence_mode_names,                          \
	.sizes = recurrence_sizes, .medium_runs = LAST_MEDIUM_RUNS_TWICE, .edges = recurrence_edges,                            \
	.edge_axes = recurrence_edge_axes, .rule = recurrence_rule,                                                       \
	.scalar = recurrence_scalar, .range = recurrence_range, .reach = recurrence_reach, .fill = recurrence_fill,       \
	.check = recurrence_check, .oracle = recurrence_oracle, .gradient = &recurrence_gradient, \
	.mistakes = recurrence_mistakes

#ifdef __cplusplus
}
#endif
#endif
