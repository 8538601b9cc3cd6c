/* rope - computes the rotary position embedding of q and k (or of one tensor).
 *
 *   (a, b) of one pair -> (a cos - b sin, b cos + a sin), with the angle for the token's position and the pair i
 *
 * Only the first R elements of a head form pairs: elements i and i + R/2 (halves, "neox"), or elements 2i and 2i + 1
 * (interleaved). R is the rotary dimension; the other elements are copied. The shape of q and k is [tokens, heads, D]
 * or flat, [tokens, heads * D]; positions are [tokens]. The angle comes from one of two sources:
 *
 *   a cache [rows, R]  Row p is for position p: the cosines are in columns 0 … R/2 - 1, and the sines in the other
 *                      columns.
 *   a formula          The angle is the position times f(i), with f(i) = theta^(-2i/R) / scale. In Llama 3.1, f depends
 *                      on the wavelength w = 2 pi theta^(2i/R). If w < old / high, f = theta^(-2i/R). If w > old / low,
 *                      f = theta^(-2i/R) / scale. If w is between these limits, f = s theta^(-2i/R) + (1 - s)
 *                      theta^(-2i/R) / scale, with s = (old / w - low) / (high - low).
 *
 * FlashInfer's rope.apply_rope_with_cos_sin_cache, apply_rope_pos_ids and apply_llama31_rope_pos_ids are operations of
 * this family.
 *
 * A Python scalar (`interleave` or `is_neox`) selects the pairs. If there is no such scalar, pairs are interleaved if
 * the definition's name contains "interleave" or "gptj". Otherwise, pairs are halves, which is FlashInfer's default.
 * The formula is Llama 3.1's if the name or the fi_api tag says so, or if there is an input `low_freq_factor`. The
 * hidden constants are theta and, for Llama 3.1, also scale, low, high and old. Each constant comes from a Python
 * scalar, a const axis, the name ("theta500000"), the model or the description. If no source states a constant of Llama
 * 3.1, it has the published value. If no source states theta, reftest finds theta by running the reference: at position
 * 1, the pair (1, 0) becomes the cosine and sine of the pair's frequency.
 *
 * Tolerance with a cache. An output is a sum of two products with magnitudes below 4. A float32 reference has an error
 * of 4 * 2^-24 before it rounds the output, so atol is 1e-6 and rtol is one ulp of the dtype. In the second set of
 * values, every product and sum is exact, and the tolerance is zero. If a workload provides some of the inputs, the
 * tolerance is that of the first set.
 *
 * Tolerance without a cache. The frequency has a relative error of 1.5 * 2^-24 (roundings of the exponent, the power
 * and the quotient). The angle is the product of frequency and position, which adds a relative error of 2^-25. An angle
 * of 4096 radians thus has an error of 5e-4. A pair has a length of up to 2.83, so the error of an element is up to
 * 1.4e-3. The atol of 2.5e-3 leaves a margin, and is 0.125 % of an element of magnitude 2. This atol has a drawback:
 * some pairs rotate by less than 1e-3 in 4096 positions (the last few pairs of Llama 3.1), and a reference that copies
 * these pairs passes. In the second set of values, positions go up to 131072, and with a scale of 0.75, angles go up to
 * 174763 radians. The largest angle and the rounding errors are 43 times as large as in the first set: the elements of
 * a pair of length 2.83 have an error of up to 0.06 in float32. For elements of magnitude 2, atol is 0.08, which is 4 %
 * of the magnitude; for larger elements (input_values.h), atol is larger by the same factor. With positions up to
 * 131072, even pairs with a low frequency rotate far enough to detect a reference that copies them. The positions of a
 * workload are not known when the tolerance is computed. Therefore workloads have the tolerance of the first set, which
 * is right for positions below 4096.
 *
 * For a position outside the cache, the ground truth is NaN. Ragged forms (with indptr and offsets) and fp8 outputs are
 * refused by op.match. */
#include "kernels/rope/input_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/core/mistakes.h"
#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/core/published_models.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

enum { PARALLEL_FROM = 1 << 20 }; /* if there are fewer elements, one thread is faster than several */

static const char *const constant_names[ROPE_NUMBERS] = {"rope_theta", "rope_scale", "low_freq_factor",
                                                         "high_freq_factor", "old_context_len"};
static const char *const model_fields[ROPE_NUMBERS] = {"rope_theta", "rope_factor", "rope_low_freq_factor",
                                                       "rope_high_freq_factor", "rope_old_context_len"};
static const double llama31[ROPE_NUMBERS] = {5e5, 8, 1, 4, 8192}; /* the published values, which FlashInfer also uses */

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

static int match(const struct op_problem *problem, struct err *why)
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

/* The numbers of heads of q and k: just above 32 and 8, just above 64 and 32, both below 8, or both 1. In the first
 * three of these pairs of numbers, no number is a multiple of the other. */
static const int64_t head_counts[][ROPE_ROTATED] = {{37, 9}, {67, 34}, {5, 2}, {1, 1}};
enum { SOME_HEADS, MANY_HEADS, FEW_HEADS, LEAST_HEADS };

