/* unit_distance - compares two tensors in host memory, in units of a dtype. A unit is the distance between 1 and the
 * next larger number of the dtype, multiplied by the magnitude of the value. If the magnitude of the value is less than
 * the root mean square of the finite elements of the expected tensor, this root mean square is used instead. */
#ifndef REFTEST_WORKERS_JUDGE_UNIT_DISTANCE_H
#define REFTEST_WORKERS_JUDGE_UNIT_DISTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/op.h"

/* How the rows of an output along one dimension correspond to the rows of the expected output: they are in reverse
 * order, or the output has only the last row. */
struct row_order {
	int64_t rows, inner; /* the number of rows, and the number of elements of a row (the product of the dimensions
			      * after this one) */
	bool alone;
};

/* Returns the distance between 1 and the next larger number of the dtype. Returns 0 if the dtype is not a float. */
double unit_of(enum dtype dtype);

/* Returns the largest distance between an element of `found` and the corresponding element of `expected`, in units of
 * the dtype `declared`. NaN and NaN have the distance 0. Values that are beyond the range of `declared` count as
 * infinite. A finite value and an infinite one have the distance infinity. If `declared` is not a float, any two
 * different values have the distance infinity. If `order` is NULL, elements with the same index correspond. */
double unit_distance_largest(const struct tensor *found, const struct tensor *expected, enum dtype declared,
			     const struct row_order *order);

/* Returns whether two tensors of the same dtype and size have different values. 0 and -0 count as equal, and so do two
 * NaN. */
bool unit_distance_any(const struct tensor *a, const struct tensor *b);

#endif
