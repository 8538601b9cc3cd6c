#include "kernels/mamba_ssu/roles.h"

#include <string.h>

#include "base/err.h"
#include "kernels/core/shape_match.h"

/* Returns the member of `roles` to which an input belongs. Scalars, indices and the state are recognised by rank and
 * kind of dtype, and all other float inputs by name. */
static int *place_of(struct ssu_roles *roles, const struct op_arg *input)
{
	const struct {
		const char *name;
		int *place;
	} names[] = {{"x", &roles->x}, {"z", &roles->z}, {"dt", &roles->dt}, {"A", &roles->a},
	             {"B", &roles->b}, {"C", &roles->c}, {"D", &roles->d},   {"dt_bias", &roles->dt_bias}};

	if (input->rank == OP_SCALAR)
		return strstr(input->name, "softplus") != NULL ? &roles->softplus
		       : strstr(input->name, "pad") != NULL    ? &roles->pad
		                                               : NULL;
	if (match_is_index(input))
		return &roles->indices;
	if (!match_is_float(input))
		return NULL;
	if (input->rank == 4)
		return &roles->state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(input->name, names[i].name) == 0)
			return names[i].place;
	return NULL;
}

/* Returns true if this input may be absent. The scalar pad_slot_id must not be absent, because it states which slot
 * number marks padding. */
static bool may_be_absent(const struct ssu_roles *roles, int input)
{
	return input == roles->z || input == roles->d || input == roles->dt_bias || input == roles->indices ||
	       input == roles->softplus;
}

static int find_inputs(const struct op_problem *problem, struct ssu_roles *roles, struct err *why)
{
	*roles = (struct ssu_roles){-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
	for (int i = 0; i < problem->input_count; i++) {
		int *place = place_of(roles, &problem->inputs[i]);

		if (place == NULL || *place >= 0)
			return match_refuse_unknown(problem, &problem->inputs[i],
						    "a state [slots, heads, dim, S], the floats x, dt, z, A, B, C, D "
						    "and dt_bias, integer slots, and the scalars dt_softplus and "
						    "pad_slot_id", why);
		*place = i;
		if (problem->inputs[i].optional && !may_be_absent(roles, i))
			return match_refuse(problem, &problem->inputs[i],
					    "an input without \"optional\": true", why);
	}
	if (roles->state < 0 || roles->x < 0 || roles->dt < 0 || roles->a < 0 || roles->b < 0 || roles->c < 0)
		return err_set(why, "the inputs must include a state, x, dt, A, B and C");
	return 0;
}

static int find_outputs(const struct op_problem *problem, struct ssu_roles *roles, struct err *why)
{
	for (int i = 0; i < problem->output_count; i++) {
		int *place = problem->outputs[i].rank == 4 ? &roles->new_state : &roles->output;

		if (*place >= 0 || !match_is_float(&problem->outputs[i]))
			return match_refuse_unknown(problem, &problem->outputs[i],
						    "floats with the shape of x, and floats with the shape of the "
						    "state", why);
		*place = i;
	}
	return roles->output >= 0 ? 0 : err_set(why, "the definition needs an output with the shape of x");
}

/* Returns true if `arg` has the axes that `parts` lists, one letter per axis. The letters S, H, D and N in `parts` mean
 * the axes of the state (slots, heads, dim, and the last axis), b means the batch axis of x, and g means any const
 * axis. */
static bool is_shape(const struct op_problem *problem, const struct ssu_roles *roles, const struct op_arg *arg,
                     const char *parts)
{
	static const char of_state[] = "SHDN";
	const struct op_arg *state = &problem->inputs[roles->state], *x = &problem->inputs[roles->x];

	if (arg->rank != (int)strlen(parts))
		return false;
	for (int d = 0; d < arg->rank; d++) {
		const char *at = strchr(of_state, parts[d]);
		int wanted = at != NULL ? state->axis[at - of_state] : x->axis[0];

		if (parts[d] == 'g' ? problem->axes[arg->axis[d]].var : !match_same_axis(problem, arg->axis[d], wanted))
			return false;
	}
	return true;
}

static int match_shapes(const struct op_problem *problem, const struct ssu_roles *roles, struct err *why)
{
	const struct {
		int input;
		const char *one, *other, *expected;
	} shapes[] = {
	    {roles->state, "SHDN", "SHDN", "a state [slots, heads, dim, S]"},
	    {roles->x, "bHD", "bHD", "[batch, heads, dim], where heads and dim are the same axes as in the state"},
	    {roles->dt, "bHD", "bH", "[batch, heads, dim] or [batch, heads], where the axes are the same as in x"},
	    {roles->a, "HDN", "H", "[heads, dim, S] or [heads], where the axes are the same as in the state"},
	    {roles->b, "bgN", "bgN", "[batch, groups, S], where groups is a const axis"},
	    {roles->c, "bgN", "bgN", "[batch, groups, S], where groups is a const axis"},
	    {roles->z, "bHD", "bHD", "the shape of x"},
	    {roles->d, "HD", "H", "[heads, dim] or [heads], where heads and dim are the same axes as in the state"},
	    {roles->dt_bias, "HD", "H", "[heads, dim] or [heads], where heads and dim are the same axes as in the "
					"state"},
	    {roles->indices, "b", "b", "[batch], where batch is the first axis of x"},
	};

	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const struct op_arg *input = shapes[i].input < 0 ? NULL : &problem->inputs[shapes[i].input];

		if (input != NULL && !is_shape(problem, roles, input, shapes[i].one) &&
		    !is_shape(problem, roles, input, shapes[i].other))
			return match_refuse(problem, input, shapes[i].expected, why);
	}
	if (!is_shape(problem, roles, &problem->outputs[roles->output], "bHD"))
		return match_refuse(problem, &problem->outputs[roles->output], "the shape of x", why);
	if (roles->new_state >= 0 && !is_shape(problem, roles, &problem->outputs[roles->new_state], "SHDN"))
		return match_refuse(problem, &problem->outputs[roles->new_state], "the shape of the state",
				    why);
	return 0;
}

