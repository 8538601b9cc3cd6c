/* mistakes - the mistakes that people make in references of selective state updates. */
#ifndef REFTEST_KERNELS_MAMBA_SSU_MISTAKES_H
#define REFTEST_KERNELS_MAMBA_SSU_MISTAKES_H

#include "kernels/core/op.h"

/* The mistakes that the oracle simulates. */
enum ssu_mistake {
	NO_MISTAKE, NO_STEP_IN_DECAY, NO_EXP, A_LOG, NO_STEP_IN_X, RAW_STEP_IN_X, READ_FIRST, X_FIRST, STEP_ON_D, TILED,
	FIRST_GROUP, SIGMOID_GATE, PLAIN_GATE, NO_GATE, GATE_FIRST, OTHER_SOFTPLUS, SOFTPLUS_FIRST, SOFTPLUS_UP_TO, LINEAR_DECAY,
	NO_DECAY, FIRST_STEP, FIRST_DECAY, NO_X, TILED_B, TILED_C, FIRST_GROUP_B, FIRST_GROUP_C, ROUNDED_STEP, STEP_AT_LEAST_0,
	STEP_MAGNITUDE, LAST_STATE, NO_STATE, READ_DECAYED, GATE_TWICE
};

extern const struct op_mistake ssu_mistakes[];

#endif
