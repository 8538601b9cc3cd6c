#include "kernels/rope/roles.h"

#include <string.h>

#include "base/err.h"
#include "kernels/core/shape_match.h"

const char *const rope_number_names[ROPE_NUMBERS] = {"rope_theta", "rope_scale", "low_freq_factor",
                                                         "high_freq_factor", "old_context_len"};

/* Finds the role of tensor `i` by its shape and dtype. `token` is the axis of the positions. */
static void tensor_role(const struct op_problem *problem, int token, int i, struct rope_roles *roles)
{
	const struct op_arg *input = &problem->inputs[i];
	int of_tokens = input->rank >= 2 && input->axis[0] == token && strstr(input->name, "cache") == NULL;

	if (!dtype_is_float(input->dtype))
		roles->positions = i;
	else if (!of_tokens)
		roles->cache = i;
	else if (roles->count < ROPE_ROTATED)
		roles->rotated[roles->count++] = i;
}

static void scalar_role(const struct op_problem *problem, int i, struct rope_roles *roles)
{
	const char *const parts[ROPE_NUMBERS] = {"theta", "scale", "low_freq", "high_freq", "old_context"};
	const char *name = problem->inputs[i].name;

	if (strstr(name, "rotary_dim") != NULL) {
		roles->rotary_dim = i;
	} else if (strstr(name, "head_size") != NULL || strstr(name, "head_dim") != NULL) {
		roles->head_size = i;
	} else if (strstr(name, "neox") != NULL) {
		roles->is_neox = i;
	} else if (strstr(name, "interleave") != NULL) {
		roles->interleave = i;
	} else {
		for (int n = 0; n < ROPE_NUMBERS; n++)
			if (strstr(name, parts[n]) != NULL) {
				roles->number[n] = i;
				return;
			}
	}
}

struct rope_roles rope_roles_of(const struct op_problem *problem)
{
	struct rope_roles roles = {{-1, -1}, {-1, -1}, 0, -1, -1, -1, -1, -1, -1, {-1, -1, -1, -1, -1}};
	int token = -1;

	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == 1 && !dtype_is_float(problem->inputs[i].dtype))
			token = problem->inputs[i].axis[0];
	for (int i = 0; i < problem->input_count; i++) {
		if (problem->inputs[i].rank == OP_SCALAR)
			scalar_role(problem, i, &roles);
		else
			tensor_role(problem, token, i, &roles);
	}
	for (int r = 0; r < roles.count && r < problem->output_count; r++)
		roles.output[r] = r;
	return roles;
}

int64_t rope_head_size(const struct op_problem *problem, const int64_t *axis)
{
	const struct op_arg *q = &problem->inputs[rope_roles_of(problem).rotated[0]];

	if (q->rank == 3)
		return axis[q->axis[2]];
	for (int i = 0; i < problem->axis_count; i++)
		if (!problem->axes[i].var &&
		    (strcmp(problem->axes[i].name, "head_size") == 0 || strcmp(problem->axes[i].name, "head_dim") == 0))
			return problem->axes[i].value;
	return 0;
}

/* Returns the number of rotated elements of a head. The number comes from the first of these sources that the problem
 * has: the width of the cache, the Python scalar rotary_dim, the length of the axis rotary_dim, the size of a head. */
static int64_t rotary_dim(const struct op_case *c, const struct rope_roles *roles, int64_t head_size)
{
	const struct op_problem *problem = c->problem;
	int axis = op_axis_index(problem, "rotary_dim");

	if (roles->cache >= 0)
		return c->axis[problem->inputs[roles->cache].axis[1]];
	if (roles->rotary_dim >= 0)
		return c->scalar[roles->rotary_dim] >= 0 && c->scalar[roles->rotary_dim] <= (double)head_size
		           ? (int64_t)c->scalar[roles->rotary_dim]
		           : head_size;
	return axis >= 0 ? c->axis[axis] : head_size;
}

struct rope_extent rope_extent_of(const struct op_case *c)
{
	const struct op_problem *problem = c->problem;
	struct rope_roles roles = rope_roles_of(problem);
	struct rope_extent e = {0, {0, 0}, 0, 0, 0};

	e.head_size = rope_head_size(problem, c->axis);
	e.rotary_dim = rotary_dim(c, &roles, e.head_size);
	e.tokens = c->axis[problem->inputs[roles.positions].axis[0]];
	e.cache_rows = roles.cache >= 0 ? c->axis[problem->inputs[roles.cache].axis[0]] : 0;
	for (int r = 0; r < roles.count; r++) {
		const struct op_arg *x = &problem->inputs[roles.rotated[r]];

		e.heads[r] =
		    x->rank == 3 ? c->axis[x->axis[1]] : c->axis[x->axis[1]] / (e.head_size > 0 ? e.head_size : 1);
	}
	return e;
}

