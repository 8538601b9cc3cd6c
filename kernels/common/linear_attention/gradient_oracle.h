/* gradient_oracle - computes the gradients of a loss L with respect to the inputs of
 * kernels/common/linear_attention/recurrence.h, from the last token to the first.
 *
 * S' = diag(e^g) S is the decayed state before a token's update, and S+ is the state after the token. u = v - S'^T k is
 * the error that the delta rule corrects; in families without the delta rule, u = v and beta = 1. Before the steps of a
 * token, D = dL/dS+ is the gradient from all later tokens. For each token, these steps follow, where do = dL/d(output):
 *
 *   read      D <- D + scale q do^T             dq = scale S+ do
 *   learn     dl = D^T k, l = beta u            dk = D (beta u)         dbeta = u . dl      dv = du = beta dl
 *   recall    D <- D - k du^T                   dk <- dk - S' du        (only for the delta rule)
 *   forget    dg = e^g (D . S), key by key      D <- diag(e^g) D        for the previous token
 *
 * Before the steps of the last token, D is the given gradient of the final state. After the steps of the first token, D
 * is the gradient with respect to the initial state. The gradients are then propagated through the preprocessing
 * (norms, sigmoids, softplus, A_log, dt_bias). If several value heads share a head of q and k, their gradients are
 * added.
 *
 * Only every 64th state is saved; the states between two saved states are recomputed. The gradient of a row of zeros is
 * 0 if the operation normalises the row. Default cases have no row of zeros. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_GRADIENT_ORACLE_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_GRADIENT_ORACLE_H

#include "kernels/core/gradient_bounds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This is op.gradient of the families of kernels/common/linear_attention/recurrence.h.
 *
 * The bounds are error ratios from flash-linear-attention's own tests (tests/ops). The bound is 0.005 for q, k, v and
 * states, as in test_gla and test_kda. The bound is 0.02 for gates, their parameters and beta, as in test_gated_delta:
 * these gradients are sums over tokens, whose terms cancel. In float64, the bound is 1e-4, because some references
 * compute in float32 internally. */
extern const struct op recurrence_gradient;

#ifdef __cplusplus
}
#endif
#endif
