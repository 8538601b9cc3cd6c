/* metrics - what one pass over two tensors says about how far they are apart. Plain data; the arithmetic stands in
 * kernels/compare.h, the JSON form in dataset/verdict.h. */
#ifndef REFTEST_BASE_METRICS_H
#define REFTEST_BASE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

enum { METRICS_WORST = 5, METRICS_EVIDENCE = 4 };

struct worst {
	int64_t index;                       /* flat, row-major */
	double reference, ground_truth;      /* as doubles; exact for every dtype but int64 beyond 2^53 */
	double diff;                         /* |reference - ground_truth|; NaN if either is NaN */
};

struct metrics {
	int64_t elements;
	int64_t hits;                         /* elements that the rule accepts */
	int64_t nan_reference, nan_ground_truth;
	int64_t inf_reference, inf_ground_truth;
	double max_abs, mean_abs;             /* |reference - ground_truth|, over pairs of finite elements */
	double max_rel, mean_rel;             /* the same over max(|ground_truth|, 1e-8) */
	double cosine;                        /* 1 when both are all zero */
	double mse;
	double margin;                        /* largest |reference - ground_truth| / (atol + rtol |ground_truth|); above 1
	                                         fails; infinity when a NaN or an unmatched infinity was seen */
	bool zeros_would_pass;                /* an output of all zeros would have passed the same rule (or elements == 0) */
	bool passed;                          /* what the rule says */
	int worst_count;
	struct worst worst[METRICS_WORST];    /* largest |diff| / bound first, NaN before all, ties by lower index */
	double evidence[METRICS_EVIDENCE];    /* what op.judge found that decides only with that of the other contents:
	                                         op.judge_both */
};

#endif
