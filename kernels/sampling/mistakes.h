/* mistakes - the mistakes that people make in references of samplers and of filters of probabilities. The table has all
 * mistakes. The enum has a number for each mistake that the oracle or the judge computes itself. */
#ifndef REFTEST_KERNELS_SAMPLING_MISTAKES_H
#define REFTEST_KERNELS_SAMPLING_MISTAKES_H

#include "kernels/core/op.h"

enum sampling_mistake {
	SAMPLING_NO_MISTAKE,
	SAMPLING_K_MORE,
	SAMPLING_K_LESS,
	SAMPLING_K_IGNORED,
	SAMPLING_K_64,
	SAMPLING_K_256,
	SAMPLING_K_1024,
	SAMPLING_P_IGNORED,
	SAMPLING_P_DOUBLED,
	SAMPLING_P_REST,
	SAMPLING_CROSSING_DROPPED,
	SAMPLING_CROSSING_MORE,
	SAMPLING_MIN_P_IGNORED,
	SAMPLING_MIN_P_ABSOLUTE,
	SAMPLING_MIN_P_SQUARED,
	SAMPLING_MIN_P_OF_SUM,
	SAMPLING_GREEDY,
	SAMPLING_DRAWN_EVENLY,
	SAMPLING_SOFTMAX,
	SAMPLING_NOT_DIVIDED,
	SAMPLING_HALF_VOCABULARY,
	SAMPLING_NO_LAST,
	SAMPLING_NO_FIRST,
	SAMPLING_P_95,
	SAMPLING_P_ONE_ALONE,
	SAMPLING_K_OF_BATCH,
	/* The mistakes that only definitions with filtered probabilities as output can have. */
	SAMPLING_CROSSING_DROPPED_ALONE,
	SAMPLING_IN_ORDER,
	SAMPLING_SUM_BFLOAT16,
	SAMPLING_SUM_OF_BATCH
};

/* the table ends with a row whose `says` is NULL */
extern const struct op_mistake sampling_mistakes[];

#endif
