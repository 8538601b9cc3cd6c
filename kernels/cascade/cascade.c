/* cascade - attention over parts of a sequence merged into attention over the whole.
 *
 *   s[t][h] = log2 of the sum over states i of 2^s_i[t][h]
 *   v[t][h] = sum over i of v_i[t][h] 2^(s_i[t][h] - s[t][h])
 *
 * merge_state: v_a, v_b [tokens, heads, D] and s_a, s_b [tokens, heads]; with a mask [tokens] of bool, tokens where it
 * is false keep v_a and s_a. merge_states: v [tokens, states, heads, D], s [tokens, states, heads]. Outputs v [tokens,
 * heads, D] and s [tokens, heads], or v alone. v is float32, float16 or bfloat16, s is float32 and in base 2, as
 * FlashInfer's cascade.merge_state, merge_state_in_place and merge_states have it. -infinity is the logsumexp of an
 * empty part; where every part is empty, v is 0 and s -infinity (--edge alone has such tokens: some implementations
 * give NaN there).
 *
 * Bound. s_i is at most 204 in magnitude. A reference that goes through natural logarithms multiplies it by ln 2 and is off by
 * 204 ln 2 2^-24 = 8e-6 in each exponent, 2e-5 in a quotient of two powers, and so 4e-5 in v, where values up to 2 may
 * cancel: atol 5e-5, and one rounding of v's dtype (rtol 2^-7, 2^-10; 1e-5 for float32). On the way back s is off by
 * three times those 8e-6 / ln 2: atol 1e-4. The number of states does not count: what is off is common to all weights, or
 * each weight's own share of v. No case has a bound of zero: powers and logarithms of two are not the same bits everywhere. */
#include "kernels/cascade/inputs.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/check.h"
#include "kernels/wide.h"

enum { PARALLEL_FROM = 1 << 20 }; /* elements from which threads are worth their start */

static bool known_dtype(enum dtype dtype)
{
	return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

/* Has `arg` the axes of `like`, of which the `without`th (-1: none) and all from `count` on are left out? */
static bool has_axes(const struct op_arg *arg, const struct op_arg *like, int without, int count)
{
	int at = 0;

	for (int d = 0; d < count; d++)
		if (d != without && (at >= arg->rank || arg->axis[at++] != like->axis[d]))
			return false;
	return at == arg->rank;
}

static int wrong_shape(const struct op_problem *problem, const struct op_arg *arg, const char *expected,
                       struct err *why)
{
	char found[256];

	return err_set(why, "'%s' is %s %s, expected %s", arg->name, dtype_name(arg->dtype),
	               op_shape_text(problem, arg, found, sizeof found), expected);
}

static int match_inputs(const struct op_problem *problem, const struct cascade_roles *roles, bool many, struct err *why)
{
	const struct op_arg *v = &problem->inputs[roles->v[0]];

	for (int i = 0; i < (many ? 1 : 2); i++) {
		const struct op_arg *other = &problem->inputs[roles->v[i]], *s = &problem->inputs[roles->s[i]];

		if (!has_axes(other, v, -1, v->rank) || !known_dtype(other->dtype))
			return wrong_shape(problem, other, "a float of the first state's shape", why);
		if (!has_axes(s, v, -1, v->rank - 1) || s->dtype != DTYPE_FLOAT32)
			return wrong_shape(problem, s, "a float32 for each head of each token, as the state has", why);
	}
	if (roles->mask >= 0) {
		const struct op_arg *mask = &problem->inputs[roles->mask];

		if (many || !has_axes(mask, v, -1, 1) || (mask->dtype != DTYPE_BOOL && mask->dtype != DTYPE_UINT8))
			return wrong_shape(problem, mask, "a mask: one bool for each token of two states", why);
	}
	return 0;
}

static int match_outputs(const struct op_problem *problem, const struct cascade_roles *roles, bool many,
                         struct err *why)
{
	const struct op_arg *v = &problem->inputs[roles->v[0]];

	if (problem->output_count > 2 || roles->v_out < 0 || (roles->s_out < 0) != (problem->output_count == 1))
		return err_set(why, "it has %d outputs, expected the merged v and, perhaps, its logsumexp",
		               problem->output_count);
	const struct op_arg *v_out = &problem->outputs[roles->v_out];

	if (!has_axes(v_out, v, many ? 1 : -1, v->rank) || !known_dtype(v_out->dtype))
		return wrong_shape(problem, v_out, "a float of the shape of one state", why);
	if (roles->s_out < 0)
		return 0;
	const struct op_arg *s_out = &problem->outputs[roles->s_out];

	if (!has_axes(s_out, v, many ? 1 : -1, v->rank - 1) || s_out->dtype != DTYPE_FLOAT32)
		return wrong_shape(problem, s_out, "a float32 for each head of each token", why);
	return 0;
}

static int match(const struct op_problem *problem, struct err *why)
{
	struct cascade_roles roles = cascade_roles_of(problem);
	int rank = roles.v[0] >= 0 ? problem->inputs[roles.v[0]].rank : 0, scalars = 0;
	bool many = rank == 4;

	for (int i = 0; i < problem->input_count; i++)
		scalars += problem->inputs[i].rank == OP_SCALAR;
	int found = (roles.v[0] >= 0) + (roles.v[1] >= 0) + (roles.s[0] >= 0) + (roles.s[1] >= 0) + (roles.mask >= 0);

	if (scalars > 0 || found != problem->input_count || (rank != 3 && rank != 4) || roles.s[0] < 0 ||
	    (roles.v[1] < 0) != many || (roles.s[1] < 0) != many)
		return err_set(
		    why,
		    "its %d inputs are neither two states v [tokens, heads, D] with s [tokens, heads] each, nor many "
		    "in v [tokens, states, heads, D] and s [tokens, states, heads]",
		    problem->input_count);
	if (match_inputs(problem, &roles, many, why) != 0 || match_outputs(problem, &roles, many, why) != 0)
		return -1;
	return many ? CASCADE_MANY : CASCADE_TWO;
}

static void set_if_var(const struct op_problem *problem, int axis, int64_t value, int64_t *out)
{
	if (problem->axes[axis].var)
		out[axis] = value;
}

/* Beyond 256 and 300 tokens, and beyond 32 states, neither a multiple of what kernels take at once. */
enum { MOST_TOKENS = 321, MOST_STATES = 33 };

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const int64_t tokens[SIZE_COUNT][2] = {{1, 16}, {MOST_TOKENS, 0}, {8192, 0}},
			     states[SIZE_COUNT][2] = {{2, MOST_STATES}, {9, 0}, {8, 0}};
	const struct op_arg *v = &problem->inputs[cascade_roles_of(problem).v[0]];
	int count = 0, many = variant == CASCADE_MANY;

	for (int i = 0; i < 2 && tokens[size][i] > 0 && count < room; i++) {
		int64_t *row = axis + (int64_t)count++ * problem->axis_count;

		for (int a = 0; a < problem->axis_count; a++)
			row[a] = problem->axes[a].var ? 1 : problem->axes[a].value;
		set_if_var(problem, v->axis[2 + many], 128, row);
		set_if_var(problem, v->axis[1 + many], size == SIZE_SMALL ? 3 : 32, row);
		if (many)
			set_if_var(problem, v->axis[1], states[size][i], row);
		set_if_var(problem, v->axis[0], tokens[size][i], row);
	}
	return count;
}

