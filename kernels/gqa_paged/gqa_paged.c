/* gqa_paged - grouped-query attention whose keys and values lie in pages of a cache: decode and prefill.
 *
 *   q [queries, heads, d], k_cache and v_cache [pages, page size, kv heads, d], kv_indptr [sequences + 1] offsets into
 *   kv_indices (page numbers), kv_last_page_len: keys in each sequence's last page (without it all pages are full),
 *   sm_scale -> output [queries, heads, d], lse [queries, heads]
 *
 * With qo_indptr it is prefill, causal if the name says so, and masks are aligned at the end of the keys; without it
 * one query a sequence. Head h looks at kv head h / (heads / kv heads). The formulas, and what a query has that sees
 * nothing, stand in kernels/attention.h; inputs and bounds in kernels/attention_inputs.{h,c}.
 *
 * kv_last_page_len may be declared one longer than there are sequences (by the length of the offset vectors): what is
 * beyond the sequences is read by nobody. */
#include "kernels/op.h"

#include <math.h>

#include "kernels/attention.h"
#include "kernels/attention_inputs.h"
#include "kernels/gqa_paged/inputs.h"

/* Of two caches of one shape the first holds the keys, unless their names say otherwise. */
static void order_caches(const struct op_problem *problem, struct attention_roles *roles)
{
	int key = roles->key[0];

	if (problem->inputs[key].name[0] == 'v' && problem->inputs[roles->value].name[0] == 'k') {
		roles->key[0] = roles->value;
		roles->value = key;
	}
}

static int find(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
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
			return attention_refuse(problem, input,
			                        "q [queries, heads, head dim] and two caches [pages, page size,"
			                        " kv heads, head dim]",
			                        why);
		*place = i;
	}
	if (roles->query[0] < 0 || roles->value < 0 || roles->kv_indices < 0)
		return err_set(why,
		               "expected a query of rank 3, two caches of rank 4 and kv_indices among the"
		               " inputs");
	order_caches(problem, roles);
	return attention_validate(problem, roles, why);
}

struct attention_roles gqa_paged_roles(const struct op_problem *problem)
{
	struct attention_roles roles;

	find(problem, &roles, NULL);
	return roles;
}

static int match(const struct op_problem *problem, struct err *why)
{
	struct attention_roles roles;

	if (find(problem, &roles, why) != 0)
		return -1;
	return attention_is_causal(problem, &roles) ? ATTENTION_CAUSAL : ATTENTION_FULL;
}

/* Prefill at medium has a sequence of more than 512 queries: references cut long ones into such chunks. */
static const struct attention_preset decode_sizes[SIZE_COUNT][2] = {
    [SIZE_SMALL] = {{1, 0, 23}, {4, 0, 60}},
    [SIZE_MEDIUM] = {{9, 0, 2048}},
    [SIZE_LARGE] = {{64, 0, 131072}},
};
static const struct attention_preset prefill_sizes[SIZE_COUNT][2] = {
    [SIZE_SMALL] = {{1, 6, 17}, {4, 16, 44}},
    [SIZE_MEDIUM] = {{8, 160, 640}, {2, 520, 536}},
    [SIZE_LARGE] = {{8, 4096, 16384}},
};

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	struct attention_roles roles = gqa_paged_roles(problem);
	const struct attention_preset *presets = roles.qo_indptr < 0 ? decode_sizes[size] : prefill_sizes[size];

	(void)variant;
	return attention_sizes(problem, &roles, presets, presets[1].batch > 0 ? 2 : 1, axis, room);
}

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	struct attention_roles roles = gqa_paged_roles(problem);

	(void)variant;
	return attention_edge_axes(problem, &roles, edge, axis);
}

static struct rule rule(const struct op_case *c, int output)
{
	struct attention_roles roles = gqa_paged_roles(c->problem);

	return attention_rule(c, &roles, output);
}

/* 1 / sqrt(head dim), as models with such attention have it. */
static double scalar(const struct op_case *c, int input)
{
	struct attention_roles roles = gqa_paged_roles(c->problem);

	(void)input;
	return 1 / sqrt((double)attention_extent_of(c, &roles).dim[0]);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct attention_roles roles = gqa_paged_roles(c->problem);

	return attention_fill(c, &roles, input, out, err);
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct attention_roles roles = gqa_paged_roles(c->problem);

	return attention_check(c, &roles, in, err);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct attention_roles roles = gqa_paged_roles(c->problem);

	return attention_oracle(c, &roles, in, out, err);
}

static const char *const op_types[] = {"gqa_paged", NULL};

const struct op gqa_paged_op = {
    .name = "gqa_paged",
    .op_types = op_types,
    .match = match,
    .sizes = sizes,
    .edges = attention_edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .scalar = scalar,
    .fill = fill,
    .check = check,
    .oracle = oracle,
};
