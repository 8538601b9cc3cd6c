#include "dataset/definition_parse_internal.h"

#include <stdlib.h>
#include <string.h>

#include "dataset/axis_expressions.h"
#include "dataset/axis_length.h"
#include "dataset/constraint.h"
#include "dataset/python_outline.h"
#include "dataset/python_tokens.h"

/* --- axes ---------------------------------------------------------------------------------------------------- */

static int read_axis_value(struct reader *r, const struct json_step *axis, const cJSON *json, struct axis *out)
{
	const struct json_step at = {.up = axis, .key = "value"};
	const cJSON *value = json_member(json, "value");

	if (value == NULL)
		return json_missing(&r->text, axis, "value", r->err, "an integer, because the axis is const");
	if (!axis_length_read(value, &out->value))
		return reader_expected(r, &at, "an integer from 0 to 9007199254740991", value);
	return 0;
}

/* Reads the text of an expression, without evaluating it. After all axes are read, read_expressions checks whether the
 * expression can be evaluated. */
static int read_expression(struct reader *r, const struct json_step *axis, const cJSON *json, const char **out)
{
	const struct json_step at = {.up = axis, .key = "expression"};
	const cJSON *value = json_member(json, "expression");

	if (value == NULL)
		return json_missing(&r->text, axis, "expression", r->err, "a string, because the type of the axis is \"expr\"");
	if (!cJSON_IsString(value))
		return reader_expected(r, &at, "an expression in a string", value);
	*out = arena_string(r->arena, value->valuestring);
	return 0;
}

/* If "type" is absent, the axis is const if it has a "value", as in flashinfer-bench. An axis with an expression is var
 * until fix_expression or fix_axes marks it as const. */
static int read_axis_type(struct reader *r, const struct json_step *axis, const cJSON *json, struct axis *out,
			  const char **expression)
{
	const struct json_step at = {.up = axis, .key = "type"};
	const cJSON *type = json_member(json, "type");
	const char *text = cJSON_GetStringValue(type);

	out->var = type == NULL ? json_member(json, "value") == NULL
				: text != NULL && (strcmp(text, "var") == 0 || strcmp(text, "expr") == 0);
	if (type != NULL && !out->var && (text == NULL || strcmp(text, "const") != 0))
		return reader_expected(r, &at, "\"const\", \"var\" or \"expr\"", type);
	return text != NULL && strcmp(text, "expr") == 0 ? read_expression(r, axis, json, expression) : 0;
}

static int read_axis(struct reader *r, const struct json_step *axes, const cJSON *json)
{
	static const char *const known[] = {"type", "description", "value"}, *const of_expression[] = {"type", "description", "expression"};
	const struct json_step at = {.up = axes, .key = json->string};
	int i = r->out->axis_count++;
	struct axis *out = &r->axes[i];

	if (reader_check_printable(r, &at, "an axis name", json->string) != 0)
		return -1;
	if (!cJSON_IsObject(json))
		return reader_expected(r, &at, "an object with a \"type\"", json);
	out->name = arena_string(r->arena, json->string);
	if (read_axis_type(r, &at, json, out, &r->expressions[i]) != 0)
		return -1;
	if (r->expressions[i] != NULL)
		reader_note_unknown(r, &at, json, of_expression, 3);
	else
		reader_note_unknown(r, &at, json, known, out->var ? 2 : 3);
	if (reader_description(r, &at, json, &r->descriptions[i]) != 0)
		return -1;
	return out->var ? 0 : read_axis_value(r, &at, json, out);
}

int reader_members(struct reader *r, const cJSON *json, const char *key, int most, const cJSON **out)
{
	const struct json_step at = {.key = key};

	*out = json_member(json, key);
	if (*out == NULL)
		return json_missing(&r->text, NULL, key, r->err, "an object");
	if (!cJSON_IsObject(*out))
		return reader_expected(r, &at, "an object", *out);
	int count = cJSON_GetArraySize(*out);

	if (count > most)
		return json_error_at(&r->text, &at, r->err, "expected at most %d %s, found %d", most, key, count);
	return count;
}

void reserve_axes(struct reader *r, int room)
{
	struct axis *axes = arena_array(r->arena, (size_t)room, sizeof *axes);
	const char **descriptions = arena_array(r->arena, (size_t)room, sizeof *descriptions);
	const char **expressions = arena_array(r->arena, (size_t)room, sizeof *expressions);

	for (int i = 0; i < r->out->axis_count; i++) {
		axes[i] = r->axes[i];
		descriptions[i] = r->descriptions[i];
		expressions[i] = r->expressions[i];
	}
	r->axis_room = room;
	r->out->axes = r->axes = axes;
	r->out->axis_descriptions = r->descriptions = descriptions;
	r->expressions = expressions;
	if (r->out->axis_expressions != NULL)
		r->out->axis_expressions = expressions;
}

