/* mla_paged inputs - which tensor plays which part in latent attention over a paged cache. What the
 * inputs hold is told in kernels/attention_inputs.h. */
#ifndef REFTEST_KERNELS_MLA_PAGED_INPUTS_H
#define REFTEST_KERNELS_MLA_PAGED_INPUTS_H

#include "kernels/attention_inputs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For problems that op.match took. */
struct attention_roles mla_paged_roles(const struct op_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