static void set_axes(const struct op_problem *problem, int64_t tokens, int64_t rows, int which, int64_t *axis)
{
	struct rope_roles roles = rope_roles_of(problem);
	const struct op_arg *q = &problem->inputs[roles.rotated[0]];

	op_start_axes(problem, 1, axis);
	if (q->rank == 3)
		op_set_axis(problem, q->axis[2], 128, axis);
	for (int r = 0; r < roles.count; r++) {
		const struct op_arg *x = &problem->inputs[roles.rotated[r]];

		if (x->rank == 3)
			op_set_axis(problem, x->axis[1], head_counts[which][r], axis);
	}
	if (roles.cache >= 0) {
		const struct op_arg *cache = &problem->inputs[roles.cache];

		op_set_axis(problem, cache->axis[0], rows, axis);
		op_set_axis(problem, cache->axis[1], axis[q->axis[q->rank - 1]] < 64 ? 2 : 64, axis);
	}
	op_set_axis(problem, q->axis[0], tokens, axis);
}

/* The second small case has BLOCK_TOKENS tokens, a multiple of the usual block sizes of kernels: 16, 32, 64, 128 and
 * 256. */
enum { BLOCK_TOKENS = 256 };

/* The first medium case has MOST_TOKENS tokens, and its cache has MOST_ROWS rows. MOST_ROWS is beyond the range of
 * int16, as in Qwen3. */
enum { MOST_TOKENS = 2 * BLOCK_TOKENS + 1, MOST_ROWS = 40960 };

/* If a token has at most GRID_ELEMENTS elements, there is a second medium case with GRID_TOKENS tokens. Many kernels
 * launch fewer than GRID_TOKENS blocks, so that a block must process several tokens. */
enum { GRID_TOKENS = 4097, GRID_ELEMENTS = 256 };

/* Returns the number of elements of a token in all rotated tensors. */
static int64_t elements_of_token(const struct op_problem *problem, const int64_t *axis)
{
	struct rope_roles roles = rope_roles_of(problem);
	int64_t elements = 0;

	for (int r = 0; r < roles.count; r++) {
		const struct op_arg *x = &problem->inputs[roles.rotated[r]];
		int64_t width = axis[x->axis[1]] * (x->rank == 3 ? axis[x->axis[2]] : 1);

		elements += width;
	}
	return elements;
}

/* Writes the cases of a size preset. Cases of few tokens have many heads, and cases of many tokens have few heads, so
 * that no case is much larger than the others. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const int64_t tokens[SIZE_COUNT][2] = {{1, BLOCK_TOKENS}, {MOST_TOKENS, GRID_TOKENS}, {65536, 0}},
			     rows[SIZE_COUNT][2] = {{64, 64}, {MOST_ROWS, 64}, {131072, 0}};
	static const int which[SIZE_COUNT][2] = {{SOME_HEADS, MANY_HEADS}, {FEW_HEADS, LEAST_HEADS}, {FEW_HEADS, 0}};
	int count = 0;

	(void)variant;
	for (int i = 0; i < 2 && tokens[size][i] > 0 && count < room; i++) {
		int64_t *row = axis + (int64_t)count * problem->axis_count;

		set_axes(problem, tokens[size][i], rows[size][i], which[size][i], row);
		count += tokens[size][i] != GRID_TOKENS || elements_of_token(problem, row) <= GRID_ELEMENTS;
	}
	return count;
}

/* The values of op_case.edge, in the order of the table `edges`. */
enum { EDGE_NO_TOKENS = 1, EDGE_FIRST_POSITION, EDGE_LAST_POSITION };

