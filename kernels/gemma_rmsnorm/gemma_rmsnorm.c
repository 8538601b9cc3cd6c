/* gemma_rmsnorm - y[r][c] = x[r][c] / sqrt(mean over c of x[r][c]^2 + eps) * (1 + w[c]), x being the hidden state or,
 * fused, the sum of hidden state and residual, which is not rounded before it is used.
 *
 * Activations [..., H] with at least two axes, float32, float16 or bfloat16; the weight is [H]. A second output is the
 * updated residual: x, rounded to its dtype. FlashInfer's norm.gemma_rmsnorm and gemma_fused_add_rmsnorm compute this.
 *
 * In its schema a Gemma norm is any other RMS norm, and it comes under the same op_type. What tells is "gemma_" in the
 * definition's name or in its fi_api tag. A `model:gemma-…` tag does not: definitions exist that were taken from a
 * Gemma and yet apply the plain weight.
 *
 * Epsilon: a Python scalar, or what kernels/epsilon.h finds attested, or the 1e-6 of every published Gemma.
 *
 * Bound: that of a plain norm. A reference in float32 is off by some 1e-6 before its one rounding (1 + w adds half an
 * ulp of float32), so output and truth are roundings of nearly the same number: rtol 2^-7 for bfloat16, 2^-10 for
 * float16, 1e-5 for float32; nothing cancels, so atol is the last place of the subnormals only. What that cannot show:
 * 1 + w, or the product with it, being rounded once more on the way; that moves y by one unit in the last place too. */
#include "kernels/gemma_rmsnorm/inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/check.h"
#include "kernels/epsilon.h"

enum { PARALLEL_FROM = 1 << 20 }; /* elements from which threads are worth their start */

