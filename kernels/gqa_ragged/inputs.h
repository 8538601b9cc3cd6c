/* gqa_ragged inputs - which tensor plays which part is told by kernels/attention_ragged.h, what the inputs hold by
 * kernels/attention_inputs.h. */
#ifndef REFTEST_KERNELS_GQA_RAGGED_INPUTS_H
#define REFTEST_KERNELS_GQA_RAGGED_INPUTS_H

#include "kernels/attention_ragged.h"

#endif