/* The cases of --edge; op_case.edge is one of these. */
enum { EDGE_NO_TOKENS = 1, EDGE_ONE_STATE, EDGE_ALL_EMPTY, EDGE_NONE_MERGED };

static const struct op_edge edges[] = {
    {"no_tokens", "no tokens in, no tokens out"},
    {"one_state", "a state that is alone stays as it is"},
    {"all_empty", "where every state is empty (-infinity), v is 0 and its logsumexp -infinity"},
    {"none_merged", "where the mask is false, the first state stays as it is"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	struct cascade_roles roles = cascade_roles_of(problem);
	int states = variant == CASCADE_MANY ? problem->inputs[roles.v[0]].axis[1] : -1;

	if ((edge == EDGE_ONE_STATE && (states < 0 || !problem->axes[states].var)) ||
	    (edge == EDGE_NONE_MERGED && roles.mask < 0) ||
	    !op_edge_rows(sizes, problem, variant, edge == EDGE_NO_TOKENS ? 0 : 11, axis))
		return false;
	if (edge == EDGE_ONE_STATE)
		axis[states] = 1;
	return true;
}

static struct rule rule(const struct op_case *c, int output)
{
	if (output == cascade_roles_of(c->problem).s_out)
		return (struct rule){1e-4, 1e-6, 1};
	switch (c->problem->outputs[output].dtype) {
	case DTYPE_BFLOAT16:
		return (struct rule){5e-5, 0x1p-7, 1};
	case DTYPE_FLOAT16:
		return (struct rule){5e-5, 0x1p-10, 1};
	default:
		return (struct rule){5e-5, 1e-5, 1};
	}
}

/* What a state is worth may differ by 400 powers of two from the next; v is as attention gives it. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct cascade_roles roles = cascade_roles_of(problem);
	bool is_s = input == roles.s[0] || input == roles.s[1];

	(void)variant;
	*out = is_s ? (struct op_range){-202, 202} : (struct op_range){-1.99, 1.99};
	if (input == roles.mask)
		*out = (struct op_range){0, 1};
	return true;
}

static int64_t reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *v = &problem->inputs[cascade_roles_of(problem).v[0]];

	if (variant == CASCADE_MANY && axis == v->axis[1])
		return MOST_STATES;
	return axis == v->axis[0] ? MOST_TOKENS : 0;
}

/* Is the s of a state that is empty with all others of its token? Every second token is one, from the first on. */
static bool empty(const struct op_case *c, const struct cascade_fill *f, int64_t index)
{
	int64_t token = index / f->heads / (f->state >= 0 ? 1 : f->states);

	return f->is_s && (c->edge == EDGE_ALL_EMPTY ? token % 2 == 0 : false);
}

WIDE static void make_v(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                        float *values)
{
	const struct cascade_fill *f = recipe;

	(void)row;
	for (int64_t i = 0; i < count; i++)
		values[i] = cascade_element(f, column + i, random[i]);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct cascade_fill f = cascade_fill_of(c, input);
	bool mask = input == cascade_roles_of(c->problem).mask;

	(void)err;
	if (!mask && !f.is_s) {
		input_fill(out, f.key, out->elements, make_v, &f);
		return 0;
	}
	for (int64_t block = 0; block < (out->elements + 3) / 4; block++) {
		struct philox random = philox_block(f.key, (uint64_t)block);

		for (int64_t i = 4 * block; i < 4 * block + 4 && i < out->elements; i++)
			if (mask)
				((uint8_t *)out->data)[i] =
				    c->edge != EDGE_NONE_MERGED && cascade_mask(c->contents, i, random.word[i % 4]);
			else
				number_store(out->data, out->dtype, i,
				             empty(c, &f, i) ? -INFINITY : cascade_element(&f, i, random.word[i % 4]));
	}
	return 0;
}

/* Where state `i` of one head of one token has its s; its v are `width` elements from s * width on. */
static int64_t place(const struct cascade_extent *e, bool many, int64_t token, int64_t head, int64_t i)
{
	return many ? (token * e->states + i) * e->heads + head : token * e->heads + head;
}

/* Merges one head of one token into `v`; returns s. `row` takes one state's v. */
static double merge(const struct op_case *c, const struct tensor *in, int64_t token, int64_t head, double *v,
                    double *row)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	struct cascade_extent e = cascade_extent_of(c);
	bool many = c->variant == CASCADE_MANY;
	double most = -INFINITY, sum = 0;

	if (roles.mask >= 0 && in[roles.mask].data != NULL && ((const uint8_t *)in[roles.mask].data)[token] == 0) {
		const struct tensor *first = &in[roles.v[0]];
		int64_t at = token * e.heads + head;

		number_read(first->data, first->dtype, at * e.width, e.width, v);
		return (double)((const float *)in[roles.s[0]].data)[at];
	}
	for (int64_t i = 0; i < e.states; i++)
		most = fmax(most,
		            (double)((const float *)in[roles.s[many ? 0 : i]].data)[place(&e, many, token, head, i)]);
	for (int64_t d = 0; d < e.width; d++)
		v[d] = 0;
	for (int64_t i = 0; i < e.states; i++) {
		const struct tensor *from = &in[roles.v[many ? 0 : i]];
		int64_t at = place(&e, many, token, head, i);

		if (most == -INFINITY)
			break;
		double weight = exp2((double)((const float *)in[roles.s[many ? 0 : i]].data)[at] - most);

		sum += weight;
		number_read(from->data, from->dtype, at * e.width, e.width, row);
		for (int64_t d = 0; d < e.width; d++)
			v[d] += weight * row[d];
	}
	for (int64_t d = 0; d < e.width && sum > 0; d++)
		v[d] /= sum;
	return most + log2(sum);
}

