#include "kernels/core/roles.h"

static void name_roles(const struct op *op, const struct op_problem *problem, int variant, struct op_names *names)
{
	_Alignas(max_align_t) unsigned char roles[OP_ROLES_SIZE];

	op->bind(problem, variant, roles);
	for (const struct op_role *role = op->roles; role->name != NULL; role++) {
		int at = *(const int *)(const void *)(roles + role->at);
		int count = role->output ? problem->output_count : problem->input_count;

		if (at >= 0 && at < count)
			(role->output ? names->outputs : names->inputs)[at] = role->name;
	}
}

struct op_names op_names_of(const struct op *op, const struct op_problem *problem, int variant)
{
	struct op_names names = {.mode_count = 0};

	if (op->roles != NULL)
		name_roles(op, problem, variant, &names);
	for (const struct op_mode *mode = op->modes; mode != NULL && mode->name != NULL; mode++)
		if ((variant & mode->mask) == mode->value && names.mode_count < OP_MODES)
			names.modes[names.mode_count++] = mode->name;
	return names;
}

static void write_args(const char *key, const char *const *roles, const struct op_arg *args, int count, struct buf *out)
{
	const char *comma = "";

	buf_printf(out, "\"%s\":{", key);
	for (int i = 0; i < count; i++) {
		if (roles[i] == NULL)
			continue;
		buf_printf(out, "%s\"%s\":", comma, roles[i]);
		buf_json_string(out, args[i].name);
		comma = ",";
	}
	buf_text(out, "},");
}

void op_names_write(const struct op_names *names, const struct op_problem *problem, struct buf *out)
{
	write_args("roles", names->inputs, problem->inputs, problem->input_count, out);
	write_args("output_roles", names->outputs, problem->outputs, problem->output_count, out);
	buf_text(out, "\"modes\":[");
	for (int i = 0; i < names->mode_count; i++)
		buf_printf(out, "%s\"%s\"", i > 0 ? "," : "", names->modes[i]);
	buf_text(out, "]");
}
