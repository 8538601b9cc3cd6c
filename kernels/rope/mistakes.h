/* mistakes - the mistakes that people make in references of rotary embeddings. */
#ifndef REFTEST_KERNELS_ROPE_MISTAKES_H
#define REFTEST_KERNELS_ROPE_MISTAKES_H

#include "kernels/core/op.h"

/* The mistakes that the oracle simulates. */
enum rope_mistake {
	NO_MISTAKE, HALF_EXPONENT, DOUBLE_EXPONENT, INVERSE, MULTIPLIED, ALL_SCALED, NONE_SCALED, MIXED_BACKWARDS, EXCHANGED,
	NO_MIXING, NO_TWO_PI, BACKWARDS, SINE_FOR_COSINE, ROUNDED_ANGLES, READ_OTHERWISE, WRITTEN_OTHERWISE, SECOND_FROM_ROTATED,
	SECOND_KEPT, LAST_ROTATED, REST_FIRST, REST_ZERO
};

extern const struct op_mistake rope_mistakes[];

#endif
