/* constrained_axes - chooses axis values that satisfy a definition's constraints: `hidden == 2 * half`, `m % 8 == 0`,
 * `topk in (1, 2, 4)`, `rows <= 64`. */
#ifndef REFTEST_DATASET_CONSTRAINED_AXES_H
#define REFTEST_DATASET_CONSTRAINED_AXES_H

#include "dataset/definition.h"

/* Changes the values of var axes in `row` until the row satisfies all expressions and all constraints on axes. `row`
 * has one value for each axis. Axes keep their values if possible, or else get values near the old ones. The new row
 * keeps the tensors small: all tensors together have at most 64 MiB or, if their size exceeds 64 MiB with the old row,
 * at most that size. A row that already satisfies all constraints does not change. If no such row is found, the
 * function returns false and leaves the row unchanged. Constraints on the contents of inputs are ignored. */
bool constrained_axes_fit(const struct definition *definition, int64_t *row);

#endif
