/* cascade - merges the results of attention over parts of a sequence (states) into the result of attention over the
 * whole sequence.
 *
 *   s[t][h] = log2 of the sum over states i of 2^s_i[t][h]
 *   v[t][h] = sum over i of v_i[t][h] 2^(s_i[t][h] - s[t][h])
 *
 * A state is the attention output v over one part of the sequence, with the log-sum-exp s of its scores. The operation
 * merge_state has the inputs v_a, v_b [tokens, heads, D] and s_a, s_b [tokens, heads], and optionally a bool mask
 * [tokens]. If the mask of a token is false, the outputs are v_a and s_a. The operation merge_states has the inputs v
 * [tokens, states, heads, D] and s [tokens, states, heads]. The outputs are v [tokens, heads, D] and optionally s
 * [tokens, heads]. v is float32, float16 or bfloat16. s is float32 and a logarithm to base 2, as in FlashInfer's
 * cascade.merge_state, merge_state_in_place and merge_states. The log-sum-exp of an empty part is -infinity. If every
 * part is empty, v is 0 and s is -infinity. Some implementations return NaN for a token whose parts are all empty.
 * Therefore only the cases of --edge have such tokens.
 *
 * Tolerance. |s_i| is at most 204, and a reference that uses natural logarithms multiplies it by ln 2. The product has
 * an error of 204 * ln 2 * 2^-24 = 8e-6. A weight is a quotient of two powers with such exponents, and has a relative
 * error of 2e-5. v has an error of 4e-5, because it is a sum of values up to 2, which may cancel. Larger values of v
 * occur only where all states but one have weight 0. Therefore the atol of v is 5e-5. The rtol of v allows one rounding
 * to v's dtype: 2^-7 for bfloat16, 2^-10 for float16, 1e-5 for float32. After the conversion back to base 2, s has an
 * error of up to three times 8e-6 / ln 2. Therefore the atol of s is 1e-4. The tolerance does not depend on the number
 * of states: an error that affects all weights alike cancels, and an error of a single weight is multiplied by that
 * weight. No case has a tolerance of zero, because the last bits of 2^x and log2(x) differ between machines. */
#include "kernels/cascade/input_values.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/core/mistakes.h"
#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

enum { PARALLEL_FROM = 1 << 20 }; /* if a case has fewer elements, one thread is faster than several */

/* Returns true if the axes of `arg` are the first `count` axes of `like`, except axis number `without` (-1: no
 * exception). */
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

		if (!has_axes(other, v, -1, v->rank) || !match_is_float(other))
			return wrong_shape(problem, other,
					   "a float tensor of the same shape as the first input state", why);
		if (!has_axes(s, v, -1, v->rank - 1) || s->dtype != DTYPE_FLOAT32)
			return wrong_shape(problem, s,
					   "float32 with one value for each head of each token", why);
	}
	if (roles->mask >= 0) {
		const struct op_arg *mask = &problem->inputs[roles->mask];

		if (many || !has_axes(mask, v, -1, 1) || (mask->dtype != DTYPE_BOOL && mask->dtype != DTYPE_UINT8))
			return wrong_shape(problem, mask,
					   "a bool mask with one value per token, and exactly two input states", why);
	}
	return 0;
}

static int match_outputs(const struct op_problem *problem, const struct cascade_roles *roles, bool many,
                         struct err *why)
{
	const struct op_arg *v = &problem->inputs[roles->v[0]];

	if (problem->output_count > 2 || roles->v_out < 0 || (roles->s_out < 0) != (problem->output_count == 1))
		return err_set(why, "the definition has %d outputs; it must return the merged v and may also return "
				    "its logsumexp",
		               problem->output_count);
	const struct op_arg *v_out = &problem->outputs[roles->v_out];

	if (!has_axes(v_out, v, many ? 1 : -1, v->rank) || !match_is_float(v_out))
		return wrong_shape(problem, v_out, "a float tensor of the shape of one state", why);
	if (roles->s_out < 0)
		return 0;
	const struct op_arg *s_out = &problem->outputs[roles->s_out];