static bool known_dtype(enum dtype dtype)
{
	return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

static bool is_gemma(const struct op_problem *problem)
{
	bool found = strstr(problem->name, "gemma_") != NULL || strstr(problem->op_type, "gemma") != NULL;

	for (int i = 0; i < problem->tag_count; i++)
		found |= strncmp(problem->tags[i], "fi_api:", 7) == 0 && strstr(problem->tags[i], "gemma_") != NULL;
	return found;
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

static int match_input(const struct op_problem *problem, const struct gemma_roles *roles, int i, struct err *why)
{
	const struct op_arg *input = &problem->inputs[i], *output = &problem->outputs[0];
	char found[256], expected[256];
	bool weight = i == roles->weight && input->axis[0] == output->axis[output->rank - 1];

	if (input->rank == OP_SCALAR)
		return i == roles->eps && strncmp(input->name, "eps", 3) == 0
		           ? 0
		           : err_set(why, "input '%s' is a Python scalar; only one epsilon may be one", input->name);
	if (!known_dtype(input->dtype))
		return err_set(why, "input '%s' is %s, expected float32, float16 or bfloat16", input->name,
		               dtype_name(input->dtype));
	if (!weight && (i == roles->weight || !same_shape(input, output)))
		return err_set(why, "input '%s' has shape %s, expected %s like output '%s', or its last axis alone",
		               input->name, op_shape_text(problem, input, found, sizeof found),
		               op_shape_text(problem, output, expected, sizeof expected), output->name);
	return 0;
}

static int match(const struct op_problem *problem, struct err *why)
{
	struct gemma_roles roles = gemma_roles_of(problem);
	int parts = (roles.hidden >= 0) + (roles.residual >= 0) + (roles.weight >= 0) + (roles.eps >= 0);

	if (!is_gemma(problem))
		return err_set(why, "neither its name nor its fi_api tag speaks of a gemma_ norm");
	if (problem->output_count < 1 || problem->output_count > 2 || problem->outputs[0].rank < 2)
		return err_set(
		    why,
		    "it has %d outputs; expected activations of two axes or more, and at most the updated residual",
		    problem->output_count);
	if (roles.hidden < 0 || roles.weight < 0 || parts != problem->input_count)
		return err_set(why,
		               "its %d inputs are not a hidden state, perhaps a residual, a weight, perhaps an epsilon",
		               problem->input_count);
	if (problem->output_count == 2 && roles.residual < 0)
		return err_set(why, "it has two outputs, but no residual among its inputs to update");
	for (int i = 0; i < problem->input_count; i++)
		if (match_input(problem, &roles, i, why) != 0)
			return -1;
	for (int i = 0; i < problem->output_count; i++)
		if (!known_dtype(problem->outputs[i].dtype) || !same_shape(&problem->outputs[i], &problem->outputs[0]))
			return err_set(why, "output '%s' is no float of the shape of the first",
			               problem->outputs[i].name);
	return roles.residual >= 0 ? GEMMA_FUSED_ADD : GEMMA_PLAIN;
}

/* Rows go to the last var axis in front, 2 to each other; H, if var, is 512 or 4096. The second medium case has rows
 * enough for every column to be a spike, up to 2^23 elements. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	const struct op_arg *y = &problem->outputs[0];
	int last = y->axis[y->rank - 1], count = 0;

	(void)variant;
	for (int i = 0; i < (size == SIZE_LARGE ? 1 : 2) && count < room; i++) {
		int64_t *row = axis + (int64_t)count++ * problem->axis_count;
		int rest = -1;

		for (int a = 0; a < problem->axis_count; a++)
			row[a] = problem->axes[a].var ? 1 : problem->axes[a].value;
		if (problem->axes[last].var)
			row[last] = size == SIZE_SMALL ? 512 : 4096;
		for (int d = 0; d + 1 < y->rank; d++)
			if (problem->axes[y->axis[d]].var && y->axis[d] != last) {
				row[rest >= 0 ? rest : y->axis[d]] = 2;
				rest = y->axis[d];
			}
		int64_t cover = GEMMA_SPIKE_ROW + (row[last] - 1) / GEMMA_SPIKES + 1, most = (1 << 23) / row[last] + 1;
		int64_t rows[SIZE_COUNT][2] = {{1, 8}, {61, cover < most ? cover : most}, {16384, 0}};

		if (rest >= 0)
			row[rest] = rows[size][i];
	}
	return count;
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	(void)variant;
	if (gemma_roles_of(problem).eps >= 0)
		return 0;
	out[0] = epsilon_constant(problem, "rms_norm_eps");
	if (isnan(out[0].value)) {
		out[0].value = 1e-6;
		snprintf(out[0].source, sizeof out[0].source, "every published Gemma");
	}
	return 1;
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
	struct gemma_fill f = gemma_fill_of(c, input);

	(void)err;
#pragma omp parallel for if (out->elements >= PARALLEL_FROM)
	for (int64_t block = 0; block < (out->elements + 3) / 4; block++) {
		struct philox random = philox_block(f.key, (uint64_t)block);

		for (int64_t i = 4 * block; i < 4 * block + 4 && i < out->elements; i++)
			number_store(out->data, out->dtype, i, gemma_element(&f, i, random.word[i % 4]));
	}
	return 0;
}

static void read(const struct tensor *tensor, int64_t first, int64_t count, double *out)
{
	number_read(tensor->data, tensor->dtype, first, count, out);
}

static void write(struct tensor *tensor, int64_t first, int64_t count, const double *values)
{
	number_write(tensor->data, tensor->dtype, first, count, values);
}

/* `x` and `y` take a row each. */
static void normalise_row(const struct op_case *c, const struct tensor *in, struct tensor *out, int64_t first,
                          int64_t columns, const double *weight, double *x, double *y)
{
	struct gemma_roles roles = gemma_roles_of(c->problem);
	double squares = 0;

	read(&in[roles.hidden], first, columns, x);
	if (roles.residual >= 0) {
		read(&in[roles.residual], first, columns, y);
		for (int64_t i = 0; i < columns; i++)
			x[i] += y[i];
	}
	for (int64_t i = 0; i < columns; i++)
		squares += x[i] * x[i];
	double root = sqrt(squares / (double)columns + gemma_eps(c));

	for (int64_t i = 0; i < columns; i++)
		y[i] = x[i] / root * (1 + weight[i]);
	write(&out[roles.output], first, columns, y);
	if (roles.updated >= 0)
		write(&out[roles.updated], first, columns, x);
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
	if (check_epsilon(c, gemma_roles_of(c->problem).eps, err) != 0)
		return -1;
	return check_all_finite(c, in, err);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct gemma_roles roles = gemma_roles_of(c->problem);
	int64_t columns = in[roles.weight].elements, rows = columns > 0 ? out[0].elements / columns : 0;
	double *weight = doubles(columns);

	(void)err;
	read(&in[roles.weight], 0, columns, weight);
#pragma omp parallel if (out[0].elements >= PARALLEL_FROM)
	{
		double *x = doubles(columns), *y = doubles(columns);

#pragma omp for
		for (int64_t row = 0; row < rows; row++)
			normalise_row(c, in, out, row * columns, columns, weight, x, y);
		free(x);
		free(y);
	}
	free(weight);
	return 0;
}

/* The cases of --edge. */
static const struct op_edge edges[] = {{"no_rows", "no rows in, no rows out"}, {NULL, NULL}};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	(void)edge;
	return op_edge_rows(sizes, problem, variant, 0, axis);
}

static const char *const op_types[] = {
    "rmsnorm", "gemma_rmsnorm", "fused_add_rmsnorm", "gemma_fused_add_rmsnorm", "norm", NULL};

const struct op gemma_rmsnorm_op = {
    .name = "gemma_rmsnorm",
    .op_types = op_types,
    .match = match,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = constants,
    .rule = rule,
    .leaves = op_leaves_namesake,
    .scalar = scalar,
    .fill = fill,
    .check = check,
    .oracle = oracle,
};
