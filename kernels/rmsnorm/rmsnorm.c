/* rmsnorm - y[r][c] = x[r][c] / sqrt(mean over c of x[r][c]^2 + eps) * w[c], where x is the hidden state or, fused, the
 * sum of hidden state and residual, which is not rounded before it is used.
 *
 * Activations have any shape [..., H], float32, float16 or bfloat16; the weight is [H]. A second output is the updated
 * residual: x, rounded to its dtype. FlashInfer's kernels norm.rmsnorm and norm.fused_add_rmsnorm compute the same.
 *
 * Epsilon is a hidden constant (kernels/epsilon.h), or a Python scalar among the inputs.
 *
 * Bound. A reference that computes in float32 is off by some 1e-6 of y before its one rounding: the sum of H squares,
 * all positive, in any sensible order, is good to sqrt(H) 2^-24 and the square root halves that. So its output and
 * the oracle's are roundings of nearly the same number, and differ by one unit in the last place at most: rtol 2^-10
 * for float16, 2^-7 for bfloat16 (in [2^e, 2^(e+1)) one unit is at most rtol |y|, and two are always more), 1e-5 for
 * float32, ten times what the sum is off. y has no cancellation, so atol is only the last place of the subnormals, and
 * for the wide formats 2^-126, below which a machine may flush float32 to zero. What that shows, inputs.h says.
 * What it cannot show: the product x / rms being rounded once more before the weight is applied. That moves y by one
 * unit in the last place too. */
#include "kernels/rmsnorm/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/check.h"
#include "kernels/epsilon.h"

enum { BLOCK = 4, SERIAL_BLOCKS = 1 << 12, PROBE_ROWS = 16 };

static const char *const op_types[] = {"rmsnorm", "fused_add_rmsnorm", NULL};

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

/* Inputs and outputs of other dtypes, or scalars that are no epsilon. */
static int refuse_dtypes(const struct op_problem *problem, struct err *why)
{
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		if (input->rank == OP_SCALAR && strncmp(input->name, "eps", 3) != 0)
			return err_set(why, "input '%s' is a Python scalar; only an epsilon may be one", input->name);
		if (input->rank != OP_SCALAR && !known_dtype(input->dtype))
			return err_set(why, "input '%s' is %s; expected float32, float16 or bfloat16", input->name,
			               dtype_name(input->dtype));
	}
	for (int i = 0; i < problem->output_count; i++)
		if (!known_dtype(problem->outputs[i].dtype))
			return err_set(why, "output '%s' is %s; expected float32, float16 or bfloat16",
				       problem->outputs[i].name, dtype_name(problem->outputs[i].dtype));
	return 0;
}

/* Every tensor has the shape of the output, or, one of them, its last axis alone. */
static int refuse_shapes(const struct op_problem *problem, struct err *why)
{
	struct rmsnorm_roles roles = rmsnorm_roles_of(problem);
	const struct op_arg *output = &problem->outputs[0];
	char found[512], expected[512];

	op_shape_text(problem, output, expected, sizeof expected);
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		bool weight = i == roles.weight && input->axis[0] == output->axis[output->rank - 1];

		if (input->rank == OP_SCALAR || weight || (i != roles.weight && same_shape(input, output)))
			continue;
		return err_set(why, "input '%s' has shape %s, expected %s like output '%s', or its last axis alone",
			       input->name, op_shape_text(problem, input, found, sizeof found), expected, output->name);
	}
	if (problem->output_count == 2 && !same_shape(&problem->outputs[1], output))
		return err_set(why, "output '%s' has shape %s, expected %s like output '%s'", problem->outputs[1].name,
			       op_shape_text(problem, &problem->outputs[1], found, sizeof found), expected,
			       output->name);
	return 0;
}

