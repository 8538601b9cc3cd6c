#include "kernels/common/norm/rms_roles.h"

#include <math.h>
#include <string.h>

static bool named(const char *name, const char *part)
{
	return strstr(name, part) != NULL;
}

struct rms_roles rms_roles_of(const struct op_problem *problem)
{
	struct rms_roles roles = {-1, -1, -1, -1, -1, -1};
	int rank = problem->output_count > 0 ? problem->outputs[0].rank : 0;

	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		bool flat_weight = rank == 1 && (named(input->name, "weight") || named(input->name, "gamma"));

		if (input->rank == OP_SCALAR)
			roles.eps = i;
		else if (input->rank == 1 && (rank != 1 || flat_weight))
			roles.weight = i;
		else if (roles.hidden < 0)
			roles.hidden = i;
		else
			roles.residual = i;
	}
	if (roles.residual >= 0 && named(problem->inputs[roles.hidden].name, "resid") &&
	    !named(problem->inputs[roles.residual].name, "resid")) {
		int first = roles.hidden;

		roles.hidden = roles.residual;
		roles.residual = first;
	}
	roles.output = problem->output_count > 0 ? 0 : -1;
	roles.updated = problem->output_count > 1 ? 1 : -1;
	if (roles.updated >= 0 && named(problem->outputs[0].name, "resid") &&
	    !named(problem->outputs[1].name, "resid")) {
		roles.output = 1;
		roles.updated = 0;
	}
	return roles;
}

const struct op_role rms_role_names[] = {
    OP_ROLE("hidden", struct rms_roles, hidden),
    OP_ROLE("residual", struct rms_roles, residual),
    OP_ROLE("weight", struct rms_roles, weight),
    OP_ROLE("eps", struct rms_roles, eps),
    OP_ROLE_OUTPUT("output", struct rms_roles, output),
    OP_ROLE_OUTPUT("updated", struct rms_roles, updated),
    {NULL, 0, false},
};

const struct op_coverage rms_coverage[] = {
    COVERAGE_OPTION("residual", "residual", "added", "adds a residual", "none", "has no residual"),
    COVERAGE_OPTION("epsilon", "eps", "input", "has an epsilon among its inputs", "hidden", "has a hidden epsilon"),
    COVERAGE_DTYPES("hidden"),
    COVERAGE_ROWS("hidden"),
    {"shape", coverage_rank, .role = "hidden",
     .values = {{"[rows, hidden]", 2, 2, "normalises [rows, hidden]"},
		{"[rows, heads, hidden]", 3, 3, "normalises [rows, heads, hidden]"},
		{"other", 0, OP_RANK, NULL}}},
    {.name = NULL},
};

void rms_bind(const struct op_problem *problem, int variant, void *roles)
{
	(void)variant;
	*(struct rms_roles *)roles = rms_roles_of(problem);
}

double rms_eps(const struct op_case *c)
{
	int scalar = rms_roles_of(c->problem).eps;

	if (scalar >= 0)
		return c->scalar[scalar];
	return c->constant_count > 0 ? c->constants[0].value : (double)NAN;
}

void rms_extent(const struct op_case *c, int64_t *rows, int64_t *columns)
{
	const struct op_arg *hidden = &c->problem->inputs[rms_roles_of(c->problem).hidden];

	*rows = 1;
	for (int d = 0; d + 1 < hidden->rank; d++) {
		int64_t length = c->axis[hidden->axis[d]];

		*rows = length > 0 && *rows > (INT64_MAX >> 1) / length ? INT64_MAX >> 1 : *rows * length;
	}
	*columns = c->axis[hidden->axis[hidden->rank - 1]];
}
