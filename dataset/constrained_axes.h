/* constrained_axes - chooses axis values that satisfy a definition's constraints: `hidden == 2 * half`, `m % 8 == 0`,
 * `topk in (1, 2, 4)`, `rows <= 64`. */
#ifndef REFTEST_DATASET_CONSTRAINED_AXES_H
#define REFTEST_DATASET_CONSTRAINED_AXES_H

#include "dataset/definition.h"

/* Changes the values of var axes in `row`, which has one value for each axis, so that the row breaks no constraint on
 * axes and no expression. Axes keep their value where they can, and otherwise get one near it; tensors do not become
 * much larger than in the row given, or than 64 MiB. A row that breaks nothing is not changed. Returns false, and
 * leaves the row as it is, if it finds no such values. Constraints on the contents of inputs are not considered. */
bool constrained_axes_fit(const struct definition *definition, int64_t *row);

#endif
