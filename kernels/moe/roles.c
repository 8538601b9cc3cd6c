/* roles - finds the role of each input by its axes, and checks that the inputs are those of a mixture of experts. */
#include "kernels/moe/roles.h"

#include <stdbool.h>
#include <string.h>

#include "kernels/core/shape_match.h"

static bool names(const struct op_arg *arg, const char *part)
{
	return strstr(arg->name, part) != NULL;
}

static bool is_integer(const struct op_arg *arg)
{
	return arg->dtype == DTYPE_INT32 || arg->dtype == DTYPE_INT64;
}

/* Returns true if the oracle and the kernel can read the dtype as numbers. */
static bool is_number(const struct op_arg *arg)
{
	return arg->dtype == DTYPE_FLOAT32 || arg->dtype == DTYPE_FLOAT16 || arg->dtype == DTYPE_BFLOAT16 ||
	       arg->dtype == DTYPE_FLOAT8_E4M3FN || arg->dtype == DTYPE_FLOAT8_E5M2;
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

static int *place_of_scalar(struct moe_roles *roles, const struct op_arg *arg)
{
	if (names(arg, "offset"))
		return &roles->offset;
	if (names(arg, "scaling"))
		return &roles->scaling;
	if (names(arg, "topk_group") || names(arg, "top_k_group"))
		return &roles->kept_groups;
	if (names(arg, "n_group") || names(arg, "num_expert_group"))
		return &roles->groups;
	return names(arg, "top_k") || names(arg, "topk") ? &roles->top_k : NULL;
}

static int *place_of_vector(struct moe_roles *roles, const struct op_arg *arg)
{
	if (names(arg, "bias"))
		return &roles->bias;
	if (names(arg, "gate"))
		return &roles->factor_gate;
	return names(arg, "2") || names(arg, "down") ? &roles->factor_down : &roles->factor_up;
}

static int *place_of_matrix(struct moe_roles *roles, const struct op_arg *arg, int tokens, int hidden)
{
	if (is_integer(arg))
		return &roles->ids;
	if (arg->axis[0] == tokens && arg->axis[1] == hidden)
		return &roles->hidden;
	if (arg->axis[1] == tokens || names(arg, "scale"))
		return &roles->hidden_scale;
	return names(arg, "weight") ? &roles->id_weights : &roles->logits;
}

static int *place_of_stack(struct moe_roles *roles, const struct op_arg *arg, int hidden)
{
	if (arg->axis[2] == hidden)
		return &roles->weights1;
	if (arg->axis[1] == hidden)
		return &roles->weights2;
	return roles->scale1 < 0 ? &roles->scale1 : &roles->scale2;
}

static int *place_of(struct moe_roles *roles, const struct op_arg *arg, const struct op_arg *output)
{
	switch (arg->rank) {
	case OP_SCALAR:
		return place_of_scalar(roles, arg);
	case 1:
		return place_of_vector(roles, arg);
	case 2:
		return place_of_matrix(roles, arg, output->axis[0], output->axis[1]);
	case 3:
		return place_of_stack(roles, arg, output->axis[1]);
	default:
		return NULL;
	}
}

/* Assigns the two tensors of scales to the two tensors of weights. The axis with the length H / block shows which is
 * which: it is the last axis of the scales of the first weights, and axis 1 of the scales of the second weights. */
static void order_scales(const struct op_problem *problem, struct moe_roles *roles)
{
	const struct op_arg *first, *second;
	int swap = roles->scale1;

	if (roles->scale1 < 0 || roles->scale2 < 0)
		return;
	first = &problem->inputs[roles->scale1];
	second = &problem->inputs[roles->scale2];
	if (second->axis[2] == first->axis[1] && first->axis[2] != second->axis[1]) {
		roles->scale1 = roles->scale2;
		roles->scale2 = swap;
	}
}

/* Sets `stray` to the first input that has no role, or whose role already belongs to another input. If there is no such
 * input, sets `stray` to -1. */
static struct moe_roles find(const struct op_problem *problem, int *stray)
{
	struct moe_roles roles;

	memset(&roles, 0xff, sizeof roles); /* sets all members to -1 */
	roles.output = 0;
	*stray = -1;
	for (int i = 0; i < problem->input_count && problem->output_count > 0; i++) {
		int *place = place_of(&roles, &problem->inputs[i], &problem->outputs[0]);

		if (place == NULL || *place >= 0)
			*stray = *stray < 0 ? i : *stray;
		else
			*place = i;
	}
	order_scales(problem, &roles);
	return roles;
}

struct moe_roles moe_roles_of(const struct op_problem *problem)
{
	int stray;

	return find(problem, &stray);
}

const struct op_role moe_role_names[] = {
    OP_ROLE("hidden", struct moe_roles, hidden),
    OP_ROLE("weights1", struct moe_roles, weights1),
    OP_ROLE("weights2", struct moe_roles, weights2),
    OP_ROLE("hidden_scale", struct moe_roles, hidden_scale),
    OP_ROLE("scale1", struct moe_roles, scale1),
    OP_ROLE("scale2", struct moe_roles, scale2),
    OP_ROLE("factor_up", struct moe_roles, factor_up),
    OP_ROLE("factor_gate", struct moe_roles, factor_gate),
    OP_ROLE("factor_down", struct moe_roles, factor_down),
    OP_ROLE("logits", struct moe_roles, logits),
    OP_ROLE("bias", struct moe_roles, bias),
    OP_ROLE("ids", struct moe_roles, ids),
    OP_ROLE("id_weights", struct moe_roles, id_weights),
    OP_ROLE("offset", struct moe_roles, offset),
    OP_ROLE("scaling", struct moe_roles, scaling),
    OP_ROLE("top_k", struct moe_roles, top_k),
    OP_ROLE("groups", struct moe_roles, groups),
    OP_ROLE("kept_groups", struct moe_roles, kept_groups),
    OP_ROLE_OUTPUT("output", struct moe_roles, output),
    {NULL, 0, false},
};

void moe_bind(const struct op_problem *problem, int variant, void *roles)
{
	(void)variant;
	*(struct moe_roles *)roles = moe_roles_of(problem);
}

bool moe_blocks_first(const struct op_problem *problem, const struct moe_roles *roles)
{
	return roles->hidden_scale >= 0 &&
	       problem->inputs[roles->hidden_scale].axis[1] == problem->outputs[roles->output].axis[0];
}

/* --- matching ----------------------------------------------------------------------------------------------------- */

/* Returns true if dimension `dimension` of the input has the axis `axis`, or if `input` is -1. */
static bool has_axis(const struct op_problem *problem, int input, int dimension, int axis)
{
	return input < 0 || problem->inputs[input].axis[dimension] == axis;
}

/* Returns true if the length of the axis `whole` is `times` multiplied by the length of the axis `part`. If `times` is
 * 0, any multiple of `part` is accepted. Also returns true if one of the two axes is var. */
static bool divides(const struct op_problem *problem, int whole, int part, int64_t times)
{
	const struct op_axis *w = &problem->axes[whole], *p = &problem->axes[part];

	if (w->var || p->var)
		return true;
	return times > 0 ? w->value == times * p->value : p->value > 0 && w->value % p->value == 0;
}

static int match_weights(const struct op_problem *problem, const struct moe_roles *roles, struct err *why)
{
	const struct op_arg *first, *second;

	if (roles->hidden < 0 || roles->weights1 < 0 || roles->weights2 < 0)
		return err_set(why, "the inputs must include hidden states with the shape of the output, [tokens, "
				    "hidden], and weights [experts, 2 intermediate, hidden] and [experts, hidden, "
				    "intermediate]");
	first = &problem->inputs[roles->weights1];
	second = &problem->inputs[roles->weights2];
	if (first->axis[0] != second->axis[0])
		return match_refuse(problem, second, "as many experts as the weights of the first matrix product "
						     "have", why);
	if (!divides(problem, first->axis[1], second->axis[2], 2))
		return match_refuse(problem, first, "twice as many rows as the weights of the second matrix "
						    "product have columns", why);
	return 0;
}

static int match_scales(const struct op_problem *problem, const struct moe_roles *roles, struct err *why)
{
	const struct op_arg *w1 = &problem->inputs[roles->weights1], *w2 = &problem->inputs[roles->weights2];
	const struct op_arg *s1, *s2, *hidden;

	if ((roles->scale1 < 0) != (roles->scale2 < 0))
		return err_set(why, "only one of the two weight tensors has block scales; both must have them, or "
				    "neither");
	if (roles->scale1 >= 0) {
		s1 = &problem->inputs[roles->scale1];
		s2 = &problem->inputs[roles->scale2];
		if (s1->axis[0] != w1->axis[0] || !divides(problem, w1->axis[1], s1->axis[1], 0) ||
		    !divides(problem, w1->axis[2], s1->axis[2], 0))
			return match_refuse(problem, s1,
					    "scales [experts, blocks in (2 * intermediate), blocks in hidden]", why);
		if (s2->axis[0] != w1->axis[0] || !divides(problem, w2->axis[1], s2->axis[1], 0) ||
		    !divides(problem, w2->axis[2], s2->axis[2], 0))
			return match_refuse(problem, s2,
					    "scales [experts, blocks of hidden, blocks of intermediate]", why);
	}
	if (roles->hidden_scale < 0)
		return 0;
	hidden = &problem->inputs[roles->hidden_scale];
	bool first = moe_blocks_first(problem, roles);

	if ((!first && hidden->axis[0] != problem->outputs[0].axis[0]) ||
	    !divides(problem, problem->outputs[0].axis[1], hidden->axis[first ? 0 : 1], 0))
		return match_refuse(problem, hidden,
				    "scales [blocks of hidden, tokens] or [tokens, blocks of hidden]", why);
	return 0;
}

static int match_factors(const struct op_problem *problem, const struct moe_roles *roles, struct err *why)
{
	int experts = problem->inputs[roles->weights1].axis[0];
	int have = (roles->factor_up >= 0) + (roles->factor_gate >= 0) + (roles->factor_down >= 0);

	if (have != 0 && have != 3)
		return err_set(why, "the inputs include %d of the three factors that scale the matrix products of an "
				    "expert (up, gate and down); they must include all three or none", have);
	if (!has_axis(problem, roles->factor_up, 0, experts) || !has_axis(problem, roles->factor_gate, 0, experts) ||
	    !has_axis(problem, roles->factor_down, 0, experts))
		return err_set(why,
			       "each factor that scales a matrix product must have the shape [experts] (one factor for each "
			       "expert), with the same axis for the experts as the weights");
	return 0;
}

static int match_routing(const struct op_problem *problem, const struct moe_roles *roles, struct err *why)
{
	int tokens = problem->outputs[0].axis[0];

	if ((roles->logits < 0) == (roles->ids < 0))
		return err_set(why,
			       "the inputs must include either routing logits [tokens, experts] or chosen experts "
			       "[tokens, top k], but not both");
	if (!has_axis(problem, roles->logits, 0, tokens) || !has_axis(problem, roles->ids, 0, tokens))
		return err_set(why, "the routing logits or the chosen experts must have one row per token");
	if (roles->ids >= 0 && (roles->bias >= 0 || roles->scaling >= 0))
		return err_set(why, "the inputs include the chosen experts, so a routing bias or a scaling factor "
				    "would have no effect");
	if (roles->bias >= 0 && !has_axis(problem, roles->bias, 0, problem->inputs[roles->logits].axis[1]))
		return match_refuse(problem, &problem->inputs[roles->bias],
				    "a routing bias [experts], where experts is the same axis as in the logits", why);
	if (roles->id_weights >= 0 && (roles->ids < 0 || !has_axis(problem, roles->id_weights, 0, tokens) ||
				       !has_axis(problem, roles->id_weights, 1, problem->inputs[roles->ids].axis[1])))
		return match_refuse(problem, &problem->inputs[roles->id_weights],
				    "one weight for each chosen expert", why);
	if (roles->ids >= 0 && roles->id_weights < 0 && problem->inputs[roles->ids].dtype != DTYPE_INT32)
		return match_refuse(problem, &problem->inputs[roles->ids],
				    "int32 elements with a bfloat16 weight in their low half, or a separate input of "
				    "weights", why);
	return 0;
}

int moe_roles_match(const struct op_problem *problem, const struct moe_roles *roles, struct err *why)
{
	const struct op_arg *output = &problem->outputs[0];
	int stray;

	if (problem->output_count != 1 || output->rank != 2 || output->axis[0] == output->axis[1] ||
	    (output->dtype != DTYPE_FLOAT32 && output->dtype != DTYPE_FLOAT16 && output->dtype != DTYPE_BFLOAT16))
		return err_set(why, "the definition must have one output [tokens, hidden] of float32, float16 or "
				    "bfloat16");
	find(problem, &stray);
	if (stray >= 0)
		return match_refuse_unknown(problem, &problem->inputs[stray],
					    "hidden states, the weights of the two products, scales of both, factors "
					    "per expert, routing logits or chosen experts, a routing bias, and "
					    "Python scalars of the routing", why);
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *arg = &problem->inputs[i];

		if (arg->optional)
			return match_refuse(problem, arg, "an input without \"optional\": true", why);
		if (arg->rank != OP_SCALAR && i != roles->ids && !is_number(arg))
			return match_refuse(problem, arg,
					    "float32, float16, bfloat16, float8_e4m3fn or float8_e5m2", why);
	}
	if (match_weights(problem, roles, why) != 0 || match_scales(problem, roles, why) != 0 ||
	    match_factors(problem, roles, why) != 0)
		return -1;
	return match_routing(problem, roles, why);
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

static int64_t size_of(const struct op_case *c, int input, int dimension)
{
	return c->axis[c->problem->inputs[input].axis[dimension]];
}

/* Returns the number of rows or columns that share a scale. */
static int64_t block_of(const struct op_case *c, int64_t whole, int input, int dimension)
{
	int64_t blocks = input < 0 ? whole : size_of(c, input, dimension);

	return blocks > 0 && whole > blocks ? whole / blocks : 1;
}

/* Returns the number of experts on all devices. If the selected experts are an input, this number is known only if
 * there is an axis with the name "num_experts". */
static int64_t experts_of(const struct op_case *c, const struct moe_roles *roles, int64_t local)
{
	int axis = op_axis_index(c->problem, "num_experts");

	if (roles->logits >= 0)
		return size_of(c, roles->logits, 1);
	return axis >= 0 && c->axis[axis] > local ? c->axis[axis] : local;
}

/* Converts a Python scalar to an integer. The scalar may have any value, even NaN, because a workload may provide
 * it. */
static int64_t whole(double value)
{
	return value > -1e12 && value < 1e12 ? (int64_t)value : INT64_C(1) << 40;
}

struct moe_extent moe_extent_of(const struct op_case *c, const struct moe_roles *roles)
{
	struct moe_extent e = {
	    .tokens = size_of(c, roles->hidden, 0),
	    .hidden = size_of(c, roles->hidden, 1),
	    .intermediate = size_of(c, roles->weights2, 2),
	    .local = size_of(c, roles->weights1, 0),
	};

	e.experts = experts_of(c, roles, e.local);
	e.offset = roles->offset < 0 ? 0 : whole(c->scalar[roles->offset]);
	e.blocks_first = moe_blocks_first(c->problem, roles);
	e.hidden_block = block_of(c, e.hidden, roles->hidden_scale, e.blocks_first ? 0 : 1);
	e.blocks = e.hidden / e.hidden_block;
	e.rows1 = block_of(c, 2 * e.intermediate, roles->scale1, 1);
	e.columns1 = block_of(c, e.hidden, roles->scale1, 2);
	e.rows2 = block_of(c, e.hidden, roles->scale2, 1);
	e.columns2 = block_of(c, e.intermediate, roles->scale2, 2);
	return e;
}

int moe_extent_check(const struct op_case *c, const struct moe_roles *roles, struct err *err)
{
	const struct moe_extent e = moe_extent_of(c, roles);
	const struct {
		int input, dimension;
		int64_t block, whole;
	} scales[] = {{roles->hidden_scale, e.blocks_first ? 0 : 1, e.hidden_block, e.hidden},
		      {roles->scale1, 1, e.rows1, 2 * e.intermediate},
		      {roles->scale1, 2, e.columns1, e.hidden},
		      {roles->scale2, 1, e.rows2, e.hidden},
		      {roles->scale2, 2, e.columns2, e.intermediate}};

	if (e.local < 1)
		return err_set(err, "the number of experts is 0");
	if (size_of(c, roles->weights1, 1) != 2 * e.intermediate)
		return err_set(
		    err, "the weights of the first matrix product have %lld rows, and those of the second have %lld "
			 "columns; there must be twice as many rows as columns",
		    (long long)size_of(c, roles->weights1, 1), (long long)e.intermediate);
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
		if (scales[i].input >= 0 &&
		    size_of(c, scales[i].input, scales[i].dimension) * scales[i].block != scales[i].whole)
			return err_set(
			    err, "%lld rows or columns cannot be divided evenly among the %lld scales of '%s'",
			    (long long)scales[i].whole, (long long)size_of(c, scales[i].input, scales[i].dimension),
			    c->problem->inputs[scales[i].input].name);
	return 0;
}
