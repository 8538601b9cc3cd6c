/* axis_expressions - computes the axes whose lengths are expressions over other axes: `num_heads * head_dim`. */
#ifndef REFTEST_DATASET_AXIS_EXPRESSIONS_H
#define REFTEST_DATASET_AXIS_EXPRESSIONS_H

#include "dataset/definition.h"

/* Evaluates the expressions of the axes, and writes their values to `axis`. An expression may use an axis that is
 * computed later. In `axis`, a negative value means unknown. An axis whose expression needs an unknown axis stays
 * unknown. Returns -1 with a message if an expression cannot be evaluated, or if its value contradicts a known value of
 * its axis. In this case, also sets *at to the index of the axis. */
int axis_expressions_compute(const struct definition *definition, int64_t *axis, int *at, struct err *why);

/* Returns the index of an axis whose expression depends on the axis itself, directly or through other axes. Returns -1
 * if there is none. */
int axis_expressions_circular(const struct definition *definition);

/* Changes axis values so that they satisfy the expressions. `row` has the values, which an op family chose. First tries
 * to change only axes that occur in no tensor. If this fails, sets each axis with an expression to the value of the
 * expression. Returns false if this fails too. */
bool axis_expressions_fit(const struct definition *definition, int64_t *row);

#endif
