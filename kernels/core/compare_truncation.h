/* compare_truncation - recognises an output that is truncated to its dtype instead of rounded.
 *
 * The bounds of a 16-bit output allow at least one step of the dtype, because a correct reference may round more than
 * once. Truncation changes about half of the elements by one step, and is therefore within the bounds. But it moves all
 * of these elements towards zero. A reference that rounds more than once moves about as many elements away from zero as
 * towards it, because the errors of different elements are independent. If it rounds a factor of a whole row, the
 * elements of this row may all move in the same direction, but the errors of different rows are still independent. */
#ifndef REFTEST_KERNELS_CORE_COMPARE_TRUNCATION_H
#define REFTEST_KERNELS_CORE_COMPARE_TRUNCATION_H

#include <stdbool.h>

#include "base/err.h"
#include "base/metrics.h"
#include "kernels/core/op.h"

/* The minimum numbers of elements that count, and of rows whose elements are too near to zero, in a truncated output
 * (output_is_truncated). A row is a slice along the last axis. If a correct reference rounds a factor of each row, the
 * probability that it moves 32 rows towards zero, and no row away from zero, is at most 2^-32. */
enum { TRUNCATED_ELEMENTS = 1024, TRUNCATED_ROWS = 32 };

/* Returns false if the metrics of an output show that it is not truncated, so that its elements need not be examined.
 * In a truncated output, at least a sixteenth of the elements count, and at least 20 % of these differ by one step. A
 * step is at least 2^-8 of a bfloat16 number and 2^-11 of a float16 number. The mean relative error of a truncated
 * output is therefore at least 0.2 / 16 of such a step. The function tests for 0.15 / 16. */
static inline bool output_may_be_truncated(enum dtype dtype, const struct metrics *metrics)
{
	double step = dtype == DTYPE_BFLOAT16 ? 0x1p-8 : 0x1p-11;

	return (dtype == DTYPE_BFLOAT16 || dtype == DTYPE_FLOAT16) && metrics->passed && metrics->mean_rel >= 0.15 / 16 * step;
}

/* Returns true if `found` is `truth` truncated to its dtype. `truth` must be rounded to nearest. Both tensors are on
 * the host and have the same dtype and shape. Writes a sentence about the output `name` to `why`. Returns false for
 * dtypes other than bfloat16 and float16.
 *
 * An output is truncated if at least 20 % of its elements are one step nearer to zero than the truth (usually about
 * half; fewer if the dtype represents many elements exactly), at most 1 % are one step farther from zero, and at most
 * 15 % differ in another way, for example because of the rounding errors of float32. At least 10 % must be nearer to
 * zero in each of TRUNCATED_ROWS rows. Elements whose truth is below 2^-26 or not finite are not counted. At least a
 * sixteenth of the elements must count. */
bool output_is_truncated(const char *name, const struct tensor *found, const struct tensor *truth, struct err *why);

#endif
