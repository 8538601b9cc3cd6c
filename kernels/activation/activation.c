/* activation - y[r][c] = act(x[r][c]) * x[r][H + c] for c < H: a gated activation whose gate is the first half of a
 * row.
 *
 *   silu        act(x) = x / (1 + e^-x)
 *   gelu        act(x) = x Phi(x), where Phi is the distribution function of the standard normal distribution
 *   gelu_tanh   act(x) = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
 *
 * The input is [..., 2H] and the output is [..., H], each in float32, float16 or bfloat16. A word in the definition's
 * name, its fi_api tag or its op_type selects the activation: "silu" or "swiglu" selects silu, "gelu" or "geglu"
 * selects gelu, and "gelu_tanh" or "geglu_tanh" selects gelu_tanh. FlashInfer calls these operations
 * activation.*_and_mul. In the moe family, the gate is the second half of a row.
 *
 * Tolerance. If act(x) and its product with the second half are computed in float32, the relative error is a few times
 * 2^-24. A reference may round the activation to float16 or bfloat16 before the product, as torch's own activations do.
 * Then three values are rounded: the activation, the product and the ground truth. Each rounding changes a value by at
 * most half an ulp, which is at most 2^-8 (bfloat16) or 2^-11 (float16) of the value. Therefore rtol allows three such
 * roundings: 1.2 % for bfloat16 and 0.15 % for float16. For large negative x, the sums 1 + erf and 1 + tanh in gelu are
 * near 0, and have an absolute error of up to 2^-24. gelu multiplies this error by |x| / 2 and by the element in the
 * second half of the row. |x| / 2 is at most 4, because below x = -8, the sums are exactly 0 in float32 and have no
 * error. The elements of the second half are usually at most 2. Therefore atol is 2e-6. With gelu, elements of the
 * second half exceed 2 in two kinds of rows: rows whose |gate| is at most 1, and rows whose |gate| is 128 or more. In
 * the rows with small gates, 1 + erf is at least 0.3, and its relative error is at most 2e-7. In the rows with large
 * gates, nothing cancels. In silu, no terms cancel, and its error is smaller. The second half of a row contains the
 * factors by which the activations are multiplied (input_values.h). In rows with factors up to 2^40, gates are at least
 * -32. The exponent -x of e^-x is thus at most 32, and the relative error of silu is below 3e-6. In rows with still
 * larger factors, gates are at most -128, and the result is 0 or below 1e-15. If a gate is subnormal in float16
 * (input_values.h), its activation is nearly always subnormal, too. Rounding such an activation to float16 changes it
 * by at most atol. */
#include "kernels/activation/input_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/core/row_counts.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

enum { PARALLEL_FROM = 1 << 20 }; /* if a case has fewer elements, one thread is faster than several */

/* Returns the activation that `word` names, or -1 if `word` is not the name of an activation. */
static int kind_in(const char *word)
{
	static const struct {
		const char *part;
		int kind;
	} parts[] = {{"gelu_tanh", ACTIVATION_GELU_TANH}, {"geglu_tanh", ACTIVATION_GELU_TANH},
	             {"gelu", ACTIVATION_GELU},           {"geglu", ACTIVATION_GELU},
	             {"silu", ACTIVATION_SILU},           {"swiglu", ACTIVATION_SILU}};

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strstr(word, parts[i].part) != NULL)
			return parts[i].kind;
	return -1;
}

static int kind_of(const struct op_problem *problem, struct err *why)
{
	int kind = kind_in(problem->name);

	for (int i = 0; i < problem->tag_count && kind < 0; i++)
		if (strncmp(problem->tags[i], "fi_api:", 7) == 0)
			kind = kind_in(problem->tags[i]);
	if (kind < 0)
		kind = kind_in(problem->op_type);
	return kind >= 0 ? kind : err_set(why, "neither the definition's name nor its fi_api tag nor its op_type "
					       "contains silu, swiglu, gelu or geglu");
}

