/* experts - the CPU oracle for experts: computes the outputs of this device's experts for the tokens that are routed to
 * them. */
#ifndef REFTEST_KERNELS_MOE_EXPERTS_H
#define REFTEST_KERNELS_MOE_EXPERTS_H

#include "kernels/moe/routing.h"

/* The weights of experts without tokens are not read. `in` and `out` are in host memory. Returns 0, or -1 with a
 * message in `err`. */
int experts_oracle(const struct op_case *c, const struct moe_roles *roles, const struct routing *r,
		   const struct tensor *in, struct tensor *out, struct err *err);

#endif
