/* compare_tensors - measures how far a reference's output is from the ground truth: computes all metrics in one pass
 * over both tensors.
 *
 * An element passes if |r - g| <= atol + rtol |g|, where r is the element of the reference's output, and g is the same
 * element of the ground truth. A NaN on either side therefore always fails, and infinities must have the same sign. The
 * output passes if at least the fraction hit_ratio of its elements passes. A single NaN or unmatched infinity fails the
 * output, even if hit_ratio < 1. compare_sums.zero_hits counts the elements that would pass if r were 0. It shows
 * whether an output of zeros would pass. The margin is the largest |r - g| / (atol + rtol |g|), where 0/0 counts as 0
 * and x/0 as infinity. */
#ifndef REFTEST_KERNELS_CORE_COMPARE_TENSORS_H
#define REFTEST_KERNELS_CORE_COMPARE_TENSORS_H

#include "base/metrics.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compares two dense tensors of the same dtype (any dtype) and length on the host. The result does not depend on the
 * number of threads. */
void compare_host(const void *reference, const void *ground_truth, enum dtype dtype, int64_t elements, struct rule rule,
                  struct metrics *out);

/* The counts, sums and maxima of one comparison, from which compare_finish computes the metrics. compare_host fills
 * this struct on the CPU, and the CUDA kernel fills it on a GPU. */
struct compare_sums {
	int64_t elements, hits, finite, zero_hits; /* zero_hits: the elements that would pass if the output were 0 */
	int64_t nan_reference, nan_ground_truth, inf_reference, inf_ground_truth;
	int64_t unmatched; /* the number of pairs with a NaN on either side, or with an infinity that the other side
			    * does not match */
	double max_abs, max_rel, sum_abs, sum_rel, sum_sq, dot, norm_reference, norm_ground_truth, margin;
	int worst_count;
	struct worst worst[METRICS_WORST];
};
void compare_finish(const struct compare_sums *sums, struct rule rule, struct metrics *out);

#ifdef __cplusplus
}
#endif
#endif