/* v of numbers, s of numbers or -infinity. */
static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	char where[160];

	for (int i = 0; i < 2; i++) {
		if (check_numbers(c, in, roles.v[i], true, "no merged state follows from it", err) != 0 ||
		    check_numbers(c, in, roles.s[i], false, "a logsumexp is a number, or -infinity of an empty part",
				  err) != 0)
			return -1;
		for (int64_t k = 0; check_brought(c, in, roles.s[i]) && k < in[roles.s[i]].elements; k++)
			if (((const float *)in[roles.s[i]].data)[k] == INFINITY)
				return err_set(
				    err,
				    "input '%s' holds infinity at %s; a logsumexp is a number, or -infinity of an "
				    "empty part",
				    c->problem->inputs[roles.s[i]].name,
				    check_place(&in[roles.s[i]], k, where, sizeof where));
	}
	return 0;
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	struct cascade_extent e = cascade_extent_of(c);
	struct tensor *v_out = &out[roles.v_out];

	(void)err;
#pragma omp parallel if (in[roles.v[0]].elements >= PARALLEL_FROM)
	{
		double *v = calloc(2 * (size_t)e.width + 1, sizeof *v);

		if (v == NULL)
			die_no_memory();
#pragma omp for
		for (int64_t at = 0; at < e.tokens * e.heads; at++) {
			double s = merge(c, in, at / e.heads, at % e.heads, v, v + e.width);

			number_write(v_out->data, v_out->dtype, at * e.width, e.width, v);
			if (roles.s_out >= 0)
				number_set(out[roles.s_out].data, DTYPE_FLOAT32, at, s);
		}
		free(v);
	}
	return 0;
}

static const char *const op_types[] = {"cascade", "cascade_merge", "merge_state", "merge_states", NULL};

const struct op cascade_op = {
    .name = "cascade",
    .op_types = op_types,
    .match = match,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .range = range,
    .reach = reach,
    .leaves = op_leaves_namesake,
    .fill = fill,
    .check = check,
    .oracle = oracle,
};
