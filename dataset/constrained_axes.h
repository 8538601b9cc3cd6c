/* constrained_axes - chooses axis values that satisfy a definition's constraints: `hidden == 2 * half`, `m % 8 == 0`,
 * `topk in (1, 2, 4)`, `rows <= 64`. */
#ifndef REFTEST_DATASET_CONSTRAINED_AXES_H
#define REFTEST_DATASET_CONSTRAINED_AXES_H

#include "dataset/definition.h"

/* Changes the values of var axes in `row`, which has one value for each axis, until the row breaks neither an
 * expression nor a constraint on axes. An axis keeps its value if it can, and otherwise gets a value near it. No tensor
 * grows much beyond 64 MiB, or much beyond its size in the given row if that size is larger. A row that breaks nothing
 * is not changed. If the search finds no row that breaks nothing, returns false and does not change the row.
 * Constraints on the contents of inputs are not considered. */
bool constrained_axes_fit(const struct definition *definition, int64_t *row);

#endif