static const struct op_edge edges[] = {
    {"no_tokens", "if the input has no tokens, the output has no tokens"},
    {"first_position", "position 0 uses the first row of the cache; if there is no cache, position 0 is not rotated"},
    {"last_position", "the index of the last row of the cache is a valid position"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	return (edge != EDGE_LAST_POSITION || (variant & ROPE_CACHE)) &&
	       op_edge_rows(sizes, problem, variant, edge == EDGE_NO_TOKENS ? 0 : 5, axis);
}

/* Returns the number that follows the word "theta" in a text, or 0 if no number follows it. A few words such as "is
 * fixed at" may stand between "theta" and the number. */
static double theta_in(const char *text)
{
	for (const char *at = strstr(text, "theta"); at != NULL; at = strstr(at + 1, "theta")) {
		const char *number = at + 5 + strcspn(at + 5, "0123456789.,;\n");

		if (number - at > 24 || *number < '0' || *number > '9')
			continue;
		double value = strtod(number, NULL);

		if (value > 1 && value < 1e12)
			return value;
	}
	return 0;
}

static void attest(struct op_constant *constant, double value, const char *source)
{
	if (isnan(constant->value)) {
		constant->value = value;
		snprintf(constant->source, sizeof constant->source, "%s", source);
	} else if (constant->conflict[0] == '\0' && fabs(constant->value - value) > 1e-9 * fabs(value)) {
		snprintf(constant->conflict, sizeof constant->conflict, "%s is %g according to %s, but %g according to %s", constant->name,
		         constant->value, constant->source, value, source);
	}
}

static struct op_constant find_constant(const struct op_problem *problem, enum rope_number n, int variant)
{
	struct op_constant constant = {.value = NAN, .source = "unattested"};
	int axis = op_axis_index(problem, constant_names[n]);
	double value;

	snprintf(constant.name, sizeof constant.name, "%s", constant_names[n]);
	if (axis >= 0 && !problem->axes[axis].var)
		attest(&constant, (double)problem->axes[axis].value, "axis");
	if (n == ROPE_THETA && theta_in(problem->name) > 0)
		attest(&constant, theta_in(problem->name), "name");
	for (int i = 0; i < problem->tag_count; i++)
		if (strncmp(problem->tags[i], "model:", 6) == 0 &&
		    model_number(problem->tags[i] + 6, model_fields[n], &value))
			attest(&constant, value, problem->tags[i]);
	if (n == ROPE_THETA && problem->description != NULL && theta_in(problem->description) > 0)
		attest(&constant, theta_in(problem->description), "description");
	if ((variant & ROPE_LLAMA31) && isnan(constant.value))
		attest(&constant, llama31[n], "llama31, as published");
	return constant;
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	struct rope_roles roles = rope_roles_of(problem);
	int count = 0, last = variant & ROPE_LLAMA31 ? ROPE_OLD_CONTEXT : ROPE_THETA;

	for (int n = 0; n <= last && !(variant & ROPE_CACHE); n++)
		if (roles.number[n] < 0)
			out[count++] = find_constant(problem, (enum rope_number)n, variant);
	return count;
}

static struct rule rule(const struct op_case *c, int output)
{
	bool given = (c->given >> rope_roles_of(c->problem).positions & 1) != 0;
	bool far = c->contents == CONTENTS_SECOND && !given; /* a workload's positions are the same in both sets, so
							      * both sets get the atol of the first set */
	double atol = c->variant & ROPE_CACHE ? 1e-6 : far ? 0.08 : 2.5e-3;
	int rotated = rope_roles_of(c->problem).rotated[output];

	if ((c->variant & ROPE_CACHE) == 0 && (c->given >> rotated & 1) == 0)
		atol = ldexp(atol, rope_scale_exponent(c, rotated) - 1);

	if (rope_is_exact(c) && c->given == 0)
		return (struct rule){0, 0, 1};
	switch (c->problem->outputs[output].dtype) {
	case DTYPE_BFLOAT16:
		return (struct rule){atol, 0x1p-7, 1};
	case DTYPE_FLOAT16:
		return (struct rule){atol, 0x1p-10, 1};
	default:
		return (struct rule){atol, 1e-6, 1};
	}
}

static double number_left_out(int variant, int number)
{
	static const double plain[ROPE_NUMBERS] = {1e4, 1, 1, 4, 8192};

	return variant & ROPE_LLAMA31 ? llama31[number] : plain[number];
}

/* Returns the value of an absent parameter, which is the default in FlashInfer's signatures. */
static double scalar_left_out(const struct op_case *c, const struct rope_roles *roles, int input)
{
	for (int n = 0; n < ROPE_NUMBERS; n++)
		if (input == roles->number[n])
			return number_left_out(c->variant, n);
	if (input == roles->interleave || input == roles->is_neox)
		return input == roles->is_neox;
	return (double)rope_head_size(c->problem, c->axis);
}

/* For a Python scalar, returns a value that references are unlikely to hard-code. The two sets of values have different
 * numbers (theta, scale, …), different pairs and different rotary dimensions: half a head in one set, and three
 * quarters of a head in the other. A reference may cache a table of angles with one of its arguments as the key,
 * although the table also depends on the other arguments. To detect this, one argument is the same in both sets: the
 * pairs if there is one token, the scale if there are 2 to BLOCK_TOKENS tokens, and theta if there are more. If there
 * are several tokens, the numbers that differ between the sets have their default values in the second set, because a
 * reference may mistake a default, such as a scale of 1, for an absent number. */
static double scalar(const struct op_case *c, int input)
{
	static const double values[CONTENTS_COUNT][ROPE_NUMBERS] = {{30000, 3, 2, 5, 6000}, {2e6, 0.75, 0.75, 3, 11000}},
	                    llama_scale[CONTENTS_COUNT] = {6, 13};
	struct rope_roles roles = rope_roles_of(c->problem);
	int64_t size = rope_head_size(c->problem, c->axis), tokens = c->axis[c->problem->inputs[roles.positions].axis[0]];
	bool second = c->contents == CONTENTS_SECOND, other_pairs = second && tokens > 1;

	if (c->absent >> input & 1)
		return scalar_left_out(c, &roles, input);
	for (int n = 0; n < ROPE_NUMBERS; n++) {
		bool like_scale = n == ROPE_SCALE || n == ROPE_HIGH;
		bool same = like_scale ? tokens > 1 && tokens <= BLOCK_TOKENS : tokens > BLOCK_TOKENS;
		int set = second && !same ? CONTENTS_SECOND : CONTENTS_FIRST;

		if (input == roles.number[n] && set == CONTENTS_SECOND && tokens > 1)
			return number_left_out(c->variant, n);
		if (input == roles.number[n])
			return n == ROPE_SCALE && (c->variant & ROPE_LLAMA31) ? llama_scale[set] : values[set][n];
	}
	if (input == roles.interleave || input == roles.is_neox)
		return (tokens % 2 != 0) != other_pairs;
	if (input == roles.rotary_dim)
		return (double)(other_pairs && size >= 8 ? size / 8 * 6 : size >= 4 && !other_pairs ? size / 4 * 2 : size);
	return (double)size;
}

/* In both sets of values, positions reach the end of their range. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct rope_roles roles = rope_roles_of(problem);
	bool cached = (variant & ROPE_CACHE) != 0;

	if (problem->inputs[input].rank == OP_SCALAR)
		return false;
	if (input == roles.positions)
		*out = (struct op_range){0, cached ? MOST_ROWS - 1 : ROPE_FAR_POSITIONS - 1};
	else if (input == roles.cache)
		*out = (struct op_range){-0.99, 0.99};
	else
		*out = cached ? (struct op_range){-127, 127} : (struct op_range){-1.99, 1.99};
	return true;
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	struct rope_roles roles = rope_roles_of(problem);

	if (axis == problem->inputs[roles.positions].axis[0]) {
		int64_t row[OP_ARGS * OP_RANK], most = MOST_TOKENS;

		if (problem->axis_count <= (int)(sizeof row / sizeof *row)) {
			set_axes(problem, GRID_TOKENS, 64, LEAST_HEADS, row);
			most = elements_of_token(problem, row) <= GRID_ELEMENTS ? GRID_TOKENS : MOST_TOKENS;
		}
		return (struct op_reach){most, BLOCK_TOKENS};
	}
	for (int r = 0; r < roles.count; r++)
		if (problem->inputs[roles.rotated[r]].rank == 3 && axis == problem->inputs[roles.rotated[r]].axis[1])
			return (struct op_reach){head_counts[MANY_HEADS][r], 0};
	return (struct op_reach){
	    (variant & ROPE_CACHE) != 0 && axis == problem->inputs[roles.cache].axis[0] ? MOST_ROWS : 0, 0};
}

WIDE static void make_elements(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                               float *values)
{
	const struct rope_fill *f = recipe;

	(void)row;
	for (int64_t i = 0; i < count; i++)
		values[i] = rope_element(f, column + i, random[i]);
}

static void fill_positions(const struct op_case *c, const struct rope_fill *f, int64_t rows, struct tensor *out)
{
	for (int64_t i = 0; i < out->elements; i++) {
		int64_t position = rope_position(f, rows, i, philox_bits(f->key, i));

		position = c->edge == EDGE_FIRST_POSITION ? 0 : c->edge == EDGE_LAST_POSITION ? rows - 1 : position;
		dtype_store(out->data, out->dtype, i, (double)position);
	}
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct rope_roles roles = rope_roles_of(c->problem);
	struct rope_fill f = rope_fill_of(c, input);
	struct rope_extent e = rope_extent_of(c);
	int64_t rows = roles.cache >= 0                ? e.cache_rows
	               : c->contents == CONTENTS_SECOND ? ROPE_FAR_POSITIONS
	                                                : ROPE_POSITIONS;

	(void)err;
	if (input == roles.positions)
		fill_positions(c, &f, rows, out);
	else
		input_fill(out, f.key, f.probe ? f.head_size : out->elements, make_elements, &f);
	return 0;
}

static double number_of(const struct op_case *c, enum rope_number n)
{
	struct rope_roles roles = rope_roles_of(c->problem);

	if (roles.number[n] >= 0)
		return c->scalar[roles.number[n]];
	for (int i = 0; i < c->constant_count; i++)
		if (strcmp(c->constants[i].name, constant_names[n]) == 0)
			return c->constants[i].value;
	return 1; /* only the scale of the plain formula can be missing, because it is 1 by default */
}

