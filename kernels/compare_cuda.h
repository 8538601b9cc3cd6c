/* compare_cuda - the one pass of kernels/compare.h over two tensors on a GPU. Only for .cu files.
 *
 * The same sums as the CPU's: hits and counts exactly (whatever float arithmetic cannot decide is decided in double), sums
 * to 1e-6 of their size, and the same bits in every run on the same GPU. Each of the five worst places is exactly what the
 * tensors hold there; places whose |r - g| / bound are within 1e-6 of each other, or both beyond float's range, may stand
 * in for one another. The margin is that of the first, and above 1 exactly if an element missed. */
#ifndef REFTEST_KERNELS_COMPARE_CUDA_H
#define REFTEST_KERNELS_COMPARE_CUDA_H

#include "kernels/cuda_check.h"

#include "kernels/compare.h"

struct compare_board; /* what blocks tell each other while they run */

/* Memory that every comparison on one device uses; one comparison at a time. */
struct compare_cuda {
	struct compare_board *board; /* on the device, as the next two */
	uint64_t *candidates;
	double *partial_sums;
	struct compare_sums *sums; /* pinned host memory that the device writes to */
	int blocks[DTYPE_COUNT];   /* that fill the device */
};

/* For the current device. -1: nothing is left allocated. */
int compare_cuda_open(struct compare_cuda *compare, struct err *err);
void compare_cuda_close(struct compare_cuda *compare);

/* Compares dense tensors of `elements` elements on the device, at any address aligned to an element (to 16 bytes: at
 * full speed). Asynchronous: once the stream is done, *compare->sums holds what compare_finish wants. */
int compare_cuda_launch(struct compare_cuda *compare, const void *reference, const void *ground_truth, enum dtype dtype,
                        int64_t elements, struct rule rule, cudaStream_t stream, struct err *err);

#endif
