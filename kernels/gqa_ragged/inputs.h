/* gqa_ragged inputs - which tensor plays which part in grouped-query attention over consecutive keys. What the
 * inputs hold is told in kernels/attention_inputs.h. */
#ifndef REFTEST_KERNELS_GQA_RAGGED_INPUTS_H
#define REFTEST_KERNELS_GQA_RAGGED_INPUTS_H

#include "kernels/attention_inputs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For problems that op.match took. */
struct attention_roles gqa_ragged_roles(const struct op_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