/* The mistakes that the oracle simulates. */
enum mistake {
	NO_MISTAKE, HALF_EXPONENT, DOUBLE_EXPONENT, INVERSE, MULTIPLIED, ALL_SCALED, NONE_SCALED, MIXED_BACKWARDS, EXCHANGED,
	NO_MIXING, NO_TWO_PI, BACKWARDS, SINE_FOR_COSINE, ROUNDED_ANGLES, READ_OTHERWISE, WRITTEN_OTHERWISE, SECOND_FROM_ROTATED,
	SECOND_KEPT, LAST_ROTATED, REST_FIRST, REST_ZERO
};

/* Forms interleaved pairs instead of halves, or halves instead of interleaved pairs. Changes the scalar that selects
 * the pairs, or the variant if there is no such scalar. */
static bool other_pairs(struct op_variation *v, const struct op_mistake *mistake)
{
	struct rope_roles roles = rope_roles_of(v->c.problem);
	int scalar = roles.interleave >= 0 ? roles.interleave : roles.is_neox;

	(void)mistake;
	if (scalar >= 0)
		v->c.scalar[scalar] = v->c.scalar[scalar] == 0;
	else
		v->c.variant ^= ROPE_INTERLEAVED;
	return true;
}

static bool always_interleaved(struct op_variation *v, const struct op_mistake *mistake)
{
	return rope_interleaved(&v->c) == (mistake->by != 0) || other_pairs(v, mistake);
}