	if (!has_axes(s_out, v, many ? 1 : -1, v->rank - 1) || s_out->dtype != DTYPE_FLOAT32)
		return wrong_shape(problem, s_out, "float32 with one value for each head of each token", why);
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
		    "the definition's %d inputs do not fit; expected two states, each with v [tokens, heads, D] and s "
		    "[tokens, heads], or one stack of states, with v [tokens, states, heads, D] and s [tokens, "
		    "states, heads]",
		    problem->input_count);
	if (match_inputs(problem, &roles, many, why) != 0 || match_outputs(problem, &roles, many, why) != 0)
		return -1;
	return many ? CASCADE_MANY : CASCADE_TWO;
}

/* One case has BLOCK_TOKENS tokens, a multiple of the usual block sizes of kernels. Another case has MOST_TOKENS
 * tokens, one more than such a multiple. MOST_STATES is also one more than such a multiple. A case with MOST_STATES
 * states for each token has FEW_TOKENS tokens. */
enum { FEW_TOKENS = 16, BLOCK_TOKENS = 256, MOST_TOKENS = 2 * BLOCK_TOKENS + 1, MOST_STATES = 257 };

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	const int64_t tokens[SIZE_COUNT][2] = {{1, variant == CASCADE_MANY ? FEW_TOKENS : BLOCK_TOKENS},
					       {MOST_TOKENS, variant == CASCADE_MANY ? BLOCK_TOKENS : 0},
					       {8192, 0}},
		      states[SIZE_COUNT][2] = {{2, MOST_STATES}, {9, 2}, {8, 0}};
	const struct op_arg *v = &problem->inputs[cascade_roles_of(problem).v[0]];
	int count = 0, many = variant == CASCADE_MANY;

	for (int i = 0; i < 2 && tokens[size][i] > 0 && count < room; i++) {
		int64_t *row = axis + (int64_t)count++ * problem->axis_count;

		op_start_axes(problem, 1, row);
		op_set_axis(problem, v->axis[2 + many], 128, row);
		op_set_axis(problem, v->axis[1 + many], size == SIZE_SMALL ? 3 : 32, row);
		if (many)
			op_set_axis(problem, v->axis[1], states[size][i], row);
		op_set_axis(problem, v->axis[0], tokens[size][i], row);
	}
	return count;
}

/* The values of op_case.edge, in the order of the table `edges`. */
enum { EDGE_NO_TOKENS = 1, EDGE_ONE_STATE, EDGE_ALL_EMPTY, EDGE_NONE_MERGED };

