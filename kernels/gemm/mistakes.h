/* mistakes - the mistakes that people make in references of matrix products. The table lists all mistakes. The enum
 * numbers the mistakes that the oracle simulates. */
#ifndef REFTEST_KERNELS_GEMM_MISTAKES_H
#define REFTEST_KERNELS_GEMM_MISTAKES_H

#include "kernels/core/op.h"

enum gemm_mistake {
	GEMM_NO_MISTAKE,
	GEMM_LAST_K,
	GEMM_FIRST_K,
	GEMM_HALVES, /* this and all later mistakes sum parts of K separately and round each sum to the dtype of C */
	GEMM_PARTS_16,
	GEMM_PARTS_32,
	GEMM_PARTS_64,
	GEMM_PARTS_128
};

/* the table ends with a row whose `says` is NULL */
extern const struct op_mistake gemm_mistakes[];

#endif
