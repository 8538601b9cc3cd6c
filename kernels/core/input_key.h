/* input_key - derives the Philox key of an input (kernels/core/random_inputs.h). Different inputs have different keys,
 * and therefore different random numbers. This file must not use OpenMP, because the main program also contains it, and
 * loading libgomp would slow down every start. */
#ifndef REFTEST_KERNELS_CORE_INPUT_KEY_H
#define REFTEST_KERNELS_CORE_INPUT_KEY_H

#include <stdint.h>

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the Philox key of one input of one case. The key depends on the input's name, the axis values (const and var,
 * sorted by axis name) and the seed, but not on the definition's name. Host only. */
uint64_t input_key(const struct op_case *c, int input);

#ifdef __cplusplus
}
#endif

#endif
