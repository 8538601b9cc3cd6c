#include "kernels/common/attention/ragged.h"

#include <math.h>

#include "base/err.h"
#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/input_values.h"
#include "kernels/core/shape_match.h"

/* Finds the query, the keys and the values. The query has the output's query and head axes. The other two float tensors
 * are the keys and the values, in this order unless the names start with v and k. If keys and values have different
 * head dims, attention_validate rejects a wrong order. */
static int find(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
{
	*roles = attention_no_roles();
	if (attention_find_indices(problem, roles, why) != 0)
		return -1;
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		bool like_output = attention_same_axes(problem, input, &problem->outputs[roles->output], 0, 2);
		int *place = like_output && roles->query[0] < 0 ? &roles->query[0]
		             : roles->key[0] < 0                ? &roles->key[0]
		                                                : &roles->value;

		if (!attention_is_float(input))
			continue;
		if (input->rank != 3 || *place >= 0)
			return match_refuse_unknown(problem, input,
						    "q [queries, heads, dim], k [keys, kv heads, dim], v [keys, kv "
						    "heads, value dim], the index vectors and the softmax scale", why);
		*place = i;
	}
	if (roles->kv_indices >= 0)
		return match_refuse(problem, &problem->inputs[roles->kv_indices], "no page indices, because the keys "
										  "of this operation are not in "
										  "pages", why);
	if (roles->query[0] < 0 || roles->value < 0)
		return err_set(why, "the inputs lack a query, keys or values, each of rank 3");
	if (problem->inputs[roles->key[0]].name[0] == 'v' && problem->inputs[roles->value].name[0] == 'k') {
		int key = roles->key[0];

		roles->key[0] = roles->value;
		roles->value = key;
	}
	return attention_validate(problem, roles, why);
}

struct attention_roles attention_ragged_roles(const struct op_problem *problem)
{
	struct attention_roles roles;

	find(problem, &roles, NULL);
	return roles;
}

void attention_ragged_bind(const struct op_problem *problem, int variant, void *roles)
{
	(void)variant;
	*(struct attention_roles *)roles = attention_ragged_roles(problem);
}

int attention_ragged_match(const struct op_problem *problem, struct err *why)
{
	struct attention_roles roles;

	if (find(problem, &roles, why) != 0)
		return -1;
	return attention_is_causal(problem, &roles) ? ATTENTION_CAUSAL : ATTENTION_FULL;
}

int attention_ragged_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	struct attention_roles roles = attention_ragged_roles(problem);

	(void)variant;
	return attention_prefill_sizes(problem, &roles, size, axis, room);
}

bool attention_ragged_range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct attention_roles roles = attention_ragged_roles(problem);

	(void)variant;
	return attention_range(problem, &roles, input, out);
}

int64_t attention_ragged_reach(const struct op_problem *problem, int variant, int axis)
{
	struct attention_roles roles = attention_ragged_roles(problem);

	(void)variant;
	return attention_reach(problem, &roles, axis);
}

struct rule attention_ragged_rule(const struct op_case *c, int output)
{
	struct attention_roles roles = attention_ragged_roles(c->problem);

	return attention_rule(c, &roles, output);
}

/* Returns 1 / sqrt(head dim), the scale that models with such attention use. The head dim is the last axis of the keys,
 * which includes the rotary part. */
double attention_ragged_scalar(const struct op_case *c, int input)
{
	struct attention_roles roles = attention_ragged_roles(c->problem);

	(void)input;
	return attention_scale(c, &roles, 1 / sqrt((double)attention_extent_of(c, &roles).dim[0]));
}

int attention_ragged_fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct attention_roles roles = attention_ragged_roles(c->problem);

	return attention_fill(c, &roles, input, out, err);
}

int attention_ragged_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct attention_roles roles = attention_ragged_roles(c->problem);

	return attention_check(c, &roles, in, err);
}

int attention_ragged_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct attention_roles roles = attention_ragged_roles(c->problem);

	return attention_oracle(c, &roles, in, out, err);
}

bool attention_ragged_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	struct attention_roles roles = attention_ragged_roles(problem);

	(void)variant;
	return attention_edge_axes(problem, &roles, edge, axis);
}
