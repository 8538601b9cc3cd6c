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
#include "kernels/core/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/core/coverage.h"
#include "kernels/core/published_models.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"
#include "kernels/rope/input_values.h"
#include "kernels/rope/mistakes.h"
#include "kernels/rope/oracle.h"
#include "kernels/rope/roles.h"

static const char *const model_fields[ROPE_NUMBERS] = {"rope_theta", "rope_factor", "rope_low_freq_factor",
                                                       "rope_high_freq_factor", "rope_old_context_len"};
static const double llama31[ROPE_NUMBERS] = {5e5, 8, 1, 4, 8192}; /* the published values, which FlashInfer also uses */

/* The numbers of heads of q and k: just above 32 and 8, just above 64 and 32, both below 8, or both 1. In the first
 * three of these pairs of numbers, neither number is a multiple of the other. */
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

/* The first medium case has MOST_TOKENS tokens, and its cache has MOST_ROWS rows. MOST_ROWS, the number of positions of
 * Qwen3, is beyond the range of int16. */
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
	int axis = op_axis_index(problem, rope_number_names[n]);
	double value;

	snprintf(constant.name, sizeof constant.name, "%s", rope_number_names[n]);
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

/* Returns the rotary dimension of a case: a quarter, half or three quarters of a head. Only cases of GRID_TOKENS tokens
 * have another rotary dimension in the second set. */
static int64_t rotary_dim_of(int64_t size, int64_t tokens, bool second)
{
	int64_t eighths = tokens == 1 ? 2 : tokens <= BLOCK_TOKENS || (tokens == GRID_TOKENS && second) ? 6 : 4;

	return size >= 8 ? size / 8 * eighths : size >= 4 ? size / 4 * 2 : size;
}

/* For a Python scalar, returns a value that references are unlikely to hard-code. The two sets of values have different
 * numbers (theta, scale, …), and one has interleaved pairs, the other halves. A reference may cache a table of angles
 * with some of its arguments as the key, although the table also depends on the other arguments. To detect this, some
 * arguments are nevertheless the same in both sets: the kind of pairs and the rotary dimension if there is one token;
 * the scale and the rotary dimension if there are 2 to BLOCK_TOKENS tokens; theta and the rotary dimension if there are
 * more; and all numbers if there are GRID_TOKENS tokens. If there are several tokens, the numbers that differ between
 * the sets have their default values in the second set, because a reference may mistake a default, such as a scale of
 * 1, for an absent number. */
static double scalar(const struct op_case *c, int input)
{
	static const double values[CONTENTS_COUNT][ROPE_NUMBERS] = {{30000, 2.5, 2, 5, 6000}, {2e6, 0.75, 0.75, 3, 11000}},
	                    llama_scale[CONTENTS_COUNT] = {6.5, 13};
	struct rope_roles roles = rope_roles_of(c->problem);
	int64_t size = rope_head_size(c->problem, c->axis), tokens = c->axis[c->problem->inputs[roles.positions].axis[0]];
	bool second = c->contents == CONTENTS_SECOND, other_pairs = second && tokens > 1;

	if (c->absent >> input & 1)
		return scalar_left_out(c, &roles, input);
	for (int n = 0; n < ROPE_NUMBERS; n++) {
		bool like_scale = n == ROPE_SCALE || n == ROPE_HIGH;
		bool same = tokens == GRID_TOKENS || (like_scale ? tokens > 1 && tokens <= BLOCK_TOKENS : tokens > BLOCK_TOKENS);
		int set = second && !same ? CONTENTS_SECOND : CONTENTS_FIRST;

		if (input == roles.number[n] && set == CONTENTS_SECOND && tokens > 1)
			return number_left_out(c->variant, n);
		if (input == roles.number[n])
			return n == ROPE_SCALE && (c->variant & ROPE_LLAMA31) ? llama_scale[set] : values[set][n];
	}
	if (input == roles.interleave || input == roles.is_neox)
		return (tokens % 2 != 0) != other_pairs;
	if (input == roles.rotary_dim)
		return (double)rotary_dim_of(size, tokens, second);
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
		*out = (struct op_range){-1.98, 1.98};
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
	double scale = rope_number_of(c, ROPE_SCALE);

	(void)in;
	if (rope_check_widths(&e, err) != 0)
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
    .match = rope_match,
    .roles = rope_role_names,
    .bind = rope_bind,
    .mistakes = rope_mistakes,
    .modes = rope_mode_names,
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
    .check = rope_check,
    .oracle = rope_oracle,
    .probe = probe,
    .probe_axes = probe_axes,
};
