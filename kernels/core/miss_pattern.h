/* miss_pattern - describes the region of an output in which a reference differs from the ground truth. */
#ifndef REFTEST_KERNELS_CORE_MISS_PATTERN_H
#define REFTEST_KERNELS_CORE_MISS_PATTERN_H

#include "kernels/core/op.h"

/* Describes the region in words, for example "differs only where num_tokens >= 300", "is NaN only where head = 3 and
 * dim is odd", "is infinite only where row = 0 (the first)", "is 0 everywhere". axes[d] is the name of axis d of the
 * output. A region is given by a set of indices for each axis: one index, a range, all indices with the same remainder
 * modulo a number, or the whole axis.
 *
 * Returns false if the misses (the elements that exceed the tolerance rule) form no such region. The region must
 * contain all misses, and at least half of its elements must be misses. If the reference computed 0 for all elements of
 * the region, or NaN for all of them, fewer misses are enough. The whole output counts as a region only if the
 * reference computed 0 or NaN for all misses. Both tensors are on the host. */
bool miss_pattern(const struct tensor *found, const struct tensor *truth, struct rule rule, const char *const *axes,
		  char *out, size_t size);

#endif