int fix_expression(struct reader *r, const struct json_step *at, int i)
{
	const struct definition *d = r->out;
	int64_t axis[DEFINITION_AXES], value;
	struct err why;

	for (int k = 0; k < d->axis_count; k++)
		axis[k] = d->axes[k].var ? -1 : d->axes[k].value;
	enum constraint_answer answer = constraint_length(d, r->expressions[i], axis, &value, &why);

	if (answer == CONSTRAINT_ERROR)
		return json_error_at(&r->text, at, r->err, "the expression cannot be computed: %s", why.text);
	if (answer != CONSTRAINT_HOLDS)
		return 0;
	r->axes[i] = (struct axis){.name = r->axes[i].name, .value = value};
	return 1;
}

/* Checks the expressions of all axes, and computes the axes whose expressions depend only on const axes. */
static int read_expressions(struct reader *r, const struct json_step *axes)
{
	bool progress = true;
	int circular;

	while (progress) {
		progress = false;
		for (int i = 0; i < r->out->axis_count; i++) {
			const struct json_step axis = {.up = axes, .key = r->axes[i].name}, at = {.up = &axis, .key = "expression"};
			int fixed = r->axes[i].var && r->expressions[i] != NULL ? fix_expression(r, &at, i) : 0;

			r->out->axis_expressions = r->expressions[i] != NULL ? r->expressions : r->out->axis_expressions;
			if (fixed < 0)
				return -1;
			progress = progress || fixed > 0;
		}
	}
	circular = r->out->axis_expressions != NULL ? axis_expressions_circular(r->out) : -1;
	if (circular < 0)
		return 0;
	const struct json_step axis = {.up = axes, .key = r->axes[circular].name}, at = {.up = &axis, .key = "expression"};

	return json_error_at(&r->text, &at, r->err,
			     "expected an expression without a cycle, but the axis \"%s\" depends on itself",
			     err_show(r->axes[circular].name).text);
}

/* Sets the lengths of the var axes that have no expression: to `length` if `step` is 0, otherwise to `length` plus a
 * multiple of `step` that differs from axis to axis. Then computes the var axes that have expressions. */
static int compute_with(const struct reader *r, int64_t length, int64_t step, int *at, struct err *why)
{
	int64_t axis[DEFINITION_AXES];

	for (int i = 0; i < r->out->axis_count; i++) {
		int64_t more = (step < 0 ? i - DEFINITION_AXES : i) * step;

		axis[i] = !r->axes[i].var ? r->axes[i].value : r->expressions[i] != NULL ? -1 : length + more;
	}
	return axis_expressions_compute(r->out, axis, at, why);
}

/* Tries some lengths of the var axes. Adds a note if an expression cannot be evaluated with any of these lengths, for
 * example `8 // (n - n)`. This is no error: with the lengths of the workloads, the expression may have a value. */
static void note_uncomputable(struct reader *r, const struct json_step *axes)
{
	static const int64_t lengths[] = {1, 2, 3, 4, 5, 8, 12, 16, 64, 100, 128, 1000, 1024, 4096, 1 << 20};
	static const int64_t steps[] = {64, -64, 0};
	struct err why = {""};
	int at = -1;

	for (size_t k = 0; k < sizeof steps / sizeof *steps; k++)
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
			if (compute_with(r, lengths[i], steps[k], &at, &why) == 0)
				return;
	const struct json_step axis = {.up = axes, .key = r->axes[at].name}, place = {.up = &axis, .key = "expression"};

	reader_note(r, &place,
	            arena_printf(r->arena, "reftest tried several lengths of the axes, but could not compute the "
	                "expression for any of them: %s", why.text));
}

int read_axes(struct reader *r, const cJSON *json)
{
	const struct json_step at = {.key = "axes"};
	const cJSON *object;
	int count = reader_members(r, json, "axes", DEFINITION_AXES, &object);

	if (count < 0)
		return -1;
	reserve_axes(r, count);
	for (const cJSON *member = object->child; member != NULL; member = member->next)
		if (read_axis(r, &at, member) != 0)
			return -1;
	if (read_expressions(r, &at) != 0)
		return -1;
	if (r->out->axis_expressions != NULL)
		note_uncomputable(r, &at);
	return 0;
}