static bool whole_head(struct op_variation *v, const struct op_mistake *mistake)
{
	int at = variation_input(v, mistake->role);

	if (at < 0)
		return false;
	v->c.scalar[at] = (double)rope_head_size(v->c.problem, v->c.axis);
	v->c.absent &= ~(UINT64_C(1) << at);
	return true;
}

/* Increases every position by 1. If there is a cache, the position after its last row becomes 0. */
static bool next_position(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *positions = variation_change(v, variation_input(v, mistake->role));
	int64_t rows = rope_extent_of(&v->c).cache_rows;

	for (int64_t i = 0; positions != NULL && rows > 0 && i < positions->elements; i++)
		dtype_store(positions->data, positions->dtype, i,
			    fmod(dtype_load(positions->data, positions->dtype, i) + 1, (double)rows));
	return positions != NULL && rows > 0;
}

/* Converts positions to 16-bit integers. If there is a cache, takes the result modulo the number of rows of the
 * cache. */
static bool short_positions(struct op_variation *v, const struct op_mistake *mistake)
{
	struct tensor *positions = variation_change(v, variation_input(v, mistake->role));
	int64_t rows = rope_extent_of(&v->c).cache_rows;

	for (int64_t i = 0; positions != NULL && i < positions->elements; i++) {
		int64_t value = (int16_t)(uint16_t)((int64_t)dtype_load(positions->data, positions->dtype, i) & 0xffff);

		value = rows > 0 ? (value % rows + rows) % rows : value;
		dtype_store(positions->data, positions->dtype, i, (double)value);
	}
	return positions != NULL;
}

static bool half_head(struct op_variation *v, const struct op_mistake *mistake)
{
	struct op_mistake half = *mistake;

	half.by = (double)(rope_head_size(v->c.problem, v->c.axis) / 2);
	return before_set(v, &half);
}

static const struct op_mistake mistakes[] = {
    {.says = "pairs were formed the wrong way: halves instead of interleaved, or interleaved instead of halves", .before = other_pairs},
    {.says = "pairs were always interleaved", .before = always_interleaved, .by = 1},
    {.says = "pairs were always halves", .before = always_interleaved, .by = 0},
    {.says = "pairs were rotated by the negative angle", .in_oracle = BACKWARDS},
    {.says = "sine and cosine were exchanged", .in_oracle = SINE_FOR_COSINE},
    {.says = "the exponent of theta was doubled", .in_oracle = HALF_EXPONENT},
    {.says = "the exponent of theta was halved", .in_oracle = DOUBLE_EXPONENT},
    {.says = "frequencies were multiplied by the scale, not divided", .in_oracle = MULTIPLIED},
    {.says = "every frequency was divided by the scale", .in_oracle = ALL_SCALED},
    {.says = "the frequencies were not divided by the scale", .in_oracle = NONE_SCALED},
    {.says = "where a scaled and an unscaled frequency are mixed, their weights were swapped", .in_oracle = MIXED_BACKWARDS},
    {.says = "frequencies were theta^(2i/d), not theta^(-2i/d)", .in_oracle = INVERSE},
    {.says = "the frequencies of short wavelengths were scaled, and those of long wavelengths were not", .in_oracle = EXCHANGED},
    {.says = "no frequency was a mix of a scaled and an unscaled frequency", .in_oracle = NO_MIXING},
    {.says = "wavelengths lacked the factor 2 pi", .in_oracle = NO_TWO_PI},
    {.says = "angles were rounded to bfloat16", .in_oracle = ROUNDED_ANGLES},
    {.says = "pairs were read the wrong way (halves instead of interleaved, or the reverse), but written the right way", .in_oracle = READ_OTHERWISE},
    {.says = "pairs were written the wrong way (halves instead of interleaved, or the reverse), but read the right way", .in_oracle = WRITTEN_OTHERWISE},
    {.says = "the second element of a pair was computed from the rotated first element, not from the original one", .in_oracle = SECOND_FROM_ROTATED},
    {.says = "the second element of a pair was not rotated", .in_oracle = SECOND_KEPT},
    {.says = "the last elements of a head were rotated, not the first", .in_oracle = LAST_ROTATED},
    {.says = "the elements that are not rotated were placed first", .in_oracle = REST_FIRST},
    {.says = "the elements that are not rotated were set to 0", .in_oracle = REST_ZERO},
    {.says = "theta was always 10000", .before = before_set, .role = "theta", .by = 10000},
    {.says = "the next row of the cache was read", .before = next_position, .role = "positions"},
    {.says = "positions were 16-bit integers", .before = short_positions, .role = "positions"},
    {.says = "positions were limited to 4095", .before = before_most, .role = "positions", .by = 4095},
    {.says = "positions were limited to 8191", .before = before_most, .role = "positions", .by = 8191},
    {.says = "positions were limited to 32767", .before = before_most, .role = "positions", .by = 32767},
    {.says = "half of the head was rotated, whatever rotary_dim is", .before = half_head, .role = "rotary_dim"},
    {.says = "every position was 0", .before = before_set, .role = "positions", .by = 0},
    {.says = "positions were the tokens' indices in the batch", .before = before_iota, .role = "positions"},
    {.says = "positions were one too large", .before = before_add, .role = "positions", .by = 1},
    {.says = "positions were one too small", .before = before_add, .role = "positions", .by = -1},
    {.says = "rotary_dim was ignored: the whole head is rotated", .before = whole_head, .role = "rotary_dim"},
    {.says = "k was not rotated", .after = after_input, .role = "k_out", .other = "k"},
    {.says = "q was not rotated", .after = after_input, .role = "q_out", .other = "q"},
    {.says = NULL},
};

