/* gdn gradient - computes the gradients of a gated delta net. These are the gradients of the recurrence in
 * kernels/common/linear_attention/recurrence.h, in which the input `a` is called g. Definitions of decode and of
 * prefill have gradients. Definitions with a pool of states or a buffer of intermediate states serve only inference,
 * and have no gradients. */
#ifndef REFTEST_KERNELS_GDN_GRADIENT_ORACLE_H
#define REFTEST_KERNELS_GDN_GRADIENT_ORACLE_H

#include "kernels/core/op.h"

extern const struct op gdn_gradient;

#endif