/* --- constraints --------------------------------------------------------------------------------------------- */

/* Adds a note that the constraint cannot be checked. This is not an error: a constraint may be any Python expression,
 * and reftest can check only some of them. */
static void note_unchecked(struct reader *r, const struct json_step *at, const char *why)
{
	reader_note(r, at, arena_printf(r->arena, "this constraint is not checked: %s", why));
}

/* Returns true if the text is certainly not a Python expression. */
static bool is_no_expression(struct reader *r, const char *text)
{
	const char *source = arena_printf(r->arena, "_ = (%s\n)\n", text);
	struct python_outline outline;

	return text[strspn(text, " \t")] == '\0' ||
	       python_outline_read(source, strlen(source), NULL, r->arena, &outline, NULL) == PYTHON_OUTLINE_ERROR;
}

/* Checks that the values of the const axes alone do not violate the constraint. Returns 1 if the constraint can be
 * checked and 0 if it cannot be checked. Returns -1 with a message on error. */
static int check_constraint(struct reader *r, const struct json_step *at, const char *text, const int64_t *axis)
{
	struct err why;

	switch (constraint_evaluate(r->out, text, axis, NULL, &why)) {
	case CONSTRAINT_BROKEN:
		return json_error_at(&r->text, at, r->err,
		                     "expected a constraint that can be satisfied, but the values of the const axes make "
		                     "it false: %s",
		                     why.text);
	case CONSTRAINT_ERROR:
		if (is_no_expression(r, text))
			return json_error_at(&r->text, at, r->err, "expected a Python expression, found \"%s\"",
					     err_show(text).text);
		note_unchecked(r, at, why.text);
		return 0;
	default:
		return 1;
	}
}

/* Marks an axis as const if the constraints and the const axes allow only one value above 0 for the axis. With `hidden
 * == 2 * half` and a const `hidden`, the axis `half` is also const. `axis` has the values of the const axes. */
static void fix_axes(struct reader *r, int64_t *axis)
{
	const struct definition *d = r->out;

	if (constraint_solve(d, axis) == 0)
		return;
	for (int i = 0; i < d->input_count + d->output_count; i++)
		if (definition_bytes(i < d->input_count ? &d->inputs[i] : &d->outputs[i - d->input_count], axis) < 0)
			return; /* a tensor exceeds the size limit; each case reports this error */
	for (int i = 0; i < d->axis_count; i++)
		if (axis[i] > 0)
			r->axes[i] = (struct axis){.name = r->axes[i].name, .value = axis[i]};
}

/* Returns the texts of the constraints, followed by "axis == expression" for each var axis that has an expression and
 * whose name can occur in a constraint. */
static const char *const *add_equations(struct reader *r, const char *const *texts, int *count)
{
	const struct definition *d = r->out;
	const char **all = arena_array(r->arena, (size_t)*count + (size_t)d->axis_count, sizeof *all);

	for (int i = 0; i < *count; i++)
		all[i] = texts[i];
	for (int i = 0; i < d->axis_count; i++)
		if (d->axes[i].var && r->expressions[i] != NULL && python_is_argument(d->axes[i].name))
			all[(*count)++] = arena_printf(r->arena, "%s == %s", d->axes[i].name, r->expressions[i]);
	return all;
}

int read_constraints(struct reader *r, const cJSON *json)
{
	const struct json_step list = {.key = "constraints"};
	const char *const *texts;
	int64_t axis[DEFINITION_AXES];
	int count = 0;

	if (reader_strings(r, json, "constraints", CONSTRAINTS, &texts, &count) != 0)
		return -1;
	texts = add_equations(r, texts, &count);
	const char **sorted = arena_array(r->arena, (size_t)count, sizeof *sorted);

	for (int i = 0; i < r->out->axis_count; i++)
		axis[i] = r->out->axes[i].var ? -1 : r->out->axes[i].value;
	for (int i = 0; i < count; i++) {
		const struct json_step at = {.up = &list, .index = i};
		int checkable = check_constraint(r, &at, texts[i], axis);

		if (checkable < 0)
			return -1;
		if (checkable > 0)
			sorted[r->out->constraint_count++] = texts[i];
		else
			sorted[count - ++r->out->unchecked_count] = texts[i];
	}
	r->out->constraints = sorted;
	fix_axes(r, axis);
	return 0;
}
