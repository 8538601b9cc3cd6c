/* compare - how far a reference's output is from the ground truth: every figure in one pass over both tensors.
 *
 * Element rule: fails unless |r - g| <= atol + rtol |g| (so a NaN on either side always fails); infinities must match
 * in sign. The rule holds when at least hit_ratio of the elements pass; with hit_ratio < 1 a NaN or an unmatched
 * infinity still fails the whole. "Zeros would pass" is the same rule with r = 0 everywhere.
 * A margin is the largest |r - g| / (atol + rtol |g|); 0/0 counts 0, x/0 infinity. */
#ifndef REFTEST_KERNELS_COMPARE_H
#define REFTEST_KERNELS_COMPARE_H

#include "base/metrics.h"
#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Both tensors dense, of the same dtype and length, on the host. Any dtype. Deterministic whatever the thread count. */
void compare_host(const void *reference, const void *ground_truth, enum dtype dtype, int64_t elements, struct rule rule,
                  struct metrics *out);

/* Sums of one pass, before they become metrics; the CUDA kernel makes the same from its blocks. */
struct compare_sums {
	int64_t elements, hits, finite, zero_hits; /* zero_hits: elements where 0 would have passed */
	int64_t nan_reference, nan_ground_truth, inf_reference, inf_ground_truth;
	int64_t unmatched; /* NaN on either side, or infinities that do not match */
	double max_abs, max_rel, sum_abs, sum_rel, sum_sq, dot, norm_reference, norm_ground_truth, margin;
	int worst_count;
	struct worst worst[METRICS_WORST];
};
void compare_finish(const struct compare_sums *sums, struct rule rule, struct metrics *out);

#ifdef __cplusplus
}
#endif
#endif