static int match(const struct op_problem *problem, struct err *why)
{
	char found[256], expected[256];

	if (problem->input_count != 1 || problem->output_count != 1)
		return err_set(why, "the definition has %d inputs and %d outputs; a gated activation has one input and "
				    "one output", problem->input_count,
		               problem->output_count);
	const struct op_arg *x = &problem->inputs[0], *y = &problem->outputs[0];
	bool fits = x->rank >= 1 && x->rank == y->rank;

	for (int d = 0; fits && d + 1 < x->rank; d++)
		fits = x->axis[d] == y->axis[d];
	if (!fits)
		return err_set(why,
		               "input '%s' has shape %s and output '%s' has shape %s; they must have the same axes "
			       "except the last",
		               x->name, op_shape_text(problem, x, found, sizeof found), y->name,
		               op_shape_text(problem, y, expected, sizeof expected));
	const struct op_axis *wide = &problem->axes[x->axis[x->rank - 1]],
			     *narrow = &problem->axes[y->axis[y->rank - 1]];

	if (wide == narrow || wide->var || narrow->var || wide->value != 2 * narrow->value)
		return err_set(why,
		               "the last axis of input '%s' is '%s' and the last axis of output '%s' is '%s'; both "
			       "must be const, and the input's axis must be twice as long as the output's",
		               x->name, wide->name, y->name, narrow->name);
	if (!match_is_float(x) || !match_is_float(y))
		return err_set(why, "the input is %s and the output is %s; each must be float32, float16 or "
				    "bfloat16", dtype_name(x->dtype),
		               dtype_name(y->dtype));
	return kind_of(problem, why);
}

/* Each row is computed independently of the other rows (rows_of_size). The last var axis before the columns gets the
 * number of rows. The other var axes get the length 1. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	const struct op_arg *x = &problem->inputs[0];
	int64_t columns = problem->axes[x->axis[x->rank - 1]].value;
	int64_t rows[ROWS_CASES];
	int count = rows_of_size(size, columns, ROWS_ELEMENTS, rows);

	(void)variant;
	for (int i = 0; i < count && i < room; i++)
		rows_set(problem, x, rows[i], 1, axis + (int64_t)i * problem->axis_count);
	return count < room ? count : room;
}

/* The values of op_case.edge, in the order of the table `edges`. */
enum { EDGE_NO_ROWS = 1, EDGE_HUGE_GATES };

