#include "kernels/common/attention/forms.h"

#include "base/err.h"
#include "kernels/core/shape_match.h"

/* Decides which of two tensors contains the keys. The keys are in the second tensor if its name starts with k and the
 * first tensor's name starts with v. Otherwise, the keys are in the first tensor. */
static void order_keys(const struct op_problem *problem, struct attention_roles *roles)
{
	int key = roles->key[0];

	if (problem->inputs[key].name[0] == 'v' && problem->inputs[roles->value].name[0] == 'k') {
		roles->key[0] = roles->value;
		roles->value = key;
	}
}

/* Finds the query, the keys and the values. The query has the same first two axes as the output (queries and heads).
 * The other two float tensors are the keys and the values. If this function confuses the keys with the values,
 * attention_validate notices it only if their head dims differ. */
static int find_ragged(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
{
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
		return err_set(why, "the inputs must include a query, keys and values, each of rank 3");
	order_keys(problem, roles);
	return 0;
}

static int find_whole(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
{
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
	order_keys(problem, roles);
	return 0;
}

/* Returns a pointer to the member of `roles` for the tensor `input`, found by the tensor's axes. Queries have the same
 * first two axes as the output; caches do not. The tensor whose last axis is the output's last axis is the latent part;
 * the other tensor is the rotary part. */
static int *place_of(const struct op_problem *problem, struct attention_roles *roles, const struct op_arg *input)
{
	const struct op_arg *output = &problem->outputs[roles->output];
	bool query = attention_same_axes(problem, input, output, 0, 2);
	int part = attention_same_axes(problem, input, output, 2, 3) ? 0 : 1;

	return query ? &roles->query[part] : &roles->key[part];
}

/* Finds the parts of the query and of the cache and, if `sparse` is true, the input that lists the keys of each
 * query. */
static int find_parts(const struct op_problem *problem, struct attention_roles *roles, bool sparse, struct err *why)
{
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		bool list = sparse && attention_is_integer(input);
		int *place = list ? &roles->sparse : place_of(problem, roles, input), rank = list ? 2 : 3;

		if (!list && !attention_is_float(input))
			continue;
		if (input->rank != rank || *place >= 0)
			return match_refuse_unknown(
			    problem, input,
			    sparse ? "the two parts of the queries, [queries, heads, c] and [queries, heads, r], the "
				     "two parts of the cache, [pages, page size, c] and [pages, page size, r], the "
				     "indices [queries, largest number of keys of a query] and the softmax scale"
				   : "the two parts of the queries, [queries, heads, c] and [queries, heads, r], the "
				     "two parts of the cache, [pages, page size, c] and [pages, page size, r], the "
				     "index vectors and the softmax scale",
			    why);
		*place = i;
	}
	for (int p = 0; p < ATTENTION_PARTS; p++)
		if (roles->query[p] < 0 || roles->key[p] < 0 || (sparse ? roles->sparse : roles->kv_indices) < 0)
			return err_set(why, "the inputs must include the latent and the rotary part of the query, both "
					    "parts of the cache, and %s",
				       sparse ? "the indices of the keys to read" : "kv_indices");
	roles->value = roles->key[0];
	return 0;
}

static int find_latent(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
{
	return find_parts(problem, roles, false, why);
}

static int find_sparse(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
{
	return find_parts(problem, roles, true, why);
}

static int find(const struct op_problem *problem, enum attention_form form, struct attention_roles *roles,
		struct err *why)
{
	static int (*const finders[])(const struct op_problem *, struct attention_roles *, struct err *) = {
	    [ATTENTION_RAGGED] = find_ragged,
	    [ATTENTION_WHOLE] = find_whole,
	    [ATTENTION_LATENT] = find_latent,
	    [ATTENTION_SPARSE] = find_sparse,
	};

	*roles = attention_no_roles();
	if (attention_find_indices(problem, roles, why) != 0 || finders[form](problem, roles, why) != 0)
		return -1;
	return attention_validate(problem, roles, why);
}

int attention_match(const struct op_problem *problem, enum attention_form form, struct err *why)
{
	struct attention_roles roles;

	if (find(problem, form, &roles, why) != 0)
		return -1;
	return attention_is_causal(problem, &roles) ? ATTENTION_CAUSAL : ATTENTION_FULL;
}

/* Returns the form (forms.h) of a problem. No other form is possible: only the sparse form has an integer tensor of
 * rank 2, only the forms with pages have kv_indices, and only the form with whole heads has caches of rank 4. */
static enum attention_form form_of(const struct op_problem *problem)
{
	struct attention_roles roles = attention_no_roles();
	enum attention_form paged = ATTENTION_LATENT;

	attention_find_indices(problem, &roles, NULL);
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		if (attention_is_integer(input) && input->rank == 2)
			return ATTENTION_SPARSE;
		if (attention_is_float(input) && input->rank == 4)
			paged = ATTENTION_WHOLE;
	}
	return roles.kv_indices >= 0 ? paged : ATTENTION_RAGGED;
}

struct attention_roles attention_roles_of(const struct op_problem *problem)
{
	struct attention_roles roles;

	find(problem, form_of(problem), &roles, NULL);
	return roles;
}

void attention_bind(const struct op_problem *problem, int variant, void *roles)
{
	(void)variant;
	*(struct attention_roles *)roles = attention_roles_of(problem);
}
