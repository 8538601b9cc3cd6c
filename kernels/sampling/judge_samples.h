/* judge_samples - decides whether samples are right: each must be a token that the filter keeps, and all together must
 * follow the filtered probabilities (draw_statistics.h). */
#ifndef REFTEST_KERNELS_SAMPLING_JUDGE_SAMPLES_H
#define REFTEST_KERNELS_SAMPLING_JUDGE_SAMPLES_H

#include "kernels/core/op.h"

/* Implements op.judges: returns true if the definition draws tokens. */
bool sampling_judges(const struct op_case *c, int output);

/* Implements op.judge. Metrics without a meaning for draws (relative errors, cosine) are 0. The metrics max_abs and
 * mean_abs are both the total variation distance of the draws. An output of zeros passes only if token 0 is allowed in
 * every row. */
int sampling_judge(const struct op_case *c, int output, const struct tensor *in, const struct tensor *reference,
		   const struct tensor *truth, struct metrics *metrics, double *evidence, struct err *why);

/* Implements op.judge_both. */
int sampling_judge_both(const struct op_case *const *c, int output, const struct tensor *const *samples,
			const double *const *evidence, struct err *why);

#endif
