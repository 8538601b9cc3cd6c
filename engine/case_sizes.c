#include "engine/case_sizes.h"

#include <stdio.h>
#include <string.h>

#include "dataset/axis_expressions.h"
#include "dataset/constrained_axes.h"
#include "dataset/constraint.h"

/* GENERIC_AXIS: the length of an axis that no family, constraint or expression determines. If an expression cannot be
 * evaluated with this length, larger lengths up to GENERIC_LARGEST are tried. */
enum { GENERIC_AXIS = 4, GENERIC_LARGEST = 4096 };

static const char *const names[SIZE_COUNT] = {[SIZE_SMALL] = "small", [SIZE_MEDIUM] = "medium", [SIZE_LARGE] = "large"};

const char *size_name(enum op_size size)
{
	return names[size];
}

/* Returns whether a constraint of the form `axis == …` determines this axis. */
static bool axis_is_derived(const struct definition *d, int axis)
{
	size_t length = strlen(d->axes[axis].name);

	if (d->axis_expressions != NULL && d->axis_expressions[axis] != NULL)
		return true;
	for (int i = 0; i < d->constraint_count; i++) {
		const char *text = d->constraints[i];

		if (strncmp(text, d->axes[axis].name, length) != 0)
			continue;
		text += length;
		if (strncmp(text + strspn(text, " "), "==", 2) == 0)
			return true;
	}
	return false;
}

/* Chooses axis values that satisfy the definition's constraints on axes. An axis that no constraint or expression
 * determines gets the value `length`. */
static void choose_axes(const struct definition *d, int64_t length, int64_t *axis)
{
	for (int i = 0; i < d->axis_count; i++)
		axis[i] = d->axes[i].var ? -1 : d->axes[i].value;
	constraint_solve(d, axis);
	for (int derived = 0; derived < 2; derived++)
		for (int i = 0; i < d->axis_count; i++)
			if (axis[i] < 0 && (derived == 1 || !axis_is_derived(d, i))) {
				axis[i] = length;
				constraint_solve(d, axis);
			}
}

/* Chooses one row of small axis values for a definition that no family supports. Tries increasing lengths until all
 * expressions can be evaluated and are above 0. Returns the number of rows: 1, or 0 if no length fits. */
static int generic_axes(const struct definition *d, int64_t *axis)
{
	for (int64_t length = GENERIC_AXIS; length <= GENERIC_LARGEST; length *= 4) {
		bool positive = true;
		struct err why;
		int at;

		choose_axes(d, length, axis);
		if (d->axis_expressions == NULL)
			return 1;
		for (int i = 0; i < d->axis_count; i++)
			positive = positive && (axis[i] > 0 || d->axis_expressions[i] == NULL);
		if (positive && axis_expressions_compute(d, axis, &at, &why) == 0)
			return 1;
	}
	return 0;
}

/* Returns whether the row at index `count` is equal to one of the rows before it. */
static bool is_repeated(const int64_t *rows, int count, size_t width)
{
	for (int i = 0; i < count; i++)
		if (memcmp(rows + (size_t)i * width, rows + (size_t)count * width, width * sizeof *rows) == 0)
			return true;
	return false;
}

/* Changes the rows so that they satisfy the expressions of axes and the constraints. Removes rows for which this is
 * impossible, and rows that become equal to an earlier row. Returns the number of rows that remain. */
static int fit_rows(const struct definition *d, int64_t *rows, int count)
{
	size_t width = (size_t)(d->axis_count > 0 ? d->axis_count : 1);
	int kept = 0;

	for (int i = 0; i < count; i++) {
		int64_t *row = rows + (size_t)kept * width;

		memmove(row, rows + (size_t)i * width, width * sizeof *rows);
		kept += axis_expressions_fit(d, row) && constrained_axes_fit(d, row) && !is_repeated(rows, kept, width);
	}
	return kept;
}

int size_rows(const struct op *op, int variant, const struct op_problem *problem, const struct definition *d,
              enum op_size size, int64_t *rows)
{
	int count = op != NULL ? op->sizes(problem, variant, size, rows, SIZE_ROWS)
	          : size == SIZE_SMALL ? generic_axes(d, rows) : 0;

	return fit_rows(d, rows, count < SIZE_ROWS ? count : SIZE_ROWS);
}

const char *why_no_sizes(const struct definition *d, struct arena *arena)
{
	int64_t axis[DEFINITION_AXES];
	struct err why;
	int at;

	choose_axes(d, GENERIC_AXIS, axis);
	if (d->axis_expressions != NULL && axis_expressions_compute(d, axis, &at, &why) != 0)
		return arena_printf(arena, "reftest generates no cases, because %s; only workloads are verified", why.text);
	return d->constraint_count > 0 ? "reftest generates no cases, because it found no axis lengths that satisfy the "
					 "constraints; only workloads are verified" : NULL;
}

enum job_runs size_runs(const struct op *op, enum op_size size, int i, int count)
{
	if (size != SIZE_MEDIUM)
		return JOB_RUNS_ALL;
	if (op == NULL || count < 2)
		return JOB_RUNS_BOTH;
	bool last = i == count - 1;

	switch (op->medium_runs) {
	case LAST_MEDIUM_RUNS_ONCE:
		return last ? JOB_RUNS_FIRST : JOB_RUNS_BOTH;
	case LAST_MEDIUM_RUNS_TWICE:
		return last ? JOB_RUNS_BOTH : i % 2 == 0 ? JOB_RUNS_SECOND : JOB_RUNS_FIRST;
	default:
		return JOB_RUNS_BOTH;
	}
}

int case_sizes_read(const char *list, bool size[SIZE_COUNT], struct err *err)
{
	while (*list != '\0') {
		size_t length = strcspn(list, ",");
		bool found = false;

		for (int s = 0; s < SIZE_COUNT; s++)
			if (strlen(names[s]) == length && memcmp(names[s], list, length) == 0)
				found = size[s] = true;
		if (!found) {
			char name[128]; /* err_show cuts the name long before this length */

			snprintf(name, sizeof name, "%.*s", (int)length, list);
			return err_set(err, "unknown size '%s' (--sizes takes small, medium and large, separated by "
					    "commas)",
			               err_show(name).text);
		}
		list += length + (list[length] == ',');
	}
	return 0;
}