int rope_interleaved(const struct op_case *c)
{
	struct rope_roles roles = rope_roles_of(c->problem);

	if (roles.interleave >= 0)
		return c->scalar[roles.interleave] != 0;
	if (roles.is_neox >= 0)
		return c->scalar[roles.is_neox] == 0;
	return (c->variant & ROPE_INTERLEAVED) != 0;
}

static bool speaks_of(const struct op_problem *problem, const char *part)
{
	if (strstr(problem->name, part) != NULL)
		return true;
	for (int i = 0; i < problem->tag_count; i++)
		if (strncmp(problem->tags[i], "fi_api:", 7) == 0 && strstr(problem->tags[i], part) != NULL)
			return true;
	return false;
}

/* Rejects a scalar input that does not have one of the known roles. */
static int match_scalar(const struct op_problem *problem, const struct rope_roles *roles, int input, struct err *why)
{
	bool known = input == roles->rotary_dim || input == roles->head_size || input == roles->interleave ||
	             input == roles->is_neox;

	for (int n = 0; n < ROPE_NUMBERS; n++)
		known |= input == roles->number[n];
	if (input == roles->is_neox && roles->interleave >= 0)
		return err_set(why, "inputs '%s' and '%s' both determine which elements form a pair",
		               problem->inputs[roles->interleave].name, problem->inputs[input].name);
	if (known)
		return 0;
	return err_set(why, "input '%s' is a Python scalar that is not a parameter of a rotation",
	               problem->inputs[input].name);
}

static int match_tensor(const struct op_problem *problem, const struct rope_roles *roles, int input, struct err *why)
{
	const struct op_arg *arg = &problem->inputs[input];
	char shape[256];

	op_shape_text(problem, arg, shape, sizeof shape);
	if (input == roles->positions)
		return arg->rank == 1 && (arg->dtype == DTYPE_INT32 || arg->dtype == DTYPE_INT64)
		           ? 0
		           : err_set(why, "input '%s' is %s %s; there must be one int32 or int64 position for each "
					  "token",
		                     arg->name, dtype_name(arg->dtype), shape);
	if (input != roles->cache && input != roles->rotated[0] && input != roles->rotated[1])
		return err_set(why, "input '%s' of shape %s is one tensor too many; the inputs may be positions, a "
				    "cache, q and k",
		               arg->name, shape);
	if (!match_is_float(arg))
		return err_set(why, "input '%s' is %s; it must be float32, float16 or bfloat16", arg->name,
		               dtype_name(arg->dtype));
	if (input == roles->cache && arg->rank != 2)
		return err_set(why, "input '%s' has shape %s; a cache must be [positions, rotary dimension]", arg->name,
		               shape);
	if (input != roles->cache && arg->rank > 3)
		return err_set(why, "input '%s' has shape %s; expected [tokens, heads, size of a head], or "
				    "[tokens, heads * size of a head]",
		               arg->name, shape);
	return 0;
}

static int match_outputs(const struct op_problem *problem, const struct rope_roles *roles, struct err *why)
{
	if (roles->positions < 0 || roles->count == 0)
		return err_set(why, "the inputs must include integer positions and at least one tensor with a row for "
				    "each position");
	if (problem->output_count != roles->count)
		return err_set(why, "the definition has %d outputs; it must have %d, one for each rotated tensor",
		               problem->output_count, roles->count);
	for (int r = 0; r < roles->count; r++) {
		const struct op_arg *x = &problem->inputs[roles->rotated[r]], *y = &problem->outputs[r];

		if (!match_same_shape(x, y) || !match_is_float(y))
			return err_set(why, "output '%s' must be a float tensor with the shape of input '%s'", y->name,
			               x->name);
		if (x->rank != problem->inputs[roles->rotated[0]].rank)
			return err_set(why, "either all rotated tensors must have an axis of heads, or none of them; "
					    "input '%s' differs from the first rotated tensor", x->name);
	}
	return 0;
}

/* Returns the length of a const axis, or 0 for a var axis. */
static int64_t fixed(const struct op_problem *problem, int axis)
{
	return problem->axes[axis].var ? 0 : problem->axes[axis].value;
}

