/* mistakes - the mistakes of matrix products that the oracle can compute itself (kernels/gemm/confusions.h). */
#ifndef REFTEST_KERNELS_GEMM_MISTAKES_H
#define REFTEST_KERNELS_GEMM_MISTAKES_H

enum gemm_mistake {
	GEMM_NO_MISTAKE,
	GEMM_LAST_K,
	GEMM_FIRST_K,
	GEMM_HALVES, /* this and later ones: the sums of parts along K are rounded to the dtype of C */
	GEMM_PARTS_16,
	GEMM_PARTS_32,
	GEMM_PARTS_64,
	GEMM_PARTS_128
};

#endif
