/* ops - finds the op family of a definition, in the table of families that make generates from the folder names
 * (build/ops.inc). This file also contains small helpers that every family needs. */
#include "kernels/core/op.h"

#include <stdio.h>
#include <string.h>

#include "kernels/core/shape_match.h"

#define OP(name, truth, inputs) extern const struct op name##_op;
#include "ops.inc"
#undef OP

#define OP(name, truth, inputs) {&name##_op, truth, inputs},
const struct op_entry op_table[] = {
#include "ops.inc"
};
#undef OP
const int op_count = sizeof op_table / sizeof *op_table;

static bool lists_op_type(const struct op *op, const char *op_type)
{
	for (const char *const *known = op->op_types; *known != NULL; known++)
		if (strcmp(*known, op_type) == 0)
			return true;
	return false;
}

/* Appends the text to `out`, or as much of it as fits. */
static void append(char *out, size_t size, const char *text)
{
	size_t length = strlen(out);

	if (length + 1 < size)
		snprintf(out + length, size - length, "%s", text);
}

static void report_unknown(const char *op_type, struct err *why)
{
	if (*op_type == '\0')
		err_set(why, "the definition has no op_type");
	else
		err_set(why, "no op family knows op_type '%s'", op_type);
}

/* Returns true if a tensor has a const axis of length 0, which no op family supports. */
static bool has_empty_axis(const struct op_problem *problem, struct err *why)
{
	for (int i = 0; i < problem->axis_count; i++)
		if (!problem->axes[i].var && problem->axes[i].value == 0) {
			err_set(why, "no op family supports the const axis '%s' of length 0", problem->axes[i].name);
			return true;
		}
	return false;
}

const struct op_entry *op_find(const struct op_problem *problem, int *variant, struct err *why)
{
	char reasons[1536] = "";
	bool known = false;

	if (has_empty_axis(problem, why))
		return NULL;
	for (int i = 0; i < op_count; i++) {
		const struct op *op = op_table[i].op;
		struct err reason = {""};

		if (!lists_op_type(op, problem->op_type))
			continue;
		*variant = op->match(problem, &reason);
		if (*variant >= 0)
			return &op_table[i];
		known = true;
		append(reasons, sizeof reasons, reasons[0] == '\0' ? "" : "; ");
		append(reasons, sizeof reasons, op->name);
		append(reasons, sizeof reasons, ": ");
		append(reasons, sizeof reasons, reason.text);
	}
	if (known)
		err_set(why, "no op family can compute the ground truth of this definition (%s)", reasons);
	else
		report_unknown(problem->op_type, why);
	return NULL;
}

const struct op_entry *op_by_name(const char *name)
{
	for (int i = 0; i < op_count; i++)
		if (strcmp(op_table[i].op->name, name) == 0)
			return &op_table[i];
	return NULL;
}

int op_axis_index(const struct op_problem *problem, const char *name)
{
	for (int i = 0; i < problem->axis_count; i++)
		if (strcmp(problem->axes[i].name, name) == 0)
			return i;
	return -1;
}

int op_input_index(const struct op_problem *problem, const char *name)
{
	for (int i = 0; i < problem->input_count; i++)
		if (strcmp(problem->inputs[i].name, name) == 0)
			return i;
	return -1;
}

static bool says_in_place(const char *description)
{
	return match_contains(description, "in place") || match_contains(description, "in-place");
}

struct op_in_place op_in_place_as_said(const struct op_case *c, int input, int output)
{
	const struct op_arg *from = &c->problem->inputs[input], *to = &c->problem->outputs[output];
	bool must = says_in_place(c->problem->description);

	if (must || says_in_place(from->description) || says_in_place(to->description) || strcmp(from->name, to->name) == 0)
		return (struct op_in_place){output, !must};
	return (struct op_in_place){OP_KEPT, true};
}

struct op_in_place op_in_place_namesake(const struct op_case *c, int input)
{
	for (int i = 0; i < c->problem->output_count; i++)
		if (strcmp(c->problem->outputs[i].name, c->problem->inputs[input].name) == 0)
			return (struct op_in_place){i, true};
	return (struct op_in_place){OP_KEPT, true};
}

void op_start_axes(const struct op_problem *problem, int64_t value, int64_t *axis)
{
	for (int i = 0; i < problem->axis_count; i++)
		axis[i] = problem->axes[i].var ? value : problem->axes[i].value;
}

void op_set_axis(const struct op_problem *problem, int at, int64_t value, int64_t *axis)
{
	if (problem->axes[at].var)
		axis[at] = value;
}

bool op_edge_rows(int (*sizes)(const struct op_problem *, int, enum op_size, int64_t *, int),
                  const struct op_problem *problem, int variant, int64_t rows, int64_t *axis)
{
	const struct op_arg *output = &problem->outputs[0];

	if (sizes(problem, variant, SIZE_SMALL, axis, 1) != 1)
		return false;
	for (int d = 0; d + 1 < output->rank; d++)
		if (problem->axes[output->axis[d]].var) {
			axis[output->axis[d]] = rows;
			return true;
		}
	return false;
}

const char *op_shape_text(const struct op_problem *problem, const struct op_arg *arg, char *out, size_t size)
{
	snprintf(out, size, "%s", arg->rank == OP_SCALAR ? "a Python scalar" : "[");
	for (int d = 0; d < arg->rank; d++) {
		append(out, size, d == 0 ? "" : ", ");
		append(out, size, problem->axes[arg->axis[d]].name);
	}
	if (arg->rank != OP_SCALAR)
		append(out, size, "]");
	return out;
}