static int match(const struct op_problem *problem, struct err *why)
{
	int scalars = 0;

	if (problem->output_count < 1 || problem->output_count > 2 || problem->outputs[0].rank < 1)
		return err_set(why,
			       "it has %d outputs; expected one tensor, and at most the updated residual beside it",
			       problem->output_count);
	if (strstr(problem->name, "gemma_") != NULL)
		return err_set(why, "by its name it applies the weight as (1 + weight), which this family does not");
	if (refuse_dtypes(problem, why) != 0)
		return -1;
	for (int i = 0; i < problem->input_count; i++)
		scalars += problem->inputs[i].rank == OP_SCALAR;
	struct rmsnorm_roles roles = rmsnorm_roles_of(problem);
	int tensors = problem->input_count - scalars, needed = roles.residual >= 0 ? 3 : 2;

	if (roles.weight < 0)
		return err_set(why, "none of its inputs is a weight of one axis");
	if (roles.hidden < 0 || tensors != needed || scalars > 1)
		return err_set(
		    why, "it has %d inputs; expected a hidden state, perhaps a residual, a weight, perhaps an epsilon",
		    problem->input_count);
	if (problem->output_count == 2 && roles.residual < 0)
		return err_set(why, "it has two outputs, but no residual among its inputs to update");
	if (refuse_shapes(problem, why) != 0)
		return -1;
	return roles.residual >= 0 ? RMSNORM_FUSED_ADD : RMSNORM_PLAIN;
}

/* Rows of the medium size: enough for every column to be a spike in some row, if that stays within 2^25 elements. */
static int64_t covering_rows(int64_t columns)
{
	int64_t rows = RMSNORM_SPIKE_ROW + (columns - 1) / RMSNORM_SPIKES + 1, most = (1 << 25) / columns;

	rows = rows < most ? rows : most;
	return rows > 256 ? rows : 256;
}

/* One case: `rows` rows shared out over the var axes in front (the last takes what the others, 4 each, leave), and
 * `columns` columns if that axis is var. A var axis that no activation has is 1. */
static void set_axes(const struct op_problem *problem, int64_t rows, int64_t columns, int64_t *axis)
{
	const struct op_arg *output = &problem->outputs[0];
	int last = output->axis[output->rank - 1], rest = -1;

	for (int i = 0; i < problem->axis_count; i++)
		axis[i] = problem->axes[i].var ? 1 : problem->axes[i].value;
	if (problem->axes[last].var)
		axis[last] = columns;
	for (int d = 0; d + 1 < output->rank; d++) {
		int at = output->axis[d];

		if (at == last || !problem->axes[at].var) {
			rows = rows / axis[at] + (rows % axis[at] != 0);
		} else {
			if (rest >= 0 && rest != at) {
				axis[rest] = rows < 4 ? rows : 4;
				rows = rows / axis[rest] + (rows % axis[rest] != 0);
			}
			rest = at;
		}
	}
	if (rest >= 0)
		axis[rest] = rows;
}

static int64_t columns_of(const struct op_problem *problem, int64_t if_var)
{
	const struct op_axis *axis = &problem->axes[problem->outputs[0].axis[problem->outputs[0].rank - 1]];

	return axis->var ? if_var : axis->value;
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	int64_t columns = columns_of(problem, size == SIZE_SMALL ? 128 : 4096), rows[2];
	int count = size == SIZE_LARGE ? 1 : 2;

	(void)variant;
	rows[0] = size == SIZE_SMALL ? 1 : size == SIZE_MEDIUM ? 67 : 16384;
	rows[1] = size == SIZE_SMALL ? 8 : covering_rows(columns);
	for (int i = 0; i < count && i < room; i++)
		set_axes(problem, rows[i], columns, axis + i * problem->axis_count);
	return count < room ? count : room;
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	(void)variant;
	if (rmsnorm_roles_of(problem).eps >= 0)
		return 0;
	out[0] = epsilon_constant(problem, "rms_norm_eps");
	return 1;
}

/* The cases of --edge. */
static const struct op_edge edges[] = {{"no_rows", "no rows in, no rows out"}, {NULL, NULL}};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	(void)edge;
	return op_edge_rows(sizes, problem, variant, 0, axis);
}

static struct rule rule(const struct op_case *c, int output)
{
	switch (c->problem->outputs[output].dtype) {
	case DTYPE_FLOAT16:
		return (struct rule){0x1p-24, 0x1p-10, 1};
	case DTYPE_BFLOAT16:
		return (struct rule){0x1p-126, 0x1p-7, 1};
	default:
		return (struct rule){0x1p-126, 1e-5, 1};
	}
}