/* Returns the frequency of pair i, in radians per position. */
static double frequency(const struct op_case *c, int64_t i, int64_t rotary_dim)
{
	double power = c->mistake == HALF_EXPONENT ? 2 : c->mistake == DOUBLE_EXPONENT ? 0.5 : c->mistake == INVERSE ? -1 : 1;
	double plain = pow(number_of(c, ROPE_THETA), -2.0 * power * (double)i / (double)rotary_dim);
	double scaled = c->mistake == MULTIPLIED ? plain * number_of(c, ROPE_SCALE) : plain / number_of(c, ROPE_SCALE);

	if (c->mistake == ALL_SCALED || c->mistake == NONE_SCALED)
		return c->mistake == ALL_SCALED ? scaled : plain;

	if (!(c->variant & ROPE_LLAMA31))
		return scaled;
	double low = number_of(c, ROPE_LOW), high = number_of(c, ROPE_HIGH), old = number_of(c, ROPE_OLD_CONTEXT);
	double wavelength = (c->mistake == NO_TWO_PI ? 1 : 2 * 3.14159265358979323846) / plain;

	if (wavelength < old / high)
		return c->mistake == EXCHANGED ? scaled : plain;
	if (wavelength > old / low)
		return c->mistake == EXCHANGED ? plain : scaled;
	double smooth = (old / wavelength - low) / (high - low);

	smooth = c->mistake == MIXED_BACKWARDS || c->mistake == EXCHANGED ? 1 - smooth : smooth;
	smooth = c->mistake == NO_MIXING ? smooth >= 0.5 : smooth;
	return (1 - smooth) * scaled + smooth * plain;
}

/* Computes cos and sin of every pair for one token. Both are NaN if the token's position is outside the cache. */
static void angles(const struct op_case *c, const struct rope_extent *e, const struct tensor *in,
                   const double *frequencies, int64_t token, double *cosine, double *sine)
{
	struct rope_roles roles = rope_roles_of(c->problem);
	const struct tensor *at = &in[roles.positions];
	int64_t half = e->rotary_dim / 2;
	int64_t position =
	    at->dtype == DTYPE_INT64 ? ((const int64_t *)at->data)[token] : ((const int32_t *)at->data)[token];

	for (int64_t i = 0; i < half; i++) {
		if (roles.cache < 0) {
			double angle = (double)position * frequencies[i];

			if (c->mistake == ROUNDED_ANGLES)
				angle = (double)float_from_bf16(bf16_from_float((float)angle));
			cosine[i] = cos(angle);
			sine[i] = sin(angle);
		} else if (position < 0 || position >= e->cache_rows) {
			cosine[i] = sine[i] = NAN;
		} else {
			const struct tensor *cache = &in[roles.cache];

			cosine[i] = dtype_load(cache->data, cache->dtype, position * e->rotary_dim + i);
			sine[i] = dtype_load(cache->data, cache->dtype, position * e->rotary_dim + half + i);
		}
	}
}

static void mistake_angles(const struct op_case *c, int64_t half, double *cosine, double *sine)
{
	for (int64_t i = 0; i < half && c->mistake == BACKWARDS; i++)
		sine[i] = -sine[i];
	for (int64_t i = 0; i < half && c->mistake == SINE_FOR_COSINE; i++) {
		double kept = sine[i];

		sine[i] = cosine[i];
		cosine[i] = kept;
	}
}

static void rotate_head(double *x, double *y, const struct rope_extent *e, bool interleaved, const double *cosine,
                        const double *sine)
{
	int64_t half = e->rotary_dim / 2;

	for (int64_t i = 0; i < half; i++) {
		int64_t left = interleaved ? 2 * i : i, right = interleaved ? 2 * i + 1 : i + half;

		y[left] = x[left] * cosine[i] - x[right] * sine[i];
		y[right] = x[right] * cosine[i] + x[left] * sine[i];
	}
	for (int64_t i = e->rotary_dim; i < e->head_size; i++)
		y[i] = x[i];
}

/* Rotates one head as a reference with the mistake does. The mistake changes the positions at which elements are read
 * or written, or the second element of each pair, or the copied elements. */
