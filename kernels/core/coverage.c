#include "kernels/core/coverage.h"

#include <math.h>
#include <string.h>

struct coverage_view coverage_view_of(const struct op *op, const struct op_case *c)
{
	return (struct coverage_view){c, op_names_of(op, c->problem, c->variant)};
}

static int index_of(const char *const *roles, int count, const char *role)
{
	for (int i = 0; role != NULL && i < count; i++)
		if (roles[i] != NULL && strcmp(roles[i], role) == 0)
			return i;
	return -1;
}

static int input_of(const struct coverage_view *view, const char *role)
{
	return index_of(view->names.inputs, view->c->problem->input_count, role);
}

/* Returns the input or output that has a role, or NULL if there is none. */
static const struct op_arg *arg_of(const struct coverage_view *view, const char *role)
{
	const struct op_problem *problem = view->c->problem;
	int input = input_of(view, role), output = index_of(view->names.outputs, problem->output_count, role);

	return input >= 0 ? &problem->inputs[input] : output >= 0 ? &problem->outputs[output] : NULL;
}

double coverage_has(const struct coverage_view *view, const struct op_coverage *row)
{
	int input = input_of(view, row->role);

	if (input >= 0)
		return (view->c->absent >> input & 1) == 0;
	return arg_of(view, row->role) != NULL;
}

static bool has_mode(const struct coverage_view *view, const char *name, size_t length)
{
	for (int i = 0; i < view->names.mode_count; i++)
		if (strlen(view->names.modes[i]) == length && memcmp(view->names.modes[i], name, length) == 0)
			return true;
	return false;
}

double coverage_switch(const struct coverage_view *view, const struct op_coverage *row)
{
	int input = input_of(view, row->role);

	if (input >= 0)
		return view->c->scalar[input] != 0;
	return row->other != NULL && has_mode(view, row->other, strlen(row->other));
}

double coverage_mode(const struct coverage_view *view, const struct op_coverage *row)
{
	int number = 1;

	for (const char *at = row->role; *at != '\0'; number++) {
		size_t length = strcspn(at, "|");

		if (has_mode(view, at, length))
			return number;
		at += length + (at[length] == '|');
	}
	return 0;
}

double coverage_dtype(const struct coverage_view *view, const struct op_coverage *row)
{
	const struct op_arg *arg = arg_of(view, row->role);

	return arg != NULL ? (double)arg->dtype : (double)NAN;
}

double coverage_rank(const struct coverage_view *view, const struct op_coverage *row)
{
	const struct op_arg *arg = arg_of(view, row->role);

	return arg != NULL ? (double)arg->rank : (double)NAN;
}

/* Returns the length of an axis of the tensor with this role, or NaN if there is no such tensor or axis. */
static double length_of(const struct coverage_view *view, const char *role, int axis)
{
	const struct op_arg *arg = arg_of(view, role);
	int at = arg != NULL && axis < 0 ? arg->rank + axis : axis;

	return arg != NULL && at >= 0 && at < arg->rank ? (double)view->c->axis[arg->axis[at]] : (double)NAN;
}

double coverage_length(const struct coverage_view *view, const struct op_coverage *row)
{
	return length_of(view, row->role, row->axis);
}

double coverage_ratio(const struct coverage_view *view, const struct op_coverage *row)
{
	return length_of(view, row->role, row->axis) / length_of(view, row->other, row->other_axis);
}

int coverage_of(const struct coverage_view *view, const struct op_coverage *row)
{
	double number = row->measure(view, row);

	for (int i = 0; i < COVERAGE_VALUES && row->values[i].name != NULL; i++)
		if (number >= row->values[i].least && number <= row->values[i].most)
			return i;
	return -1;
}
