/* mla_ragged inputs - which tensor plays which part in latent attention before its weights are absorbed. What the
 * inputs hold is told in kernels/attention_inputs.h. */
#ifndef REFTEST_KERNELS_MLA_RAGGED_INPUTS_H
#define REFTEST_KERNELS_MLA_RAGGED_INPUTS_H

#include "kernels/attention_inputs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For problems that op.match took. */
struct attention_roles mla_ragged_roles(const struct op_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
