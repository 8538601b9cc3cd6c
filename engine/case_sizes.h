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

/* Returns the runs of case `i` of the `count` cases of a size. Medium cases take most of the time of `verify`, so they
 * have fewer runs (op.medium_runs). */
enum job_runs size_runs(const struct op *op, enum op_size size, int i, int count);

/* Parses a list such as "small,large". Sets size[i] for each size i in the list. Returns -1 and sets `err` on error. */
int case_sizes_read(const char *list, bool size[SIZE_COUNT], struct err *err);

/* Sets `rows` to the axis values of the cases of a size preset, and returns the number of these cases. `rows` is a
 * matrix with room for SIZE_ROWS rows. Each row has d->axis_count (at least 1) values. If no family supports the
 * definition (`op` is NULL), the preset small has one case with small values that satisfy the constraints. */
enum { SIZE_ROWS = 16 };
int size_rows(const struct op *op, int variant, const struct op_problem *problem, const struct definition *d,
              enum op_size size, int64_t *rows);

/* Use this for a definition without a family. If no axis values satisfy the expressions and constraints of the
 * definition, returns a sentence about this. Otherwise returns NULL. */
const char *why_no_sizes(const struct definition *definition, struct arena *arena);

#endif