/* Checks the head size and the rotary dimension, if const axes state them. */
static int match_widths(const struct op_problem *problem, const struct rope_roles *roles, struct err *why)
{
	const struct op_arg *q = &problem->inputs[roles->rotated[0]];
	int64_t zeros[OP_ARGS * OP_RANK] = {0}, size, rotary;
	int axis = op_axis_index(problem, "rotary_dim");

	if (problem->axis_count > (int)(sizeof zeros / sizeof *zeros))
		return err_set(why, "the definition has %d axes", problem->axis_count);
	for (int i = 0; i < problem->axis_count; i++)
		zeros[i] = fixed(problem, i);
	size = rope_head_size(problem, zeros);
	rotary = roles->cache >= 0 ? zeros[problem->inputs[roles->cache].axis[1]] : axis >= 0 ? zeros[axis] : size;
	if (q->rank == 2 && size == 0)
		return err_set(why, "input '%s' is flat, and no const axis 'head_size' gives the size of a "
				    "head", q->name);
	for (int r = 0; r < roles->count && q->rank == 2; r++) {
		int64_t width = fixed(problem, problem->inputs[roles->rotated[r]].axis[1]);

		if (width == 0 || width % size != 0)
			return err_set(why, "input '%s' is flat, but its last axis is not a const multiple of the head "
					    "size %lld",
			               problem->inputs[roles->rotated[r]].name, (long long)size);
	}
	if (rotary % 2 != 0 || (size > 0 && rotary > size))
		return err_set(why, "the rotary dimension is %lld; it must be an even number of at most the head size "
				    "%lld",
		               (long long)rotary, (long long)size);
	return 0;
}

int rope_match(const struct op_problem *problem, struct err *why)
{
	struct rope_roles roles = rope_roles_of(problem);
	int variant = 0;

	for (int i = 0; i < problem->input_count; i++)
		if ((problem->inputs[i].rank == OP_SCALAR ? match_scalar : match_tensor)(problem, &roles, i, why) != 0)
			return -1;
	if (match_outputs(problem, &roles, why) != 0 || match_widths(problem, &roles, why) != 0)
		return -1;
	if (roles.cache >= 0)
		variant |= ROPE_CACHE;
	else if (roles.number[ROPE_LOW] >= 0 || speaks_of(problem, "llama31") || speaks_of(problem, "llama3_1"))
		variant |= ROPE_LLAMA31;
	if (roles.interleave < 0 && roles.is_neox < 0 &&
	    (strstr(problem->name, "interleave") != NULL || strstr(problem->name, "gptj") != NULL))
		variant |= ROPE_INTERLEAVED;
	return variant;
}

const struct op_role rope_role_names[] = {
    OP_ROLE("q", struct rope_roles, rotated[0]),
    OP_ROLE("k", struct rope_roles, rotated[1]),
    OP_ROLE("positions", struct rope_roles, positions),
    OP_ROLE("cos_sin_cache", struct rope_roles, cache),
    OP_ROLE("rotary_dim", struct rope_roles, rotary_dim),
    OP_ROLE("interleave", struct rope_roles, interleave),
    OP_ROLE("is_neox", struct rope_roles, is_neox),
    OP_ROLE("head_size", struct rope_roles, head_size),
    OP_ROLE("theta", struct rope_roles, number[ROPE_THETA]),
    OP_ROLE("scale", struct rope_roles, number[ROPE_SCALE]),
    OP_ROLE("low_freq", struct rope_roles, number[ROPE_LOW]),
    OP_ROLE("high_freq", struct rope_roles, number[ROPE_HIGH]),
    OP_ROLE("old_context", struct rope_roles, number[ROPE_OLD_CONTEXT]),
    OP_ROLE_OUTPUT("q_out", struct rope_roles, output[0]),
    OP_ROLE_OUTPUT("k_out", struct rope_roles, output[1]),
    {NULL, 0, false},
};

void rope_bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct rope_roles *)out = rope_roles_of(problem);
}

const struct op_mode rope_mode_names[] = {
    {"interleaved", ROPE_INTERLEAVED, ROPE_INTERLEAVED},
    {"llama31", ROPE_LLAMA31, ROPE_LLAMA31},
    {NULL, 0, 0},
};

double rope_number_of(const struct op_case *c, enum rope_number n)
{
	struct rope_roles roles = rope_roles_of(c->problem);

	if (roles.number[n] >= 0)
		return c->scalar[roles.number[n]];
	for (int i = 0; i < c->constant_count; i++)
		if (strcmp(c->constants[i].name, rope_number_names[n]) == 0)
			return c->constants[i].value;
	return 1; /* only the scale can be missing, if the formula is not Llama 3.1's; its default is 1 */
}
