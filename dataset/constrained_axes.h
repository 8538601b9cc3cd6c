/* constrained_axes - chooses axis values that satisfy a definition's constraints: `hidden == 2 * half`, `m % 8 == 0`,
 * `topk in (1, 2, 4)`, `rows <= 64`. */
#ifndef REFTEST_DATASET_CONSTRAINED_AXES_H
#define REFTEST_DATASET_CONSTRAINED_AXES_H

#include "dataset/definition.h"

/* Changes the values of var axes in `row` until the row satisfies all expressions and all constraints on axes. `row`
 * has one value for each axis. An axis keeps its value if it can; otherwise it gets a value near the old one. No tensor
 * grows much beyond 64 MiB. If a tensor is larger than that in the given row, it does not grow much. A row that breaks
 * nothing is not changed. If the search finds no row that breaks nothing, the function returns false and does not
 * change the row. Constraints on the contents of inputs are not considered. */
bool constrained_axes_fit(const struct definition *definition, int64_t *row);

#endif
