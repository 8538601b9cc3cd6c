/* case_sizes - chooses the axis values of the cases that reftest adds. If a family supports the definition, the values
 * come from the family's size presets. Otherwise the values are small and satisfy the definition's expressions and
 * constraints. */
#ifndef REFTEST_ENGINE_CASE_SIZES_H
#define REFTEST_ENGINE_CASE_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "dataset/definition.h"
#include "kernels/core/op.h"
#include "workers/protocol/job.h"

const char *size_name(enum op_size size);

/* Returns on which sets of input values, and how often, the reference runs in case `i` of a size preset. The preset has
 * `count` cases. Medium cases take most of the time of `verify`, so the reference runs less often in them
 * (op.medium_runs). */
enum job_runs size_runs(const struct op *op, enum op_size size, int i, int count);

/* Parses a list such as "small,large". Sets size[i] for each size i in the list. Returns -1 and sets `err` on error. */
int case_sizes_read(const char *list, bool size[SIZE_COUNT], struct err *err);

/* Sets `rows` to the axis values of the cases of a size preset, and returns the number of these cases. `rows` is a
 * matrix with room for SIZE_ROWS rows. Each row has d->axis_count (at least 1) values. If no family supports the
 * definition (`op` is NULL), the preset small has one case with small values that satisfy the constraints. */
enum { SIZE_ROWS = 16 };
int size_rows(const struct op *op, int variant, const struct op_problem *problem, const struct definition *d,
              enum op_size size, int64_t *rows);

/* Call this if size_rows returned 0. Returns a sentence that says why: an expression cannot be evaluated, or the
 * constraints cannot be satisfied. Returns NULL if the reason is neither of these. */
const char *why_no_sizes(const struct definition *definition, struct arena *arena);

#endif
