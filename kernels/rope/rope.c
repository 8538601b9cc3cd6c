/* rope - rotary position embedding of q and k (or of one tensor alone).
 *
 *   (a, b) of one pair -> (a cos - b sin, b cos + a sin), the angle being that of the token's position and the pair i
 *
 * Pairs: elements i and i + R/2 of a head ("neox", halves), or 2i and 2i + 1 (interleaved), among its first R (the
 * rotary dimension); the others are copied. q and k: [tokens, heads, D] or flat, [tokens, heads * D]; positions:
 * [tokens].
 *   with a cache [rows, R]: cos in columns 0 … R/2 - 1 of the position's row, sin in the others
 *   without: angle = position f(i), f(i) = theta^(-2i/R) / scale; Llama 3.1: with w = 2 pi theta^(2i/R) the wavelength,
 *     f = theta^(-2i/R) where w < old / high, theta^(-2i/R) / scale where w > old / low, and between them s parts of
 *     the first and 1 - s of the second, s = (old / w - low) / (high - low)
 * FlashInfer's rope.apply_rope_with_cos_sin_cache, apply_rope_pos_ids and apply_llama31_rope_pos_ids are of this form.
 *
 * Which pairs: a Python scalar (`interleave`, `is_neox`) says, else the name ("interleave", "gptj"), else halves, which
 * is what FlashInfer does when nobody says. Llama 3.1: the name or the fi_api tag says so, or `low_freq_factor` is
 * given. Hidden constants: theta; scale, low, high and old for Llama 3.1. Each is attested by a Python scalar, a const
 * axis, the name ("theta500000"), the model or the description; Llama 3.1's are what it was published with. theta is
 * probed if nothing speaks: at position 1, the pair (1, 0) answers with its frequency.
 *
 * Bound. An output is a sum of two products below 4 in magnitude. With a cache, a reference in float32 is off by 4
 * 2^-24 before its one rounding: atol 1e-6, rtol one place of the dtype; in the second contents it is off by nothing, and
 * the bound is zero unless a workload gives some of the inputs. Without a cache, its angle is off by the rounding of
 * the frequency (1.5 2^-24 of it: of the exponent, of the power, of the quotient) and of the product (2^-25), both
 * times up to 4096 radians: 5e-4, on a pair of length up to 2.83. atol 2.5e-3 leaves room for half as much again; it is
 * 0.2 % of an element's size. The price is that pairs which turn by less than 1e-3 in 4096 positions (the last few of
 * Llama 3.1) might as well be copied. In the second contents positions go up to 131072 and atol to 32 times that, 0.08,
 * for the reference's own rounding is as much larger: 4 % of an element's size, and those slow pairs turn by as much.
 * Positions of a workload are not known here; they have the bound of the first contents, as positions below 4096 need it.
 *
 * A position outside the cache has no truth: NaN. Left out: ragged forms (indptr and offsets), fp8 outputs. */
#include "kernels/rope/inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/check.h"
#include "kernels/models.h"
#include "kernels/wide.h"

enum { PARALLEL_FROM = 1 << 20 }; /* elements from which threads are worth their start */

static const char *const constant_names[ROPE_NUMBERS] = {"rope_theta", "rope_scale", "low_freq_factor",
                                                         "high_freq_factor", "old_context_len"};
static const char *const model_fields[ROPE_NUMBERS] = {"rope_theta", "rope_factor", "rope_low_freq_factor",
                                                       "rope_high_freq_factor", "rope_old_context_len"};
static const double llama31[ROPE_NUMBERS] = {5e5, 8, 1, 4, 8192}; /* as published, and as FlashInfer has them */