static void mistaken_head(double *x, double *y, const struct rope_extent *e, bool interleaved, const double *cosine,
			  const double *sine, int mistake)
{
	int64_t half = e->rotary_dim / 2, rest = e->head_size - e->rotary_dim, from = mistake == LAST_ROTATED ? rest : 0;
	int64_t to = mistake == LAST_ROTATED || mistake == REST_FIRST ? rest : 0;
	bool reads = interleaved != (mistake == READ_OTHERWISE), writes = interleaved != (mistake == WRITTEN_OTHERWISE);

	for (int64_t i = 0; i < half; i++) {
		double first = x[from + (reads ? 2 * i : i)], second = x[from + (reads ? 2 * i + 1 : i + half)];
		double rotated = first * cosine[i] - second * sine[i];

		y[to + (writes ? 2 * i : i)] = rotated;
		y[to + (writes ? 2 * i + 1 : i + half)] =
		    mistake == SECOND_KEPT ? second
					   : second * cosine[i] + (mistake == SECOND_FROM_ROTATED ? rotated : first) * sine[i];
	}
	for (int64_t i = 0; i < rest; i++)
		y[to == 0 ? e->rotary_dim + i : i] = mistake == REST_ZERO ? 0 : x[from == 0 ? e->rotary_dim + i : i];
}

/* Checks the Python scalars that a workload provides. */
static int check_arguments(const struct op_case *c, const struct rope_roles *roles, struct err *err)
{
	int64_t size = rope_head_size(c->problem, c->axis);
	char what[160];

	for (int n = 0; n < ROPE_NUMBERS; n++)
		if (check_scalar(c, roles->number[n], 0x1p-1074, 1e300,
		                 "each parameter of the rotary frequencies must be above 0", err) != 0)
			return -1;
	if (check_is_number(c, roles->number[ROPE_LOW]) && check_is_number(c, roles->number[ROPE_HIGH]) &&
	    c->scalar[roles->number[ROPE_LOW]] == c->scalar[roles->number[ROPE_HIGH]])
		return err_set(err, "inputs '%s' and '%s' are both %g; they must differ, because frequencies are "
				    "divided by the difference",
		               c->problem->inputs[roles->number[ROPE_LOW]].name,
		               c->problem->inputs[roles->number[ROPE_HIGH]].name,
		               c->scalar[roles->number[ROPE_LOW]]);
	snprintf(what, sizeof what, "the rotary dimension must be even and at most the head size "
				    "%lld", (long long)size);
	if (check_scalar(c, roles->rotary_dim, 0, (double)size, what, err) != 0)
		return -1;
	if (check_is_number(c, roles->rotary_dim) && fmod(c->scalar[roles->rotary_dim], 2) != 0)
		return err_set(err, "input '%s' is %g; %s", c->problem->inputs[roles->rotary_dim].name,
		               c->scalar[roles->rotary_dim], what);
	return 0;
}

/* Checks that positions are rows of the cache. Without a cache, any integer is a valid position. */
static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct rope_roles roles = rope_roles_of(c->problem);
	int64_t rows = rope_extent_of(c).cache_rows;
	char what[160];

	if (check_arguments(c, &roles, err) != 0)
		return -1;
	if (roles.cache >= 0) {
		snprintf(what, sizeof what, "a position must be the index of a row of the cache, which has %lld "
					    "rows", (long long)rows);
		if (check_integers(c, in, roles.positions, 0, rows - 1, what, err) != 0)
			return -1;
	}
	return check_all_finite(c, in, err);
}

/* Rotates all heads of one token. `scratch` is working memory for two heads. */
static void rotate_token(const struct op_case *c, const struct rope_extent *e, const struct tensor *in,
                         struct tensor *out, int64_t token, const double *cosine, const double *sine, double *scratch)
{
	struct rope_roles roles = rope_roles_of(c->problem);
	bool interleaved = rope_interleaved(c) != 0;

	for (int r = 0; r < roles.count; r++)
		for (int64_t head = 0; head < e->heads[r]; head++) {
			int64_t first = (token * e->heads[r] + head) * e->head_size;
			const struct tensor *x = &in[roles.rotated[r]];
			struct tensor *y = &out[roles.output[r]];

			dtype_load_run(x->data, x->dtype, first, e->head_size, scratch);
			if (c->mistake >= READ_OTHERWISE)
				mistaken_head(scratch, scratch + e->head_size, e, interleaved, cosine, sine, c->mistake);
			else
				rotate_head(scratch, scratch + e->head_size, e, interleaved, cosine, sine);
			dtype_store_run(y->data, y->dtype, first, e->head_size, scratch + e->head_size);
		}
}

static int check_widths(const struct rope_extent *e, struct err *err)
{
	if (e->head_size < 1 || e->rotary_dim < 0 || e->rotary_dim > e->head_size || e->rotary_dim % 2 != 0)
		return err_set(err, "rope: a rotary dimension of %lld does not fit a head of %lld elements",
		               (long long)e->rotary_dim, (long long)e->head_size);
	return 0;
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct rope_extent e = rope_extent_of(c);
	int64_t half = e.rotary_dim / 2;

	if (check_widths(&e, err) != 0)
		return -1;
	double *frequencies = take(half, sizeof *frequencies);

	for (int64_t i = 0; i < half && !(c->variant & ROPE_CACHE); i++)
		frequencies[i] = frequency(c, i, e.rotary_dim);
#pragma omp parallel if (out[0].elements >= PARALLEL_FROM)
	{
		double *cosine = take(2 * half + 2 * e.head_size, sizeof *cosine);
		double *sine = cosine + half, *scratch = sine + half;

#pragma omp for
		for (int64_t token = 0; token < e.tokens; token++) {
			angles(c, &e, in, frequencies, token, cosine, sine);
			mistake_angles(c, half, cosine, sine);
			rotate_token(c, &e, in, out, token, cosine, sine, scratch);
		}
		free(cosine);
	}
	free(frequencies);
	return 0;
}

