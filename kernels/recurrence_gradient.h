/* recurrence_gradient - what a loss changes by the inputs of kernels/recurrence.h, backwards through the tokens.
 *
 * With S' = diag(e^g) S the state that a token finds and S+ the one that it leaves, u = v - S'^T k what it does not
 * know yet (u = v where the state only adds, and beta 1), and D = dL/dS+ from all that comes later:
 *
 *   read      D <- D + scale q do^T             dq = scale S+ do
 *   learn     dl = D^T k, of what is learnt     dk = D (beta u)         dbeta = u . dl      dv = du = beta dl
 *   recall    D <- D - k du^T                   dk <- dk - S' du        (the delta rule alone)
 *   forget    dg = e^g (D . S), key by key      D <- diag(e^g) D        which the token before finds
 *
 * D after the first token is the gradient of the first state; before the last, that given of the last state. Then
 * through what is done to numbers beforehand: norms, sigmoids, softplus, A_log, dt_bias, and q and k that value heads
 * share.
 *
 * The states are made again from one kept for every 64 tokens. A row of zeros that is normalised has no gradient here;
 * the inputs of ordinary cases have none. */
#ifndef REFTEST_KERNELS_RECURRENCE_GRADIENT_H
#define REFTEST_KERNELS_RECURRENCE_GRADIENT_H

#include "kernels/gradient.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For op.gradient of the families of kernels/recurrence.h.
 *
 * Bounds are flash-linear-attention's (tests/ops of its repository): an error ratio of 0.005 for q, k, v and states,
 * which test_gla and test_kda have for all of them; of 0.02 for gates, what they are made of, and beta, as
 * test_gated_delta has it: sums over tokens of terms that cancel. In float64 1e-4, for references that compute in
 * float32 inside. */
extern const struct op recurrence_gradient;

#ifdef __cplusplus
}
#endif
#endif