static bool says_in_place(const struct op_arg *state)
{
	return match_contains(state->description, "in place") || match_contains(state->description, "in-place");
}

int ssu_match(const struct op_problem *problem, struct err *why)
{
	struct ssu_roles roles;

	if (find_inputs(problem, &roles, why) != 0 || find_outputs(problem, &roles, why) != 0 ||
	    match_shapes(problem, &roles, why) != 0)
		return -1;

	const struct op_arg *state = &problem->inputs[roles.state], *b = &problem->inputs[roles.b];
	const struct op_arg *c = &problem->inputs[roles.c];

	for (int d = 1; d < 4; d++)
		if (problem->axes[state->axis[d]].var)
			return match_refuse(problem, state,
					    "[slots, heads, dim, S], where only slots may be var", why);
	if (!match_same_axis(problem, b->axis[1], c->axis[1]) ||
	    problem->axes[state->axis[1]].value % problem->axes[b->axis[1]].value != 0)
		return match_refuse(problem, c,
				    "the same number of groups as in B; this number must divide the number of heads",
				    why);
	return roles.new_state < 0 && says_in_place(state) ? SSU_IN_PLACE : 0;
}

struct ssu_roles ssu_roles_of(const struct op_problem *problem)
{
	struct ssu_roles roles;

	find_inputs(problem, &roles, NULL);
	find_outputs(problem, &roles, NULL);
	return roles;
}

struct ssu_extent ssu_extent_of(const struct op_case *c, const struct ssu_roles *roles)
{
	const struct op_arg *state = &c->problem->inputs[roles->state];

	return (struct ssu_extent){
	    .batch = c->axis[c->problem->inputs[roles->x].axis[0]],
	    .slots = c->axis[state->axis[0]],
	    .heads = c->axis[state->axis[1]],
	    .dim = c->axis[state->axis[2]],
	    .groups = c->axis[c->problem->inputs[roles->b].axis[1]],
	    .states = c->axis[state->axis[3]],
	};
}

bool ssu_softplus(const struct op_case *c, const struct ssu_roles *roles)
{
	return roles->softplus < 0 || c->scalar[roles->softplus] != 0;
}

int64_t ssu_pad(const struct op_case *c, const struct ssu_roles *roles)
{
	double given = roles->pad < 0 ? -1 : c->scalar[roles->pad];

	return given >= -0x1p53 && given <= 0x1p53 ? (int64_t)given : -1;
}

const struct op_role ssu_role_names[] = {
    OP_ROLE("state", struct ssu_roles, state),
    OP_ROLE("x", struct ssu_roles, x),
    OP_ROLE("z", struct ssu_roles, z),
    OP_ROLE("dt", struct ssu_roles, dt),
    OP_ROLE("a", struct ssu_roles, a),
    OP_ROLE("b", struct ssu_roles, b),
    OP_ROLE("c", struct ssu_roles, c),
    OP_ROLE("d", struct ssu_roles, d),
    OP_ROLE("dt_bias", struct ssu_roles, dt_bias),
    OP_ROLE("indices", struct ssu_roles, indices),
    OP_ROLE("softplus", struct ssu_roles, softplus),
    OP_ROLE("pad", struct ssu_roles, pad),
    OP_ROLE_OUTPUT("output", struct ssu_roles, output),
    OP_ROLE_OUTPUT("new_state", struct ssu_roles, new_state),
    {NULL, 0, false},
};

void ssu_bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct ssu_roles *)out = ssu_roles_of(problem);
}
