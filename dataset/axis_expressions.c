#include "dataset/axis_expressions.h"

#include <string.h>

#include "dataset/constraint.h"

/* An arbitrary length, for an axis whose length does not matter. */
enum { SAMPLE = 1 };

static const char *expression_of(const struct definition *d, int axis)
{
	return d->axis_expressions != NULL ? d->axis_expressions[axis] : NULL;
}

static int cannot_compute(const struct definition *d, int axis, const char *why, struct err *err)
{
	const char *name = d->axes[axis].name, *expression = expression_of(d, axis);

	if (strcmp(name, expression) == 0)
		return err_set(err, "the size %s cannot be computed: %s", name, why);
	return err_set(err, "the axis %s = %s cannot be computed: %s", name, expression, why);
}

/* Computes one axis. Returns 1 if the axis got a value, 0 if the axis had a value already or stays unknown, and -1 with
 * a message on error. */
static int compute_one(const struct definition *d, int i, int64_t *axis, struct err *err)
{
	struct err why = {""};
	int64_t value;
	enum constraint_answer answer = constraint_length(d, expression_of(d, i), axis, &value, &why);

	if (answer == CONSTRAINT_UNKNOWN)
		return 0;
	if (answer == CONSTRAINT_ERROR)
		return cannot_compute(d, i, why.text, err);
	if (axis[i] >= 0 && axis[i] != value)
		return err_set(err, "expected the axis %s to be %lld, the value of %s, found %lld", d->axes[i].name, (long long)value,
			       expression_of(d, i), (long long)axis[i]);
	bool was_unknown = axis[i] < 0;

	axis[i] = value;
	return was_unknown;
}

int axis_expressions_compute(const struct definition *d, int64_t *axis, int *at, struct err *why)
{
	bool progress = true;

	while (progress) { /* until no further axis can be computed */
		progress = false;
		for (int i = 0; i < d->axis_count; i++) {
			int found = expression_of(d, i) != NULL ? compute_one(d, i, axis, why) : 0;

			*at = i;
			if (found < 0)
				return -1;
			progress = progress || found > 0;
		}
	}
	return 0;
}

int axis_expressions_circular(const struct definition *d)
{
	int64_t axis[DEFINITION_AXES];
	bool progress = true;

	for (int i = 0; i < d->axis_count; i++)
		axis[i] = expression_of(d, i) != NULL ? -1 : d->axes[i].var ? SAMPLE : d->axes[i].value;
	while (progress) {
		progress = false;
		for (int i = 0; i < d->axis_count; i++) {
			int64_t value = SAMPLE;

			if (axis[i] >= 0 || constraint_length(d, expression_of(d, i), axis, &value, NULL) == CONSTRAINT_UNKNOWN)
				continue;
			/* if the evaluation failed (for example, divided by zero), `value` is still SAMPLE; other
			 * lengths may work */
			axis[i] = value;
			progress = true;
		}
	}
	for (int i = 0; i < d->axis_count; i++)
		if (axis[i] < 0)
			return i;
	return -1;
}

static bool is_in_a_tensor(const struct definition *d, int axis)
{
	for (int i = 0; i < d->input_count + d->output_count; i++) {
		const struct tensor_spec *spec = i < d->input_count ? &d->inputs[i] : &d->outputs[i - d->input_count];

		for (int k = 0; k < spec->rank; k++)
			if (spec->axis[k] == axis)
				return true;
	}
	return false;
}

/* Chooses values in `axis` for the variable axes that occur in no tensor, and keeps the values of the other axes.
 * Returns whether the values then satisfy the expressions of all axes. */
static bool fit_unused(const struct definition *d, int64_t *axis)
{
	struct err why;
	int at;

	for (int i = 0; i < d->axis_count; i++)
		if (d->axes[i].var && !is_in_a_tensor(d, i))
			axis[i] = -1;
	constraint_solve(d, axis);
	for (int i = 0; i < d->axis_count; i++)
		if (axis[i] < 0 && expression_of(d, i) == NULL) {
			axis[i] = SAMPLE;
			constraint_solve(d, axis);
		}
	return axis_expressions_compute(d, axis, &at, &why) == 0;
}

bool axis_expressions_fit(const struct definition *d, int64_t *row)
{
	size_t size = (size_t)d->axis_count * sizeof *row;
	int64_t axis[DEFINITION_AXES];
	struct err why;
	int at;

	if (d->axis_expressions == NULL)
		return true;
	memcpy(axis, row, size);
	bool fits = fit_unused(d, axis);

	if (!fits) {
		memcpy(axis, row, size);
		for (int i = 0; i < d->axis_count; i++)
			if (d->axes[i].var && expression_of(d, i) != NULL)
				axis[i] = -1;
		fits = axis_expressions_compute(d, axis, &at, &why) == 0;
	}
	for (int i = 0; i < d->axis_count; i++)
		fits = fits && axis[i] >= 0;
	if (fits)
		memcpy(row, axis, size);
	return fits;
}