static const struct op_edge edges[] = {
    {"no_tokens", "if the input has no tokens, the output has no tokens"},
    {"one_state", "a single state is returned unchanged"},
    {"all_empty", "where every state is empty (-infinity), v is 0 and its logsumexp is -infinity"},
    {"none_merged", "where the mask of a token is false, the output is the token's first state"},
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

/* The s of two states may differ by 400, and their weights then differ by a factor of 2^400. If v is float16, its
 * elements have magnitudes up to 2^15, half the range of float16. Otherwise, some elements of v are beyond the range of
 * float16. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct cascade_roles roles = cascade_roles_of(problem);
	bool is_s = input == roles.s[0] || input == roles.s[1];

	double most = problem->inputs[input].dtype == DTYPE_FLOAT16 ? 32000 : 260000;

	(void)variant;
	*out = is_s ? (struct op_range){-202, 202} : (struct op_range){-most, most};
	if (input == roles.mask)
		*out = (struct op_range){0, 1};
	return true;
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *v = &problem->inputs[cascade_roles_of(problem).v[0]];

	if (variant == CASCADE_MANY && axis == v->axis[1])
		return (struct op_reach){MOST_STATES, 0};
	return axis == v->axis[0] ? (struct op_reach){MOST_TOKENS, BLOCK_TOKENS} : (struct op_reach){0, 0};
}

/* Returns true if element `index` of s belongs to a token whose states are all empty. In the edge case all_empty, the
 * states of every second token are empty, starting with the first token. */
static bool empty(const struct op_case *c, const struct cascade_fill *f, int64_t index)
{
	int64_t token = index / f->heads / (f->state >= 0 ? 1 : f->states);

	return f->is_s && (c->edge == EDGE_ALL_EMPTY ? token % 2 == 0 : false);
}

WIDE static void make_v(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                        float *values)
{
	const struct cascade_fill *f = recipe;
	int64_t first = row * f->heads * f->width + column;
	bool hidden = f->masked && cascade_hidden(f, row);

	for (int64_t i = 0; i < count; i++)
		values[i] = hidden ? NAN : cascade_read(f, first + i, random[i]);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct cascade_fill f = cascade_fill_of(c, input);
	bool mask = input == cascade_roles_of(c->problem).mask;

	(void)err;
	if (!mask && !f.is_s) {
		input_fill(out, f.key, f.heads * f.width, make_v, &f);
		return 0;
	}
	for (int64_t block = 0; block < (out->elements + 3) / 4; block++) {
		struct philox random = philox_block(f.key, (uint64_t)block);

		for (int64_t i = 4 * block; i < 4 * block + 4 && i < out->elements; i++)
			if (mask)
				((uint8_t *)out->data)[i] =
				    c->edge != EDGE_NONE_MERGED && cascade_mask(c->contents, i, random.word[i % 4]);
			else
				dtype_store_float(out->data, out->dtype, i,
				                  empty(c, &f, i) ? -INFINITY : cascade_element(&f, i, random.word[i % 4]));
	}
	return 0;
}

/* Returns the index of the element of s that belongs to state `i`, for one head of one token. In v, the elements of
 * this state begin at the returned index times `width`. */
static int64_t place(const struct cascade_extent *e, bool many, int64_t token, int64_t head, int64_t i)
{
	return many ? (token * e->states + i) * e->heads + head : token * e->heads + head;
}

static double s_of(const struct tensor *s, int64_t at)
{
	return dtype_load(s->data, s->dtype, at);
}

enum mistake {
	NO_MISTAKE, NATURAL, NATURAL_WEIGHTS, NATURAL_SUM, NATURAL_READ, ROUNDED_WEIGHTS, NOT_DIVIDED, AVERAGED, LARGEST_ALONE,
	LAST_LEFT_OUT, FIRST_8, FIRST_16, FIRST_32, FIRST_64, FIRST_128, FIRST_256, LARGEST_S, SUM_OF_S, FIRST_ONLY, MASK_FOR_V,
	MASK_FOR_S, MASKED_ZERO
};

#define LN_2 0.69314718055994530942

static bool mask_reversed(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *mask = variation_change(v, variation_input(v, mistake->role));

	for (int64_t i = 0; mask != NULL && i < mask->elements; i++)
		((uint8_t *)mask->data)[i] = ((uint8_t *)mask->data)[i] == 0;
	return mask != NULL;
}

/* The mistake replaces the log-sum-exp of an empty state with op_mistake.by. */
static bool empty_is(struct op_variation *v, const struct op_mistake *mistake)
{
	bool any = false;

	for (int i = 0; i < 2; i++) {
		struct tensor *s = variation_change(v, variation_input(v, i == 0 ? "s" : "s_other"));

		for (int64_t k = 0; s != NULL && k < s->elements; k++)
			if (dtype_load(s->data, s->dtype, k) == -INFINITY) {
				dtype_store(s->data, s->dtype, k, mistake->by);
				any = true;
			}
	}
	return any;
}

/* The mistake replaces each log-sum-exp that is below op_mistake.by with op_mistake.by. */
static bool all_least(struct op_variation *v, const struct op_mistake *mistake)
{
	struct op_mistake s = *mistake, other = *mistake;

	s.role = "s", other.role = "s_other";
	bool any = before_least(v, &s);

	return before_least(v, &other) || any;
}

static const struct op_mistake mistakes[] = {
    {.says = "log-sum-exps were natural logarithms, not logarithms of base 2", .in_oracle = NATURAL},
    {.says = "the merged log-sum-exp was a natural logarithm, not of base 2", .after = after_scale, .role = "s_merged", .by = LN_2},
    {.says = "weights were powers of e, not of 2", .in_oracle = NATURAL_WEIGHTS},
    {.says = "the logarithm of the sum of the weights was natural, not of base 2", .in_oracle = NATURAL_SUM},
    {.says = "log-sum-exps were read as natural logarithms, and the result was converted to base 2", .in_oracle = NATURAL_READ},
    {.says = "weights were rounded to bfloat16", .in_oracle = ROUNDED_WEIGHTS},
    {.says = "the log-sum-exp of an empty state was 0, not -infinity", .before = empty_is, .by = 0},
    {.says = "log-sum-exps were clamped to at least -100", .before = all_least, .by = -100},
    {.says = "only the first 8 states were merged", .in_oracle = FIRST_8},
    {.says = "only the first 16 states were merged", .in_oracle = FIRST_16},
    {.says = "only the first 32 states were merged", .in_oracle = FIRST_32},
    {.says = "only the first 64 states were merged", .in_oracle = FIRST_64},
    {.says = "only the first 128 states were merged", .in_oracle = FIRST_128},
    {.says = "only the first 256 states were merged", .in_oracle = FIRST_256},
    {.says = "the mask was ignored for v", .in_oracle = MASK_FOR_S},
    {.says = "the mask was ignored for the log-sum-exp", .in_oracle = MASK_FOR_V},
    {.says = "v was 0 where the mask is false", .in_oracle = MASKED_ZERO},
    {.says = "the merged v was not divided by the sum of the weights", .in_oracle = NOT_DIVIDED},
    {.says = "states were averaged, without their weights", .in_oracle = AVERAGED},
    {.says = "only the state with the largest log-sum-exp was used for v", .in_oracle = LARGEST_ALONE},
    {.says = "the last state was left out", .in_oracle = LAST_LEFT_OUT},
    {.says = "only the first state was used", .in_oracle = FIRST_ONLY},
    {.says = "the merged log-sum-exp was the largest log-sum-exp", .in_oracle = LARGEST_S},
    {.says = "log-sum-exps were added", .in_oracle = SUM_OF_S},
    {.says = "the weights of the two states were swapped", .before = before_swap, .role = "s", .other = "s_other"},
    {.says = "the mask was ignored: every token was merged", .before = before_set, .role = "mask", .by = 1},
    {.says = "the mask was inverted", .before = mask_reversed, .role = "mask"},
    {.says = NULL},
};

static int64_t at_most(int64_t count, int64_t limit)
{
	return count < limit ? count : limit;
}

/* Merges the states of one head of one token into `v` and returns the merged s. `row` has space for one state's v. */
static double merge_states(const struct op_case *c, const struct tensor *in, int64_t token, int64_t head, double *v,
                    double *row)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	struct cascade_extent e = cascade_extent_of(c);
	bool many = c->variant == CASCADE_MANY;
	double most = -INFINITY, sum = 0, sum_of_s = 0;
	int64_t states = e.states;

	if (c->mistake == LAST_LEFT_OUT || c->mistake == FIRST_ONLY)
		states = c->mistake == FIRST_ONLY || states < 2 ? 1 : states - 1;
	if (c->mistake >= FIRST_8 && c->mistake <= FIRST_256)
		states = at_most(states, 8 << (c->mistake - FIRST_8));
	for (int64_t i = 0; i < states; i++)
		most = fmax(most, s_of(&in[roles.s[many ? 0 : i]], place(&e, many, token, head, i)));
	for (int64_t d = 0; d < e.width; d++)
		v[d] = 0;
	for (int64_t i = 0; i < states; i++) {
		const struct tensor *from = &in[roles.v[many ? 0 : i]];
		int64_t at = place(&e, many, token, head, i);

		if (most == -INFINITY)
			break;
		double s = s_of(&in[roles.s[many ? 0 : i]], at);
		bool natural = c->mistake == NATURAL || c->mistake == NATURAL_WEIGHTS || c->mistake == NATURAL_READ;
		double weight = natural ? exp(s - most) : exp2(s - most);

		if (c->mistake == ROUNDED_WEIGHTS)
			weight = (double)float_from_bf16(bf16_from_float((float)weight));
		sum += weight;
		sum_of_s += s;
		weight = c->mistake == AVERAGED ? 1 / (double)states : c->mistake == LARGEST_ALONE ? (s == most) : weight;
		dtype_load_run(from->data, from->dtype, at * e.width, e.width, row);
		for (int64_t d = 0; d < e.width; d++)
			v[d] += weight * row[d];
	}
	bool divided = c->mistake != NOT_DIVIDED && c->mistake != AVERAGED && c->mistake != LARGEST_ALONE;

	for (int64_t d = 0; d < e.width && sum > 0 && divided; d++)
		v[d] /= sum;
	if (c->mistake == LARGEST_S || c->mistake == SUM_OF_S)
		return c->mistake == LARGEST_S ? most : sum_of_s;
	if (c->mistake == NATURAL_READ)
		return (most + log(sum)) / LN_2;
	return most + (c->mistake == NATURAL || c->mistake == NATURAL_SUM ? log(sum) : log2(sum));
}

