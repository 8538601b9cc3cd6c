/* experts - what the experts of this device make of the tokens that go to them: the CPU oracle. */
#ifndef REFTEST_KERNELS_MOE_EXPERTS_H
#define REFTEST_KERNELS_MOE_EXPERTS_H

#include "kernels/moe/routing.h"

/* Only experts that some token goes to are read. `in` and `out` on the host. 0, or -1 with the sentence. */
int experts_oracle(const struct op_case *c, const struct moe_roles *roles, const struct routing *r,
		   const struct tensor *in, struct tensor *out, struct err *err);

#endif
