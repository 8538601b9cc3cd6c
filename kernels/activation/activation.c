/* activation - y[r][c] = act(x[r][c]) * x[r][H + c], c < H: a gated unit whose gate is the first half of a row.
 *
 *   silu        act(x) = x / (1 + e^-x)
 *   gelu        act(x) = x Phi(x), Phi the normal distribution function (erf)
 *   gelu_tanh   act(x) = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
 *
 * Input [..., 2H], output [..., H]; float32, float16 or bfloat16. Which one it is nothing but the name (or the fi_api
 * tag) says: "silu" (or "swiglu"), "gelu_tanh", "gelu" (or "geglu"). FlashInfer's activation.*_and_mul are these three.
 * (The experts of a mixture hold the halves the other way round; that is another family's.)
 *
 * Bound. In float32 the product is good to a few 2^-24. A reference may stay in the narrow dtype, as torch's own
 * activations do: then the activation is rounded, and the product, and the truth, each by half a unit in the last
 * place, which is at most 2^-8 (bfloat16) or 2^-11 (float16) of the value: rtol is three of those, 1.2 % and 0.15 %.
 * Where gelu falls off, 1 + erf or 1 + tanh cancels: 2^-24 of 1 is left, times |x| / 2 of at most 4 and a factor of at
 * most 2 (beyond x = -8 both are exactly 0 in float32): atol 2e-6. Larger factors are beside gates of at most 1, where
 * 2^-24 of 1 is at most 2e-7 of what is left, 0.3, or beside gates of 128 or more in magnitude, where nothing cancels.
 * silu does not cancel, and what it loses is less. Activations of gates that are subnormals of float16 are, too, but for
 * 2^-16 of them, and rounding moves them by no more (inputs.h). */
#include "kernels/activation/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/check.h"
#include "kernels/rows.h"
#include "kernels/wide.h"

enum { PARALLEL_FROM = 1 << 20 }; /* elements from which threads are worth their start */

static bool known_dtype(enum dtype dtype)
{
	return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

/* Which activation a word speaks of; -1: of none. */
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
	return kind >= 0 ? kind : err_set(why, "neither name nor fi_api tag speaks of silu, gelu or gelu_tanh");
}

static int match(const struct op_problem *problem, struct err *why)
{
	char found[256], expected[256];

	if (problem->input_count != 1 || problem->output_count != 1)
		return err_set(why, "it has %d inputs and %d outputs, expected one of each", problem->input_count,
		               problem->output_count);
	const struct op_arg *x = &problem->inputs[0], *y = &problem->outputs[0];
	bool fits = x->rank >= 1 && x->rank == y->rank;

	for (int d = 0; fits && d + 1 < x->rank; d++)
		fits = x->axis[d] == y->axis[d];
	if (!fits)
		return err_set(why,
		               "input '%s' has shape %s and output '%s' %s, expected the same but for the last axis",
		               x->name, op_shape_text(problem, x, found, sizeof found), y->name,
		               op_shape_text(problem, y, expected, sizeof expected));
	const struct op_axis *wide = &problem->axes[x->axis[x->rank - 1]],
			     *narrow = &problem->axes[y->axis[y->rank - 1]];

	if (wide == narrow || wide->var || narrow->var || wide->value != 2 * narrow->value)
		return err_set(
		    why,
		    "the last axis of input '%s' is '%s' and that of output '%s' is '%s', expected const axes, the "
		    "first twice as large as the second",
		    x->name, wide->name, y->name, narrow->name);
	if (!known_dtype(x->dtype) || !known_dtype(y->dtype))
		return err_set(why, "it maps %s to %s, expected float32, float16 or bfloat16", dtype_name(x->dtype),
		               dtype_name(y->dtype));
	return kind_of(problem, why);
}

/* A row alone, whole blocks of rows, and one row more than whole blocks, in the last var axis in front; one in the others. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	const struct op_arg *x = &problem->inputs[0];
	int64_t columns = problem->axes[x->axis[x->rank - 1]].value;
	int64_t rows[SIZE_COUNT][2] = {
	    {1, rows_of_blocks(columns, 1 << 18)}, {rows_past_blocks(columns, 3 << 20), 0}, {16384, 0}};
	int count = 0;

	(void)variant;
	for (int i = 0; i < 2 && rows[size][i] > 0 && count < room; i++) {
		int64_t *row = axis + (int64_t)count++ * problem->axis_count;

		for (int a = 0; a < problem->axis_count; a++)
			row[a] = problem->axes[a].var ? 1 : problem->axes[a].value;
		for (int d = x->rank - 2; d >= 0; d--)
			if (problem->axes[x->axis[d]].var) {
				row[x->axis[d]] = rows[size][i];
				break;
			}
	}
	return count;
}

/* The cases of --edge; op_case.edge is one of these. */
enum { EDGE_NO_ROWS = 1, EDGE_HUGE_GATES };

static const struct op_edge edges[] = {
    {"no_rows", "no rows in, no rows out"},
    {"huge_gates", "a gate beyond the reach of every exponential counts as itself, or as 0 if it is negative"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	return op_edge_rows(sizes, problem, variant, edge == EDGE_NO_ROWS ? 0 : 3, axis);
}

/* Gates of 60000, which float16 still holds, or of 2^100, whose cube nothing holds. */
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

/* Gates and factors of either sign, up to where float16's exponentials, and those of float32, are long beyond their end. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	(void)problem;
	(void)variant;
	(void)input;
	*out = (struct op_range){-1020, 1020};
	return true;
}

/* More rows than 300 up to 9000 columns of input. */
static int64_t reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *x = &problem->inputs[0];
	int64_t columns = problem->axes[x->axis[x->rank - 1]].value;

	(void)variant;
	for (int d = x->rank - 2; d >= 0; d--)
		if (problem->axes[x->axis[d]].var)
			return axis != x->axis[d] ? 1 : columns <= 9000 ? 301 : columns <= 48000 ? 65 : 33;
	return 1;
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
		number_store(out->data, out->dtype, i,
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
		double *row = calloc((size_t)half * 2 + 1, sizeof *row);

		if (row == NULL)
			die_no_memory();
#pragma omp for
		for (int64_t r = 0; r < rows; r++) {
			number_read(in[0].data, in[0].dtype, r * 2 * half, 2 * half, row);
			for (int64_t i = 0; i < half; i++)
				row[i] = activate(c->variant, row[i]) * row[half + i];
			number_write(out[0].data, out[0].dtype, r * half, half, row);
		}
		free(row);
	}
	return 0;
}

static const char *const op_types[] = {"activation", "silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul", NULL};

const struct op activation_op = {
    .name = "activation",
    .op_types = op_types,
    .match = match,
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