/* Like merge_states, but returns the first state if the mask of the token is false. */
static double merge(const struct op_case *c, const struct tensor *in, int64_t token, int64_t head, double *v, double *row)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	struct cascade_extent e = cascade_extent_of(c);
	int64_t at = token * e.heads + head;
	bool kept = roles.mask >= 0 && in[roles.mask].data != NULL && ((const uint8_t *)in[roles.mask].data)[token] == 0;
	double s = kept && c->mistake != MASK_FOR_V && c->mistake != MASK_FOR_S ? 0 : merge_states(c, in, token, head, v, row);

	if (!kept)
		return s;
	if (c->mistake != MASK_FOR_S)
		dtype_load_run(in[roles.v[0]].data, in[roles.v[0]].dtype, at * e.width, e.width, v);
	for (int64_t d = 0; d < e.width && c->mistake == MASKED_ZERO; d++)
		v[d] = 0;
	return c->mistake == MASK_FOR_V ? s : s_of(&in[roles.s[0]], at);
}

/* Checks that every v is finite, and that every s is finite or -infinity. Rejects the case otherwise. Where the mask is
 * false, the second state may have any values, because it is not read. */
static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	const uint8_t *mask = roles.mask >= 0 ? in[roles.mask].data : NULL;
	const char *why = "a logsumexp must be a number, or -infinity for an empty part";
	int64_t heads = cascade_extent_of(c).heads;
	char where[160];

	for (int i = 0; i < 2; i++) {
		const uint8_t *read = i == 0 ? NULL : mask;

		if (check_numbers_of_rows(c, in, roles.v[i], read, true, "the merged state would be NaN", err) != 0 ||
		    check_numbers_of_rows(c, in, roles.s[i], read, false, why, err) != 0)
			return -1;
		for (int64_t k = 0; check_brought(c, in, roles.s[i]) && k < in[roles.s[i]].elements; k++)
			if (((const float *)in[roles.s[i]].data)[k] == INFINITY && (read == NULL || read[k / heads] != 0))
				return err_set(err, "input '%s' holds infinity at %s; %s", c->problem->inputs[roles.s[i]].name,
					       check_place(&in[roles.s[i]], k, where, sizeof where), why);
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
		double *v = take(2 * e.width, sizeof *v);

#pragma omp for
		for (int64_t at = 0; at < e.tokens * e.heads; at++) {
			double s = merge(c, in, at / e.heads, at % e.heads, v, v + e.width);

			dtype_store_run(v_out->data, v_out->dtype, at * e.width, e.width, v);
			if (roles.s_out >= 0)
				dtype_store(out[roles.s_out].data, out[roles.s_out].dtype, at, s);
		}
		free(v);
	}
	return 0;
}

