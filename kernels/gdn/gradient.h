/* gdn gradient - those of a gated delta net, which is a recurrence of kernels/recurrence.h under other names: decode
 * and prefill. A pass over slots of a pool, or with a buffer of intermediate states, serves inference alone and has
 * none. */
#ifndef REFTEST_KERNELS_GDN_GRADIENT_H
#define REFTEST_KERNELS_GDN_GRADIENT_H

#include "kernels/op.h"

extern const struct op gdn_gradient;

#endif