static bool known_dtype(enum dtype dtype)
{
	return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

static bool same_shape(const struct op_arg *a, const struct op_arg *b)
{
	if (a->rank != b->rank)
		return false;
	for (int d = 0; d < a->rank; d++)
		if (a->axis[d] != b->axis[d])
			return false;
	return true;
}

static bool speaks_of(const struct op_problem *problem, const char *part)
{
	if (strstr(problem->name, part) != NULL)
		return true;
	for (int i = 0; i < problem->tag_count; i++)
		if (strncmp(problem->tags[i], "fi_api:", 7) == 0 && strstr(problem->tags[i], part) != NULL)
			return true;
	return false;
}

/* One input that is a scalar must be one that is known. */
static int match_scalar(const struct op_problem *problem, const struct rope_roles *roles, int input, struct err *why)
{
	bool known = input == roles->rotary_dim || input == roles->style || input == roles->head_size;

	for (int n = 0; n < ROPE_NUMBERS; n++)
		known |= input == roles->number[n];
	if (known)
		return 0;
	return err_set(why, "input '%s' is a Python scalar that is no parameter of a rotation",
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
		           : err_set(why, "input '%s' is %s %s, expected positions: one int32 or int64 for each token",
		                     arg->name, dtype_name(arg->dtype), shape);
	if (input != roles->cache && input != roles->rotated[0] && input != roles->rotated[1])
		return err_set(why, "input '%s' of shape %s is one tensor more than positions, a cache, q and k",
		               arg->name, shape);
	if (!known_dtype(arg->dtype))
		return err_set(why, "input '%s' is %s, expected float32, float16 or bfloat16", arg->name,
		               dtype_name(arg->dtype));
	if (input == roles->cache && arg->rank != 2)
		return err_set(why, "input '%s' has shape %s, expected [positions, rotary dimension]", arg->name,
		               shape);
	if (input != roles->cache && arg->rank > 3)
		return err_set(why, "input '%s' has shape %s, expected [tokens, heads, size of a head]", arg->name,
		               shape);
	return 0;
}

static int match_outputs(const struct op_problem *problem, const struct rope_roles *roles, struct err *why)
{
	if (roles->positions < 0 || roles->count == 0)
		return err_set(why, "expected integer positions and at least one tensor with a row for each of them");
	if (problem->output_count != roles->count)
		return err_set(why, "it has %d outputs, expected %d: what is rotated", problem->output_count,
		               roles->count);
	for (int r = 0; r < roles->count; r++) {
		const struct op_arg *x = &problem->inputs[roles->rotated[r]], *y = &problem->outputs[r];

		if (!same_shape(x, y) || !known_dtype(y->dtype))
			return err_set(why, "output '%s' has not the shape of input '%s', or is no float", y->name,
			               x->name);
		if (x->rank != problem->inputs[roles->rotated[0]].rank)
			return err_set(why, "input '%s' lies flat and another does not", x->name);
	}
	return 0;
}

/* 0 for a var axis. */
static int64_t fixed(const struct op_problem *problem, int axis)
{
	return problem->axes[axis].var ? 0 : problem->axes[axis].value;
}

/* Head size and rotary dimension as far as const axes give them. */
static int match_widths(const struct op_problem *problem, const struct rope_roles *roles, struct err *why)
{
	const struct op_arg *q = &problem->inputs[roles->rotated[0]];
	int64_t zeros[OP_ARGS * OP_RANK] = {0}, size, rotary;
	int axis = op_axis_index(problem, "rotary_dim");

	if (problem->axis_count > (int)(sizeof zeros / sizeof *zeros))
		return err_set(why, "it has %d axes", problem->axis_count);
	for (int i = 0; i < problem->axis_count; i++)
		zeros[i] = fixed(problem, i);
	size = rope_head_size(problem, zeros);
	rotary = roles->cache >= 0 ? zeros[problem->inputs[roles->cache].axis[1]] : axis >= 0 ? zeros[axis] : size;
	if (q->rank == 2 && size == 0)
		return err_set(why, "'%s' lies flat, and no const axis 'head_size' says how wide a head is", q->name);
	for (int r = 0; r < roles->count && q->rank == 2; r++) {
		int64_t width = fixed(problem, problem->inputs[roles->rotated[r]].axis[1]);

		if (width == 0 || width % size != 0)
			return err_set(why, "'%s' lies flat, and its width is no const multiple of the head size %lld",
			               problem->inputs[roles->rotated[r]].name, (long long)size);
	}
	if (rotary % 2 != 0 || (size > 0 && rotary > size))
		return err_set(why, "the rotary dimension is %lld, expected an even number up to the head size %lld",
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
	if (roles.style >= 0)
		variant |= ROPE_STYLE_GIVEN;
	else if (strstr(problem->name, "interleave") != NULL || strstr(problem->name, "gptj") != NULL)
		variant |= ROPE_INTERLEAVED;
	return variant;
}

static int64_t if_var(const struct op_problem *problem, int axis, int64_t value)
{
	return problem->axes[axis].var ? value : problem->axes[axis].value;
}

/* Heads of q and k, no multiples of each other: more queries than 32 and keys than 8; more than 64 and 32; fewer than 8. */
static const int64_t head_counts[][ROPE_ROTATED] = {{37, 9}, {67, 34}, {5, 2}};
enum { SOME_HEADS, MANY_HEADS, FEW_HEADS };

static void set_axes(const struct op_problem *problem, int64_t tokens, int64_t rows, int which, int64_t *axis)
{
	struct rope_roles roles = rope_roles_of(problem);
	const struct op_arg *q = &problem->inputs[roles.rotated[0]];

	for (int i = 0; i < problem->axis_count; i++)
		axis[i] = if_var(problem, i, 1);
	if (q->rank == 3)
		axis[q->axis[2]] = if_var(problem, q->axis[2], 128);
	for (int r = 0; r < roles.count; r++) { /* the last token axis wins */
		const struct op_arg *x = &problem->inputs[roles.rotated[r]];

		if (x->rank == 3)
			axis[x->axis[1]] = if_var(problem, x->axis[1], head_counts[which][r]);
	}
	if (roles.cache >= 0) {
		const struct op_arg *cache = &problem->inputs[roles.cache];

		axis[cache->axis[0]] = if_var(problem, cache->axis[0], rows);
		axis[cache->axis[1]] = if_var(problem, cache->axis[1], axis[q->axis[q->rank - 1]] < 64 ? 2 : 64);
	}
	axis[q->axis[0]] = if_var(problem, q->axis[0], tokens);
}

/* Tokens of the medium case, beyond 256 and 300; rows of its cache: more than int16 counts, as many as Qwen3 has. */
enum { MOST_TOKENS = 321, MOST_ROWS = 40960 };

/* Few tokens have many heads, and many tokens few: no case is much larger than another. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const int64_t tokens[SIZE_COUNT][2] = {{1, 16}, {MOST_TOKENS, 0}, {65536, 0}},
			     rows[] = {64, MOST_ROWS, 131072};
	static const int which[SIZE_COUNT][2] = {{SOME_HEADS, MANY_HEADS}, {FEW_HEADS, 0}, {FEW_HEADS, 0}};
	int count = 0;

	(void)variant;
	for (int i = 0; i < 2 && tokens[size][i] > 0 && count < room; i++)
		set_axes(problem, tokens[size][i], rows[size], which[size][i], axis + (int64_t)count++ * problem->axis_count);
	return count;
}

/* The cases of --edge; op_case.edge is one of these. */
enum { EDGE_NO_TOKENS = 1, EDGE_FIRST_POSITION, EDGE_LAST_POSITION };

static const struct op_edge edges[] = {
    {"no_tokens", "no tokens in, no tokens out"},
    {"first_position", "position 0 takes the first row of the cache; without one it does not turn at all"},
    {"last_position", "the last row of the cache can be had"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	return (edge != EDGE_LAST_POSITION || (variant & ROPE_CACHE)) &&
	       op_edge_rows(sizes, problem, variant, edge == EDGE_NO_TOKENS ? 0 : 5, axis);
}

/* The number behind the word "theta", with a few words such as "is fixed at" between; 0: there is none. */
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
		snprintf(constant->conflict, sizeof constant->conflict, "%s is %g by %s, but %g by %s", constant->name,
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
	bool far = c->contents == CONTENTS_SECOND && !given; /* a workload's positions are the same in both contents */
	double atol = c->variant & ROPE_CACHE ? 1e-6 : far ? 0.08 : 2.5e-3;

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

/* What a parameter that is left out stands for, by FlashInfer's signatures. */
static double scalar_left_out(const struct op_case *c, const struct rope_roles *roles, int input)
{
	static const double plain[ROPE_NUMBERS] = {1e4, 1, 1, 4, 8192};

	for (int n = 0; n < ROPE_NUMBERS; n++)
		if (input == roles->number[n])
			return c->variant & ROPE_LLAMA31 ? llama31[n] : plain[n];
	if (input == roles->style)
		return roles->style_is_neox;
	return (double)rope_head_size(c->problem, c->axis);
}

/* Numbers that nobody has by heart; a style is the one in the one of the contents, the other in the other. A rotary dimension
 * is half a head, then three quarters. */
static double scalar(const struct op_case *c, int input)
{
	static const double values[CONTENTS_COUNT][ROPE_NUMBERS] = {{30000, 3, 2, 5, 6000}, {2e6, 1.75, 1.5, 3, 11000}},
	                    llama_scale[CONTENTS_COUNT] = {6, 13};
	struct rope_roles roles = rope_roles_of(c->problem);
	int64_t size = rope_head_size(c->problem, c->axis);
	bool second = c->contents == CONTENTS_SECOND;

	if (c->absent >> input & 1)
		return scalar_left_out(c, &roles, input);
	for (int n = 0; n < ROPE_NUMBERS; n++)
		if (input == roles.number[n])
			return n == ROPE_SCALE && (c->variant & ROPE_LLAMA31) ? llama_scale[c->contents] : values[c->contents][n];
	if (input == roles.style)
		return (c->axis[c->problem->inputs[roles.positions].axis[0]] % 2 != 0) != second;
	if (input == roles.rotary_dim)
		return (double)(second && size >= 8 ? size / 8 * 6 : size >= 4 && !second ? size / 4 * 2 : size);
	return (double)size;
}

/* Positions go to the last of their range in either contents. */
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

static int64_t reach(const struct op_problem *problem, int variant, int axis)
{
	struct rope_roles roles = rope_roles_of(problem);

	if (axis == problem->inputs[roles.positions].axis[0])
		return MOST_TOKENS;
	for (int r = 0; r < roles.count; r++)
		if (problem->inputs[roles.rotated[r]].rank == 3 && axis == problem->inputs[roles.rotated[r]].axis[1])
			return head_counts[MANY_HEADS][r];
	return (variant & ROPE_CACHE) != 0 && axis == problem->inputs[roles.cache].axis[0] ? MOST_ROWS : 0;
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
		number_set(out->data, out->dtype, i, (double)position);
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
	return 1; /* only the scale of a plain rope is neither given nor hidden */
}

/* Radians a position, of pair i. */
static double frequency(const struct op_case *c, int64_t i, int64_t rotary_dim)
{
	double plain = pow(number_of(c, ROPE_THETA), -2.0 * (double)i / (double)rotary_dim);
	double scaled = plain / number_of(c, ROPE_SCALE);

	if (!(c->variant & ROPE_LLAMA31))
		return scaled;
	double low = number_of(c, ROPE_LOW), high = number_of(c, ROPE_HIGH), old = number_of(c, ROPE_OLD_CONTEXT);
	double wavelength = 2 * 3.14159265358979323846 / plain;

	if (wavelength < old / high)
		return plain;
	if (wavelength > old / low)
		return scaled;
	double smooth = (old / wavelength - low) / (high - low);

	return (1 - smooth) * scaled + smooth * plain;
}

/* cos and sin of every pair for one token; NaN when its position is outside the cache. */
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
			cosine[i] = cos((double)position * frequencies[i]);
			sine[i] = sin((double)position * frequencies[i]);
		} else if (position < 0 || position >= e->cache_rows) {
			cosine[i] = sine[i] = NAN;
		} else {
			const struct tensor *cache = &in[roles.cache];

			cosine[i] = number_get(cache->data, cache->dtype, position * e->rotary_dim + i);
			sine[i] = number_get(cache->data, cache->dtype, position * e->rotary_dim + half + i);
		}
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

/* Positions are rows of the cache; without one, any integer is a position. */
/* What the workload gives as Python scalars. */
static int check_arguments(const struct op_case *c, const struct rope_roles *roles, struct err *err)
{
	int64_t size = rope_head_size(c->problem, c->axis);
	char what[160];

	for (int n = 0; n < ROPE_NUMBERS; n++)
		if (check_scalar(c, roles->number[n], 0x1p-1074, 1e300, "what makes frequencies is above 0", err) != 0)
			return -1;
	if (check_is_number(c, roles->number[ROPE_LOW]) && check_is_number(c, roles->number[ROPE_HIGH]) &&
	    c->scalar[roles->number[ROPE_LOW]] == c->scalar[roles->number[ROPE_HIGH]])
		return err_set(err, "inputs '%s' and '%s' are both %g; frequencies between them are divided by the difference",
		               c->problem->inputs[roles->number[ROPE_LOW]].name,
		               c->problem->inputs[roles->number[ROPE_HIGH]].name,
		               c->scalar[roles->number[ROPE_LOW]]);
	snprintf(what, sizeof what, "pairs of a head's %lld elements are rotated", (long long)size);
	if (check_scalar(c, roles->rotary_dim, 0, (double)size, what, err) != 0)
		return -1;
	if (check_is_number(c, roles->rotary_dim) && fmod(c->scalar[roles->rotary_dim], 2) != 0)
		return err_set(err, "input '%s' is %g; %s", c->problem->inputs[roles->rotary_dim].name,
		               c->scalar[roles->rotary_dim], what);
	return 0;
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct rope_roles roles = rope_roles_of(c->problem);
	int64_t rows = rope_extent_of(c).cache_rows;
	char what[160];

	if (check_arguments(c, &roles, err) != 0)
		return -1;
	if (roles.cache >= 0) {
		snprintf(what, sizeof what, "positions are rows of the cache, which has %lld", (long long)rows);
		if (check_integers(c, in, roles.positions, 0, rows - 1, what, err) != 0)
			return -1;
	}
	return check_all_finite(c, in, err);
}

/* `scratch` takes two heads. */
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

			number_read(x->data, x->dtype, first, e->head_size, scratch);
			rotate_head(scratch, scratch + e->head_size, e, interleaved, cosine, sine);
			number_write(y->data, y->dtype, first, e->head_size, scratch + e->head_size);
		}
}

static int check_widths(const struct rope_extent *e, struct err *err)
{
	if (e->head_size < 1 || e->rotary_dim < 0 || e->rotary_dim > e->head_size || e->rotary_dim % 2 != 0)
		return err_set(err, "rope: a rotary dimension of %lld does not fit a head of %lld",
		               (long long)e->rotary_dim, (long long)e->head_size);
	return 0;
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct rope_extent e = rope_extent_of(c);
	size_t half = (size_t)e.rotary_dim / 2 + 1;

	if (check_widths(&e, err) != 0)
		return -1;
	double *frequencies = calloc(half, sizeof *frequencies);

	if (frequencies == NULL)
		die_no_memory();
	for (int64_t i = 0; i < e.rotary_dim / 2 && !(c->variant & ROPE_CACHE); i++)
		frequencies[i] = frequency(c, i, e.rotary_dim);
#pragma omp parallel if (out[0].elements >= PARALLEL_FROM)
	{
		double *cosine = calloc(2 * half + 2 * (size_t)e.head_size, sizeof *cosine);

		if (cosine == NULL)
			die_no_memory();
		double *sine = cosine + half, *scratch = sine + half;

#pragma omp for
		for (int64_t token = 0; token < e.tokens; token++) {
			angles(c, &e, in, frequencies, token, cosine, sine);
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

/* A round number within 1 % of an estimate; 0: there is none. */
static double round_theta(double estimate)
{
	static const double heads[] = {1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9};

	for (double power = 10; power < 1e12; power *= 10)
		for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
			if (fabs(estimate - heads[i] * power) < 0.01 * heads[i] * power)
				return heads[i] * power;
	return 0;
}

/* The pair (1, 0) at position 1 answers (cos f, sin f): f = theta^(-2i/R), theta = f^(-R/2i). The slower half of the
 * pairs shows it to better than 1 %. */
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
	double *estimates = calloc((size_t)half + 1, sizeof *estimates);

	if (estimates == NULL)
		die_no_memory();
	for (int64_t i = half / 2 + 1; i < half; i++) {
		bool interleaved = rope_interleaved(c) != 0;
		double a = number_get(y->data, y->dtype, interleaved ? 2 * i : i);
		double b = number_get(y->data, y->dtype, interleaved ? 2 * i + 1 : i + half);
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
		    "rope: the reference's theta cannot be seen (about %.4g); name it in the description (\"theta is "
		    "10000\")",
		    median);
	for (int i = 0; i < c->constant_count; i++)
		if (isnan(found[i].value))
			found[i].value = theta;
	return 0;
}

static const char *const op_types[] = {"rope", NULL};

const struct op rope_op = {
    .name = "rope",
    .op_types = op_types,
    .match = match,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = constants,
    .rule = rule,
    .leaves = op_leaves_namesake,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .probe = probe,
    .probe_axes = probe_axes,
};