static const char *const op_types[] = {"cascade", "cascade_merge", "merge_state", "merge_states", NULL};
static const char *const op_words[] = {"cascade_merge", "merge_state", "merge_states", "merge_state_in_place", NULL};

static const struct op_role roles[] = {
    OP_ROLE("v", struct cascade_roles, v[0]),
    OP_ROLE("s", struct cascade_roles, s[0]),
    OP_ROLE("v_other", struct cascade_roles, v[1]),
    OP_ROLE("s_other", struct cascade_roles, s[1]),
    OP_ROLE("mask", struct cascade_roles, mask),
    OP_ROLE_OUTPUT("v_merged", struct cascade_roles, v_out),
    OP_ROLE_OUTPUT("s_merged", struct cascade_roles, s_out),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct cascade_roles *)out = cascade_roles_of(problem);
}

static const struct op_mode modes[] = {
    {"many", ~0, CASCADE_MANY},
    {NULL, 0, 0},
};

static const struct op_coverage coverage[] = {
    {"states", coverage_switch, .other = "many",
     .values = {{"two", 0, 0, "merges two states"}, {"many", 1, 1, "merges many states"}}},
    COVERAGE_OPTION("mask", "mask", "given", "has a mask", "none", "has no mask"),
    COVERAGE_OPTION("merged log-sum-exp", "s_merged", "returned", "returns the merged log-sum-exp", "none",
		    "returns the merged values alone"),
    COVERAGE_DTYPES("v"),
    {.name = NULL},
};

const struct op cascade_op = {
    .name = "cascade",
    .op_types = op_types,
    .words = op_words,
    .match = match,
    .roles = roles,
    .bind = bind,
    .mistakes = mistakes,
    .modes = modes,
    .coverage = coverage,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .range = range,
    .reach = reach,
    .in_place = op_in_place_namesake,
    .fill = fill,
    .check = check,
    .oracle = oracle,
};