/* An epsilon given as an argument: none that a reference would have by heart. */
static double scalar(const struct op_case *c, int input)
{
	(void)c;
	(void)input;
	return 4e-6;
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct rmsnorm_roles roles = rmsnorm_roles_of(c->problem);
	int64_t blocks = (out->elements + BLOCK - 1) / BLOCK;

	if (input != roles.hidden && input != roles.residual && input != roles.weight)
		return err_set(err, "rmsnorm: input %d of %s is no tensor", input, c->problem->name);
	const struct rmsnorm_fill f = rmsnorm_fill_of(c, input);

#pragma omp parallel for if (blocks > SERIAL_BLOCKS)
	for (int64_t block = 0; block < blocks; block++) {
		struct philox random = philox_block(f.key, (uint64_t)block);

		for (int64_t i = block * BLOCK; i < block * BLOCK + BLOCK && i < out->elements; i++)
			number_store(out->data, out->dtype, i, rmsnorm_element(&f, i, random.word[i % BLOCK]));
	}
	return 0;
}

/* What the oracle works on: tensors by part, NULL where the problem or the case has none. */
struct parts {
	const struct tensor *hidden, *residual, *weight;
	struct tensor *output, *updated;
	int64_t rows, columns;
	double eps;
};

static int find_parts(const struct op_case *c, const struct tensor *in, struct tensor *out, struct parts *parts,
                      struct err *err)
{
	struct rmsnorm_roles roles = rmsnorm_roles_of(c->problem);

	*parts = (struct parts){.hidden = &in[roles.hidden], .weight = &in[roles.weight], .eps = rmsnorm_eps(c)};
	if (roles.residual >= 0 && in[roles.residual].data != NULL)
		parts->residual = &in[roles.residual];
	if (out != NULL) {
		parts->output = &out[roles.output];
		parts->updated = roles.updated >= 0 ? &out[roles.updated] : NULL;
	}
	parts->columns = parts->hidden->rank > 0 ? parts->hidden->shape[parts->hidden->rank - 1] : 0;
	parts->rows = parts->columns > 0 ? parts->hidden->elements / parts->columns : 0;
	if (parts->hidden->data == NULL || parts->weight->data == NULL)
		return err_set(err,
			       "rmsnorm: the hidden state or the weight is absent, so there is nothing to normalise");
	if (parts->weight->elements != parts->columns ||
	    (parts->residual != NULL && parts->residual->elements != parts->hidden->elements))
		return err_set(err, "rmsnorm: the inputs of %s do not fit together", c->problem->name);
	return 0;
}

/* Row `row` of x as doubles; `scratch` takes a row too. */
static void read_row(const struct parts *parts, int64_t row, double *x, double *scratch)
{
	int64_t first = row * parts->columns;

	number_read(parts->hidden->data, parts->hidden->dtype, first, parts->columns, x);
	if (parts->residual == NULL)
		return;
	number_read(parts->residual->data, parts->residual->dtype, first, parts->columns, scratch);
	for (int64_t i = 0; i < parts->columns; i++)
		x[i] += scratch[i];
}

static void normalise_row(const struct parts *parts, int64_t row, const double *weight, double *x, double *y)
{
	double squares = 0;

	read_row(parts, row, x, y);
	for (int64_t i = 0; i < parts->columns; i++)
		squares += x[i] * x[i];
	double inverse = 1 / sqrt(squares / (double)parts->columns + parts->eps);

	for (int64_t i = 0; i < parts->columns; i++)
		y[i] = x[i] * inverse * weight[i];
	number_write(parts->output->data, parts->output->dtype, row * parts->columns, parts->columns, y);
	if (parts->updated != NULL)
		number_write(parts->updated->data, parts->updated->dtype, row * parts->columns, parts->columns, x);
}