static void probe_axes(const struct op_problem *problem, int variant, int64_t *axis)
{
	(void)variant;
	set_axes(problem, 4, 64, FEW_HEADS, axis);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns a round number that differs from the estimate by at most 1 %, or 0 if there is none. */
static double round_theta(double estimate)
{
	static const double heads[] = {1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9};

	for (double power = 10; power < 1e12; power *= 10)
		for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
			if (fabs(estimate - heads[i] * power) < 0.01 * heads[i] * power)
				return heads[i] * power;
	return 0;
}

/* Recovers theta. At position 1, the pair (1, 0) becomes (cos f, sin f), with f = theta^(-2i/R), so theta = f^(-R/2i).
 * The slower half of the pairs determines theta with an error below 1 %. */
static int probe(const struct op_case *c, const struct tensor *in, const struct tensor *out, struct op_constant *found,
                 struct err *err)
{
	struct rope_extent e = rope_extent_of(c);
	const struct tensor *y = &out[rope_roles_of(c->problem).output[0]];
	int64_t half = e.rotary_dim / 2, count = 0;
	double scale = number_of(c, ROPE_SCALE);

	(void)in;
	if (check_widths(&e, err) != 0)
		return -1;
	double *estimates = take(half, sizeof *estimates);

	for (int64_t i = half / 2 + 1; i < half; i++) {
		bool interleaved = rope_interleaved(c) != 0;
		double a = dtype_load(y->data, y->dtype, interleaved ? 2 * i : i);
		double b = dtype_load(y->data, y->dtype, interleaved ? 2 * i + 1 : i + half);
		double f = atan2(b, a) * scale;

		if (f > 0 && f < 1)
			estimates[count++] = pow(f, -(double)half / (double)i);
	}
	qsort(estimates, (size_t)count, sizeof *estimates, by_value);
	double median = count > 0 ? estimates[count / 2] : 0, theta = count * 2 > half / 2 ? round_theta(median) : 0;

	free(estimates);
	if (theta == 0)
		return err_set(
		    err,
		    "rope: the reference's theta cannot be determined exactly (it is about %.4g); state its exact value in the "
		    "description, as in \"theta is 10000\"",
		    median);
	for (int i = 0; i < c->constant_count; i++)
		if (isnan(found[i].value))
			found[i].value = theta;
	return 0;
}

static const char *const op_types[] = {"rope", NULL};
static const char *const op_words[] = {"rope", "rotary_embedding", "rotary_position_embedding", "apply_rope", NULL};

static const struct op_role roles[] = {
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

static void bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct rope_roles *)out = rope_roles_of(problem);
}

static const struct op_mode modes[] = {
    {"interleaved", ROPE_INTERLEAVED, ROPE_INTERLEAVED},
    {"llama31", ROPE_LLAMA31, ROPE_LLAMA31},
    {NULL, 0, 0},
};

static double pairs(const struct coverage_view *view, const struct op_coverage *row)
{
	(void)row;
	return rope_interleaved(view->c);
}

static double rotated_part(const struct coverage_view *view, const struct op_coverage *row)
{
	const struct rope_extent e = rope_extent_of(view->c);

	(void)row;
	return e.head_size > 0 ? (double)e.rotary_dim / (double)e.head_size : (double)NAN;
}

static const struct op_coverage coverage[] = {
    {"pairs", pairs,
     .values = {{"halves", 0, 0, "rotates halves (NeoX)"}, {"neighbours", 1, 1, "rotates neighbours (interleaved)"}}},
    {"rotated part", rotated_part,
     .values = {{"whole head", 1, 1, "rotates whole heads"}, {"part", 0, 0.9999, "rotates a part of each head"}}},
    COVERAGE_OPTION("angles", "cos_sin_cache", "cached", "has a cache of cosines and sines", "computed",
		    "computes the angles"),
    {"scaling", coverage_switch, .other = "llama31",
     .values = {{"Llama 3.1", 1, 1, "scales frequencies as Llama 3.1"}, {"none", 0, 0, "has unscaled frequencies"}}},
    COVERAGE_OPTION("k", "k", "rotated", "rotates q and k", "none", "rotates one tensor alone"),
    {"heads axis", coverage_rank, .role = "q",
     .values = {{"own", 3, 3, "has an axis of heads"}, {"flat", 2, 2, "has heads and their elements in one axis"}}},
    COVERAGE_DTYPES("q"),
    {.name = NULL},
};

const struct op rope_op = {
    .name = "rope",
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
    .constants = constants,
    .rule = rule,
    .in_place = op_in_place_namesake,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .probe = probe,
    .probe_axes = probe_axes,
};
