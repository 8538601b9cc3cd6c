/* axis_expressions - computes the axes whose lengths are expressions over other axes: `num_heads * head_dim`. */
#ifndef REFTEST_DATASET_AXIS_EXPRESSIONS_H
#define REFTEST_DATASET_AXIS_EXPRESSIONS_H

#include "dataset/definition.h"

/* Computes each axis that has an expression from the values of the other axes. The expressions may be in any order. In
 * `axis`, a negative value means unknown. An axis whose expression needs an unknown axis stays unknown. Returns -1 with
 * a message if an expression cannot be evaluated, or if its value contradicts a known value of its axis. Sets *at to
 * the index of this axis. */
int axis_expressions_compute(const struct definition *definition, int64_t *axis, int *at, struct err *why);

/* Returns the index of an axis whose expression needs the axis itself, or -1 if there is none. */
int axis_expressions_circular(const struct definition *definition);

/* Changes a row of axis values that an op family chose, so that the row satisfies the expressions. If possible, changes
 * only the axes that occur in no tensor. Otherwise, computes each axis that has an expression from the values of the
 * other axes. Returns false if neither way gives a valid row. */
bool axis_expressions_fit(const struct definition *definition, int64_t *row);

#endif
