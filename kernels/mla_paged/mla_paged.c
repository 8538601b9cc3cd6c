/* mla_paged - multi-head latent attention whose latents lie in pages of a cache: decode and prefill, weights absorbed.
 *
 *   q_nope [queries, heads, c], q_pe [queries, heads, r], ckv_cache [pages, page size, c], kpe_cache [pages, page size,
 * r], kv_indptr [sequences + 1] offsets into kv_indices (page numbers), kv_last_page_len: keys in each sequence's last
 * page (without it all pages are full), sm_scale -> output [queries, heads, c], lse [queries, heads]
 *
 * A logit is the sum of both dot products, and the latent is the value too; all heads look at the same keys. With
 * qo_indptr it is prefill, causal if the name says so, masks aligned at the end of the keys; without it one query a
 * sequence. The formulas, and what a query has that sees nothing, stand in kernels/attention.h; inputs and bounds in
 * kernels/attention_inputs.{h,c}. */
#include "kernels/op.h"

#include <math.h>

#include "kernels/attention.h"
#include "kernels/attention_inputs.h"
#include "kernels/mla_paged/inputs.h"

/* Queries have the output's first two axes, caches do not; of each kind, what ends in the output's last axis is the
 * latent part, the other the rotary one. */
static int *place_of(const struct op_problem *problem, struct attention_roles *roles, const struct op_arg *input)
{
	const struct op_arg *output = &problem->outputs[roles->output];
	bool query = attention_same_axes(problem, input, output, 0, 2);
	int part = attention_same_axes(problem, input, output, 2, 3) ? 0 : 1;

	return query ? &roles->query[part] : &roles->key[part];
}

static int find(const struct op_problem *problem, struct attention_roles *roles, struct err *why)
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
			return attention_refuse(problem, input,
			                        "queries [queries, heads, c] and [queries, heads, r], caches [pages,"
			                        " page size, c] and [pages, page size, r]",
			                        why);
		*place = i;
	}
	for (int p = 0; p < ATTENTION_PARTS; p++)
		if (roles->query[p] < 0 || roles->key[p] < 0 || roles->kv_indices < 0)
			return err_set(why, "expected a latent and a rotary part of the query and of the "
			                    "cache, and"
			                    " kv_indices, among the inputs");
	roles->value = roles->key[0];
	return attention_validate(problem, roles, why);
}

struct attention_roles mla_paged_roles(const struct op_problem *problem)
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

static const struct attention_preset decode_sizes[SIZE_COUNT][2] = {
    [SIZE_SMALL] = {{1, 0, 23}, {4, 0, 60}},
    [SIZE_MEDIUM] = {{9, 0, 2048}},
    [SIZE_LARGE] = {{64, 0, 131072}},
};
static const struct attention_preset prefill_sizes[SIZE_COUNT][2] = {
    [SIZE_SMALL] = {{1, 6, 17}, {4, 16, 44}},
    [SIZE_MEDIUM] = {{8, 160, 640}},
    [SIZE_LARGE] = {{8, 4096, 16384}},
};

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	struct attention_roles roles = mla_paged_roles(problem);
	const struct attention_preset *presets = roles.qo_indptr < 0 ? decode_sizes[size] : prefill_sizes[size];

	(void)variant;
	return attention_sizes(problem, &roles, presets, presets[1].batch > 0 ? 2 : 1, axis, room);
}

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	struct attention_roles roles = mla_paged_roles(problem);

	(void)variant;
	return attention_edge_axes(problem, &roles, edge, axis);
}

static struct rule rule(const struct op_case *c, int output)
{
	struct attention_roles roles = mla_paged_roles(c->problem);

	return attention_rule(c, &roles, output);
}

/* 1 / sqrt(128 + r): that of the heads before absorption, which the latent's size has nothing to do with. Heads of 128
 * besides the rotary part are DeepSeek's, in all whose latents are of 512. */
static double scalar(const struct op_case *c, int input)
{
	struct attention_roles roles = mla_paged_roles(c->problem);

	(void)input;
	return 1 / sqrt(128 + (double)attention_extent_of(c, &roles).dim[1]);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct attention_roles roles = mla_paged_roles(c->problem);

	return attention_fill(c, &roles, input, out, err);
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct attention_roles roles = mla_paged_roles(c->problem);

	return attention_check(c, &roles, in, err);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct attention_roles roles = mla_paged_roles(c->problem);

	return attention_oracle(c, &roles, in, out, err);
}

static const char *const op_types[] = {"mla_paged", NULL};

const struct op mla_paged_op = {
    .name = "mla_paged",
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
