/* gdn gradient - computes the gradients of a gated delta net. The input `a` is renamed to g, and the gradients of the
 * recurrence in kernels/common/linear_attention/recurrence.h are computed. Decode and prefill have gradients. A
 * definition with a pool of states or a buffer of intermediate states is used only for inference and has no
 * gradients. */
#ifndef REFTEST_KERNELS_GDN_GRADIENT_ORACLE_H
#define REFTEST_KERNELS_GDN_GRADIENT_ORACLE_H

#include "kernels/core/op.h"

extern const struct op gdn_gradient;

#endif
