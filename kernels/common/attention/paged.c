#include "kernels/common/attention/paged.h"

#include <math.h>

#include "base/err.h"
#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/input_values.h"
#include "kernels/core/shape_match.h"

/* Decides which of the two caches has the keys: the second if its name starts with k and the other name with v, else
 * the first. */
static void order_caches(const struct op_problem *problem, struct attention_roles *roles)
{
	int key = roles->key[0];

	if (problem->inputs[key].name[0] == 'v' && problem->inputs[roles->value].name[0] == 'k') {
		roles->key[0] = roles->value;
		roles->value = key;
	}
}

static int find_whole(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
{
	*roles = attention_no_roles();
	if (attention_find_indices(problem, roles, why) != 0)
		return -1;
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		int *place = input->rank == 3 ? &roles->query[0] : roles->key[0] < 0 ? &roles->key[0] : &roles->value;

		if (!attention_is_float(input))
			continue;
		if ((input->rank != 3 && input->rank != 4) || *place >= 0)
			return match_refuse_unknown(problem, input,
						    "q [queries, heads, head dim], a cache of keys and a cache of "
						    "values (each [pages, page size, kv heads, head dim]), the index "
						    "vectors and the softmax scale", why);
		*place = i;
	}
	if (roles->query[0] < 0 || roles->value < 0 || roles->kv_indices < 0)
		return err_set(why, "the inputs must include a query of rank 3, two caches of rank 4, and kv_indices");
	order_caches(problem, roles);
	return attention_validate(problem, roles, why);
}

/* Returns the role of a tensor by its axes. A query has the first two axes of the output, and a cache does not. The
 * tensor whose last axis is the output's last axis is the latent part; the other tensor is the rotary part. */
static int *place_of(const struct op_problem *problem, struct attention_roles *roles, const struct op_arg *input)
{
	const struct op_arg *output = &problem->outputs[roles->output];
	bool query = attention_same_axes(problem, input, output, 0, 2);
	int part = attention_same_axes(problem, input, output, 2, 3) ? 0 : 1;

	return query ? &roles->query[part] : &roles->key[part];
}

static int find_latent(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
{
	*roles = attention_no_roles();
	if (attention_find_indices(problem, roles, why) != 0)
		return -1;
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		int *place = place_of(problem, roles, input);

		if (!attention_is_float(input))
			continue;
		if (input->rank != 3 || *place >= 0)
			return match_refuse_unknown(problem, input,
						    "the two parts of the queries, [queries, heads, c] and [queries, "
						    "heads, r], the two parts of the cache, [pages, page size, c] "
						    "and [pages, page size, r], the index vectors and the softmax "
						    "scale", why);
		*place = i;
	}
	for (int p = 0; p < ATTENTION_PARTS; p++)
		if (roles->query[p] < 0 || roles->key[p] < 0 || roles->kv_indices < 0)
			return err_set(why, "the inputs lack a latent or rotary part of the query or of the cache, or"
					    " kv_indices");
	roles->value = roles->key[0];
	return attention_validate(problem, roles, why);
}

/* Returns true if the caches store whole heads: only such caches have four axes. */
static bool is_whole(const struct op_problem *problem)
{
	for (int i = 0; i < problem->input_count; i++)
		if (attention_is_float(&problem->inputs[i]) && problem->inputs[i].rank == 4)
			return true;
	return false;
}

struct attention_roles attention_paged_roles(const struct op_problem *problem)
{
	struct attention_roles roles;

	(is_whole(problem) ? find_whole : find_latent)(problem, &roles, NULL);
	return roles;
}

void attention_paged_bind(const struct op_problem *problem, int variant, void *roles)
{
	(void)variant;
	*(struct attention_roles *)roles = attention_paged_roles(problem);
}

int attention_paged_match(const struct op_problem *problem, enum attention_heads heads, struct err *why)
{
	struct attention_roles roles;

	if ((heads == ATTENTION_WHOLE ? find_whole : find_latent)(problem, &roles, why) != 0)
		return -1;
	return attention_is_causal(problem, &roles) ? ATTENTION_CAUSAL : ATTENTION_FULL;
}

static const struct attention_preset decode_sizes[SIZE_COUNT][2] = {
    [SIZE_SMALL] = {{1, 0, 33, LIST_SINGLE_DECODE}, {4, 0, 60, LIST_NONE}},
    [SIZE_MEDIUM] = {{13, 0, 2048, LIST_BLOCKS_DECODE}, {37, 0, 40, LIST_MANY_DECODE}},
    [SIZE_LARGE] = {{64, 0, 131072, LIST_NONE}},
};

int attention_paged_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	struct attention_roles roles = attention_paged_roles(problem);
	const struct attention_preset *presets = decode_sizes[size];

	(void)variant;
	if (roles.qo_indptr >= 0)
		return attention_prefill_sizes(problem, &roles, size, axis, room);
	return attention_sizes(problem, &roles, presets, presets[1].batch == 0 ? 1 : 2, axis, room);
}

bool attention_paged_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	struct attention_roles roles = attention_paged_roles(problem);

	(void)variant;
	return attention_edge_axes(problem, &roles, edge, axis);
}

bool attention_paged_range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct attention_roles roles = attention_paged_roles(problem);

	(void)variant;
	return attention_range(problem, &roles, input, out);
}

int64_t attention_paged_reach(const struct op_problem *problem, int variant, int axis)
{
	struct attention_roles roles = attention_paged_roles(problem);

	(void)variant;
	return attention_reach(problem, &roles, axis);
}

struct rule attention_paged_rule(const struct op_case *c, int output)
{
	struct attention_roles roles = attention_paged_roles(c->problem);

	return attention_rule(c, &roles, output);
}

/* Returns 1 / sqrt(head dim), the scale that models with such attention use. For latent heads, the scale is 1 /
 * sqrt(128 + r), as for the heads before absorption, and does not depend on the size of the latent. 128 is the head dim
 * without the rotary part in DeepSeek's models with latents of 512. */
double attention_paged_scalar(const struct op_case *c, int input)
{
	struct attention_roles roles = attention_paged_roles(c->problem);
	struct attention_extent extent = attention_extent_of(c, &roles);

	(void)input;
	return attention_scale(c, &roles, 1 / sqrt((double)(roles.query[1] < 0 ? extent.dim[0] : 128 + extent.dim[1])));
}

int attention_paged_fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct attention_roles roles = attention_paged_roles(c->problem);

	return attention_fill(c, &roles, input, out, err);
}

int attention_paged_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct attention_roles roles = attention_paged_roles(c->problem);

	return attention_check(c, &roles, in, err);
}

int attention_paged_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct attention_roles roles = attention_paged_roles(c->problem);

	return attention_oracle(c, &roles, in, out, err);
}
