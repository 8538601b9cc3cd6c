/* miss_pattern - describes the region of an output in which a reference differs from the ground truth. */
#ifndef REFTEST_KERNELS_CORE_MISS_PATTERN_H
#define REFTEST_KERNELS_CORE_MISS_PATTERN_H

#include "kernels/core/op.h"

/* Writes the region as words: "differs only where num_tokens >= 300", "is NaN only where head = 3 and dim is odd", "is
 * infinite only where row = 0 (the first)", "is 0 everywhere". `axes` has the name of each axis of the output. A region
 * is the product of one set of indices for each axis. A set is one index, a range, all indices with the same remainder
 * modulo a number, or the whole axis.
 *
 * Returns false if the elements that exceed the tolerance rule (the misses) form no such region. A region has all
 * misses inside it, and at least half of its elements are misses. (If all elements that the reference computed in the
 * region are 0, or all are NaN, fewer misses are enough.) Also returns false if the region is the whole output, unless all its values are NaN or all are 0. Both tensors
 * are on the host. */
bool miss_pattern(const struct tensor *found, const struct tensor *truth, struct rule rule, const char *const *axes,
		  char *out, size_t size);

#endif
