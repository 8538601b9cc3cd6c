/* compare_cuda - compares two tensors on a GPU in one pass, as kernels/core/compare_tensors.h describes. Only for .cu
 * files.
 *
 * The result equals the CPU's result within the following limits. The verdict on each element (pass or fail) and all
 * counts are exact: if float is too inaccurate for a pair, the pair is compared in double. Sums have a relative error
 * of at most 1e-6, and have the same bits in every run on the same GPU. The values of the five worst elements are
 * exact. The GPU may rank two elements differently from the CPU if their ratios |r - g| / bound differ by less than
 * 1e-6, or if both ratios are outside of float's range. The margin is the ratio of the worst element. The margin is
 * above 1 if and only if an element fails. */
#ifndef REFTEST_KERNELS_CORE_COMPARE_CUDA_H
#define REFTEST_KERNELS_CORE_COMPARE_CUDA_H

#include "kernels/core/cuda_check.h"

#include "kernels/core/compare_tensors.h"

struct compare_board; /* counters and results that all blocks of a launch share */

/* The memory that all comparisons on one device use; only one comparison may run at a time. */
struct compare_cuda {
	struct compare_board *board; /* in device memory, like the next two members */
	uint64_t *candidates;
	double *partial_sums;
	struct compare_sums *sums; /* pinned host memory that the device writes to */
	int blocks[DTYPE_COUNT];   /* number of blocks that the device can run at the same time */
};

/* Allocates the memory on the current device. If an allocation fails, frees what has been allocated and returns -1. */
int compare_cuda_open(struct compare_cuda *compare, struct err *err);
void compare_cuda_close(struct compare_cuda *compare);

/* Compares two dense tensors of `elements` elements on the device. Both addresses must be aligned to an element; for
 * full speed, align them to 16 bytes. The call is asynchronous: once the stream is finished, *compare->sums contains
 * the sums for compare_finish. */
int compare_cuda_launch(struct compare_cuda *compare, const void *reference, const void *ground_truth, enum dtype dtype,
                        int64_t elements, struct rule rule, cudaStream_t stream, struct err *err);

#endif