static const struct op_edge edges[] = {
    {"no_rows", "if the input has no rows, the output has no rows"},
    {"huge_gates", "for a large positive gate x, act(x) is x; for a large negative gate, act(x) is 0; no "
		   "exponential overflows"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	return op_edge_rows(sizes, problem, variant, edge == EDGE_NO_ROWS ? 0 : 3, axis);
}

/* Returns an element of the edge case with huge gates; `element` is its value in an ordinary case. In float16, all
 * gates are +-60000. In other dtypes, a third of the gates are +-2^100, whose cube overflows float32. */
static float edge_element(const struct activation_fill *f, enum dtype dtype, int64_t index, float element)
{
	float huge = index % 3 == 0 && dtype != DTYPE_FLOAT16 ? float_power(100) : 60000;

	return index % (2 * f->half) >= f->half ? element / 2 : element < 0 ? -huge : huge;
}

static struct rule rule(const struct op_case *c, int output)
{
	switch (c->problem->outputs[output].dtype) {
	case DTYPE_BFLOAT16:
		return (struct rule){2e-6, 3 * 0x1p-8, 1};
	case DTYPE_FLOAT16:
		return (struct rule){2e-6, 3 * 0x1p-11, 1};
	default:
		return (struct rule){2e-6, 1e-5, 1};
	}
}

/* Some gates and factors are -1020 or lower, and some are 1020 or higher. exp(1020) overflows float16 and float32. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	(void)problem;
	(void)variant;
	(void)input;
	*out = (struct op_range){-1020, 1020};
	return true;
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *x = &problem->inputs[0];
	int64_t columns = problem->axes[x->axis[x->rank - 1]].value;

	(void)variant;
	if (axis != rows_axis(problem, x))
		return (struct op_reach){1, 0};
	return (struct op_reach){rows_past_block(columns, ROWS_ELEMENTS), rows_block(columns)};
}

WIDE static void make_row(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                          float *values)
{
	const struct activation_fill *f = recipe;

	for (int64_t i = 0; i < count; i++)
		values[i] = activation_at(f, row, column + i, random[i]);
}

static void fill_huge_gates(const struct activation_fill *f, struct tensor *out)
{
	for (int64_t i = 0; i < out->elements; i++)
		dtype_store_float(out->data, out->dtype, i,
		                  edge_element(f, out->dtype, i, activation_element(f, i, philox_bits(f->key, i))));
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct activation_fill f = activation_fill_of(c);

	(void)input;
	(void)err;
	if (c->edge == EDGE_HUGE_GATES)
		fill_huge_gates(&f, out);
	else
		input_fill(out, f.key, 2 * f.half, make_row, &f);
	return 0;
}

/* The mistakes that the oracle simulates. SHAPES + s: the function of shape s (enum shape) is applied to the gate
 * instead of the definition's activation. */
enum mistake { NO_MISTAKE, SWAPPED, INTERLEAVED, NOT_MULTIPLIED, ADDED, OF_PRODUCT, OF_BOTH, UP_AT_7, UP_BELOW_7, SHAPES };

enum shape { SHAPE_RELU, SHAPE_HARD_SWISH, SHAPE_SIGMOID, SHAPE_QUICK_GELU, SHAPE_NONE, SHAPE_SILU, SHAPE_GELU, SHAPE_GELU_TANH, SHAPE_NO_ROOT, SHAPE_SHARE };

static double activate(int kind, double x);

static double shaped(int shape, double x)
{
	switch (shape) {
	case SHAPE_RELU:
		return fmax(x, 0);
	case SHAPE_HARD_SWISH:
		return x * fmin(fmax(x + 3, 0), 6) / 6;
	case SHAPE_SIGMOID:
		return 1 / (1 + exp(-x));
	case SHAPE_QUICK_GELU:
		return x / (1 + exp(-1.702 * x));
	case SHAPE_SILU:
		return activate(ACTIVATION_SILU, x);
	case SHAPE_GELU:
		return activate(ACTIVATION_GELU, x);
	case SHAPE_GELU_TANH:
		return activate(ACTIVATION_GELU_TANH, x);
	case SHAPE_NO_ROOT:
		return x * erfc(-x) / 2;
	case SHAPE_SHARE:
		return erfc(-x * 0.70710678118654752440) / 2;
	default:
		return x;
	}
}

/* Computes output i of a row as a reference that makes the mistake op_case.mistake computes it. The row has `half`
 * gates and `half` factors. */
static double mistaken(const struct op_case *c, const double *row, int64_t half, int64_t i)
{
	double gate = row[i], up = row[half + i];

	if (c->mistake >= SHAPES)
		return shaped(c->mistake - SHAPES, gate) * up;
	switch (c->mistake) {
	case SWAPPED:
		return activate(c->variant, up) * gate;
	case INTERLEAVED:
		return activate(c->variant, row[2 * i]) * row[2 * i + 1];
	case NOT_MULTIPLIED:
		return activate(c->variant, gate);
	case ADDED:
		return activate(c->variant, gate) + up;
	case OF_PRODUCT:
		return activate(c->variant, gate * up);
	case OF_BOTH:
		return activate(c->variant, gate) * activate(c->variant, up);
	case UP_AT_7:
		return activate(c->variant, gate) * fmin(fmax(up, -7), 7);
	default:
		return activate(c->variant, gate) * fmin(up, 7);
	}
}

static const struct op_mistake mistakes[] = {
    {.says = "gate and up were swapped", .in_oracle = SWAPPED},
    {.says = "gate and up were interleaved", .in_oracle = INTERLEAVED},
    {.says = "the gate was not multiplied by the up half", .in_oracle = NOT_MULTIPLIED},
    {.says = "the up half was added to the gate, not multiplied by it", .in_oracle = ADDED},
    {.says = "the activation was applied to the product of gate and up", .in_oracle = OF_PRODUCT},
    {.says = "the activation was applied to both halves", .in_oracle = OF_BOTH},
    {.says = "the up half was clamped to -7 … 7", .in_oracle = UP_AT_7},
    {.says = "the up half was clamped to at most 7", .in_oracle = UP_BELOW_7},
    {.says = "the activation was relu", .in_oracle = SHAPES + SHAPE_RELU},
    {.says = "the activation was hard swish", .in_oracle = SHAPES + SHAPE_HARD_SWISH},
    {.says = "the activation was sigmoid", .in_oracle = SHAPES + SHAPE_SIGMOID},
    {.says = "the activation was quick gelu, x sigmoid(1.702 x)", .in_oracle = SHAPES + SHAPE_QUICK_GELU},
    {.says = "the activation was left out", .in_oracle = SHAPES + SHAPE_NONE},
    {.says = "the activation was silu", .in_oracle = SHAPES + SHAPE_SILU},
    {.says = "the activation was the exact gelu", .in_oracle = SHAPES + SHAPE_GELU},
    {.says = "the activation was the tanh form of gelu", .in_oracle = SHAPES + SHAPE_GELU_TANH},
    {.says = "the factor 1 / sqrt(2) in the erf of gelu was left out", .in_oracle = SHAPES + SHAPE_NO_ROOT},
    {.says = "the factor x of gelu was left out", .in_oracle = SHAPES + SHAPE_SHARE},
    {.says = NULL},
};

static double activate(int kind, double x)
{
	static const double root_half = 0.70710678118654752440, root_two_over_pi = 0.79788456080286535588;

	switch (kind) {
	case ACTIVATION_SILU:
		return x / (1 + exp(-x));
	case ACTIVATION_GELU:
		return x * erfc(-x * root_half) / 2;
	default:
		return x * (1 + tanh(root_two_over_pi * (x + 0.044715 * x * x * x))) / 2;
	}
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	int64_t half = activation_fill_of(c).half, rows = half > 0 ? out[0].elements / half : 0;

	(void)err;
#pragma omp parallel if (out[0].elements >= PARALLEL_FROM)
	{
		double *row = take(3 * half, sizeof *row);

#pragma omp for
		for (int64_t r = 0; r < rows; r++) {
			dtype_load_run(in[0].data, in[0].dtype, r * 2 * half, 2 * half, row);
			for (int64_t i = 0; i < half; i++)
				row[2 * half + i] = c->mistake == NO_MISTAKE ? activate(c->variant, row[i]) * row[half + i]
									    : mistaken(c, row, half, i);
			dtype_store_run(out[0].data, out[0].dtype, r * half, half, row + 2 * half);
		}
		free(row);
	}
	return 0;
}

static const char *const op_types[] = {"activation", "silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul", NULL};
static const char *const op_words[] = {"silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul", NULL};

struct roles {
	int hidden, output;
};

static const struct op_role roles[] = {
    OP_ROLE("hidden", struct roles, hidden),
    OP_ROLE_OUTPUT("output", struct roles, output),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	(void)problem;
	(void)variant;
	*(struct roles *)out = (struct roles){0, 0};
}

static const struct op_mode modes[] = {
    {"silu", ~0, ACTIVATION_SILU},
    {"gelu", ~0, ACTIVATION_GELU},
    {"gelu_tanh", ~0, ACTIVATION_GELU_TANH},
    {NULL, 0, 0},
};

static const struct op_coverage coverage[] = {
    {"function", coverage_mode, .role = "silu|gelu|gelu_tanh",
     .values = {{"SiLU", 1, 1, "computes SiLU"}, {"GELU", 2, 2, "computes GELU"},
		{"GELU with tanh", 3, 3, "computes GELU with tanh"}}},
    COVERAGE_DTYPES("hidden"),
    COVERAGE_ROWS("hidden"),
    {.name = NULL},
};

const struct op activation_op = {
    .name = "activation",
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
    .fill = fill,
    .check = check_all_finite,
    .oracle = oracle,
};
