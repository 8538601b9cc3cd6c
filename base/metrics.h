/* metrics - measures of the difference between two tensors, computed in one pass. This file only declares the
 * measures. kernels/core/compare_tensors.h computes them, and dataset/verdict.h converts them to JSON. A new measure
 * must also get a row in the table of dataset/verdict_fields.c. */
#ifndef REFTEST_BASE_METRICS_H
#define REFTEST_BASE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

enum { METRICS_WORST = 5 };

struct worst {
	int64_t index;                       /* flat, row-major index of the element */
	/* converted to double; only int64 values beyond 2^53 are rounded */
	double reference, ground_truth;
	double diff;                         /* |reference - ground_truth|; NaN if either is NaN */
};

struct metrics {
	int64_t elements;
	int64_t hits;                         /* elements within the tolerance */
	int64_t nan_reference, nan_ground_truth;
	int64_t inf_reference, inf_ground_truth;
	double max_abs, mean_abs;             /* |reference - ground_truth|, over pairs of finite elements */
	double max_rel, mean_rel;             /* |reference - ground_truth| / max(|ground_truth|, 1e-8) */
	double cosine;                        /* cosine similarity; 1 if both tensors are all zero */
	double mse;
	/* The largest |reference - ground_truth| / (atol + rtol |ground_truth|). A margin above 1 exceeds the
	 * tolerance. The margin is infinite if one tensor has a NaN, or an infinity that the other tensor does not have
	 * at the same place. */
	double margin;
	/* True if an output of all zeros would also have passed, or if there are no elements. */
	bool zeros_would_pass;
	bool passed;                          /* the output satisfies the tolerance rule */
	int worst_count;
	/* The elements with the largest |diff| / bound, largest first. Elements with a NaN come first; elements with
	 * equal quotients are ordered by index. */
	struct worst worst[METRICS_WORST];
	/* For the samples that a sampling op draws: the logarithm of the probability of all samples together; -INFINITY
	 * if a sample is impossible. */
	double log_likelihood;
};

#endif