static double *doubles(int64_t count)
{
	double *memory = calloc((size_t)count + 1, sizeof *memory);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	if (check_epsilon(c, rmsnorm_roles_of(c->problem).eps, err) != 0)
		return -1;
	return check_all_finite(c, in, err);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct parts parts;

	if (find_parts(c, in, out, &parts, err) != 0)
		return -1;
	double *weight = doubles(parts.columns);

	number_read(parts.weight->data, parts.weight->dtype, 0, parts.columns, weight);
#pragma omp parallel if (parts.hidden->elements > SERIAL_BLOCKS * BLOCK)
	{
		double *x = doubles(parts.columns), *y = doubles(parts.columns);

#pragma omp for
		for (int64_t row = 0; row < parts.rows; row++)
			normalise_row(&parts, row, weight, x, y);
		free(x);
		free(y);
	}
	free(weight);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Estimates from every element of the answer: y = x w / sqrt(m + eps), so eps = (x w / y)^2 - m, with m the mean square
 * of the row. Returns how many there are; `m` gets the largest mean square. */
static int64_t estimate(const struct parts *parts, const struct tensor *answer, double *estimates, double *largest)
{
	double *x = doubles(parts->columns), *y = doubles(parts->columns), *weight = doubles(parts->columns);
	int64_t count = 0;

	*largest = 0;
	number_read(parts->weight->data, parts->weight->dtype, 0, parts->columns, weight);
	for (int64_t row = 0; row < parts->rows; row++) {
		double square = 0;

		read_row(parts, row, x, y);
		number_read(answer->data, answer->dtype, row * parts->columns, parts->columns, y);
		for (int64_t i = 0; i < parts->columns; i++)
			square += x[i] * x[i];
		square /= (double)parts->columns;
		*largest = fmax(*largest, square);
		for (int64_t i = 0; i < parts->columns; i++) {
			double root = x[i] * weight[i] / y[i];

			if (isfinite(root))
				estimates[count++] = root * root - square;
		}
	}
	free(x);
	free(y);
	free(weight);
	return count;
}

/* Takes the median for epsilon if the estimates agree: an answer that is no norm of these inputs scatters them. */
static int settle(double *estimates, int64_t count, int64_t elements, double square, double *eps, struct err *err)
{
	int64_t near = 0;

	if (count * 10 < elements * 9)
		return err_set(
		    err,
		    "the reference's epsilon cannot be seen: its answer to tiny inputs is zero or not finite in "
		    "%lld of %lld places",
		    (long long)(elements - count), (long long)elements);
	qsort(estimates, (size_t)count, sizeof *estimates, by_value);
	double median = estimates[count / 2];

	for (int64_t i = 0; i < count; i++)
		near += fabs(estimates[i] - median) <= 0.05 * (fabs(median) + square);
	if (near * 10 < count * 9)
		return err_set(
		    err, "the reference's epsilon cannot be seen: its answer to tiny inputs is not their norm with any "
			 "one epsilon");
	*eps = fabs(median) <= 0.05 * square ? 0 : epsilon_round(median);
	if (*eps == 0 && fabs(median) > 0.05 * square)
		return err_set(
		    err,
		    "the reference's epsilon is about %.3g, which is no round number; name it in the description "
		    "(\"Epsilon is fixed at 1e-6.\")",
		    median);
	return 0;
}

static int probe(const struct op_case *c, const struct tensor *in, const struct tensor *out, struct op_constant *found,
                 struct err *err)
{
	const struct tensor *answer = &out[rmsnorm_roles_of(c->problem).output];
	struct parts parts;
	double square;

	if (find_parts(c, in, NULL, &parts, err) != 0)
		return -1;
	if (answer->elements != parts.hidden->elements)
		return err_set(err, "the reference's epsilon cannot be seen: its answer has %lld elements, not %lld",
		               (long long)answer->elements, (long long)parts.hidden->elements);
	double *estimates = doubles(parts.hidden->elements);
	int64_t count = estimate(&parts, answer, estimates, &square);
	int status = settle(estimates, count, parts.hidden->elements, square, &found[0].value, err);

	free(estimates);
	return status;
}

static void probe_axes(const struct op_problem *problem, int variant, int64_t *axis)
{
	(void)variant;
	set_axes(problem, PROBE_ROWS, columns_of(problem, 128), axis);
}

const struct op rmsnorm_op = {
    .name = "rmsnorm",
    .op_types = op_types,
    .match = match,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = constants,
    .rule = rule,
    .scalar = scalar,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .probe = probe,
    .probe_axes = probe_axes,
};
