/* layernorm - y[r][c] = (x[r][c] - mean) / sqrt(variance + eps) * w[c] + b[c], with mean and variance of row r; the
 * variance is the mean of the squared differences, over H of them, not H - 1.
 *
 * Activations [..., H] with at least two axes, float32, float16 or bfloat16; weight and bias are [H] and may be wider
 * (FlashInfer's norm.layernorm wants them in float32). The bias may be missing.
 *
 * Epsilon is a Python scalar, or what kernels/epsilon.h finds attested (a model's "layer_norm_eps"), or probed: on rows
 * whose variance is far below any epsilon, y = (x - mean) w / sqrt(eps).
 *
 * Bound. Output and truth are roundings of nearly the same number: rtol 2^-7 for bfloat16, 2^-10 for float16, 1e-5 for
 * float32. A mean that is summed in float32, one element after another, is off by up to sqrt(H) 2^-25 of its size; inputs.h
 * allows a mean of 7 deviations: for H = 8192 that is 2e-5 in (x - mean) / root, times a weight below 2, and the sum with the
 * bias may cancel: atol 5e-5.
 * The second contents alone need more, for what float32 gives there: their weights reach 8, which makes that 1.5e-4: atol
 * 2e-4. In their rows far from zero every sum is exact, and what is left of the mean's error are the roundings of 1 / H and of
 * a product, 2^-24 of the mean together, or about as much of a mean that is moved on from part to part (Welford): of 91
 * deviations, times 8, that is 4e-5; of 1440, where the output is narrow, 7e-4: atol 1e-3 there. The mean of squares less
 * the square of the mean is off by some 2^-24 of the latter: by 5e-4 of the variance in the wide rows, by 10 % in the narrow
 * ones; with fewer deviations a narrow output would not show it. Activations of a workload have the first contents' bound.
 * What that cannot show in a narrow dtype: H - 1 for H, which moves y by 1 / 2H; in float32 it shows. */
#include "kernels/layernorm/inputs.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/check.h"
#include "kernels/epsilon.h"
#include "kernels/rows.h"

enum { PARALLEL_FROM = 1 << 20, PROBE_ROWS = 16 }; /* elements from which threads are worth their start */

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

static int match_input(const struct op_problem *problem, int i, struct err *why)
{
	struct layernorm_roles roles = layernorm_roles_of(problem);
	const struct op_arg *input = &problem->inputs[i], *output = &problem->outputs[0];
	bool flat = i == roles.weight || i == roles.bias;
	char found[256], expected[256];

	if (input->rank == OP_SCALAR)
		return i == roles.eps && strncmp(input->name, "eps", 3) == 0
		           ? 0
		           : err_set(why, "input '%s' is a Python scalar; only one epsilon may be one", input->name);
	if (!known_dtype(input->dtype))
		return err_set(why, "input '%s' is %s, expected float32, float16 or bfloat16", input->name,
		               dtype_name(input->dtype));
	if (flat ? input->axis[0] != output->axis[output->rank - 1] : !same_shape(input, output))
		return err_set(why, "input '%s' has shape %s, expected %s like output '%s', or its last axis alone",
		               input->name, op_shape_text(problem, input, found, sizeof found),
		               op_shape_text(problem, output, expected, sizeof expected), output->name);
	return 0;
}

/* Of a norm in general, does anything say that it is this one? */
static bool is_layernorm(const struct op_problem *problem, const struct layernorm_roles *roles)
{
	return strstr(problem->op_type, "layer") != NULL || strstr(problem->name, "layernorm") != NULL ||
	       strstr(problem->name, "layer_norm") != NULL || roles->bias >= 0;
}

static int match(const struct op_problem *problem, struct err *why)
{
	struct layernorm_roles roles = layernorm_roles_of(problem);
	int parts = (roles.x >= 0) + (roles.weight >= 0) + (roles.bias >= 0) + (roles.eps >= 0);

	if (!is_layernorm(problem, &roles))
		return err_set(why, "nothing says that it is a layer norm: neither its name nor a bias");
	if (problem->output_count != 1 || problem->outputs[0].rank < 2 || !known_dtype(problem->outputs[0].dtype))
		return err_set(why, "it has %d outputs; expected one float of two axes or more", problem->output_count);
	if (roles.x < 0 || roles.weight < 0 || parts != problem->input_count)
		return err_set(why, "its %d inputs are not activations, a weight, perhaps a bias, perhaps an epsilon",
		               problem->input_count);
	for (int i = 0; i < problem->input_count; i++)
		if (match_input(problem, i, why) != 0)
			return -1;
	return 0;
}

/* `rows` rows in the last var axis in front, 2 in each other; H, if var, is `columns`. */
static void set_axes(const struct op_problem *problem, int64_t rows, int64_t columns, int64_t *axis)
{
	const struct op_arg *y = &problem->outputs[0];
	int last = y->axis[y->rank - 1], rest = -1;

	for (int a = 0; a < problem->axis_count; a++)
		axis[a] = problem->axes[a].var ? 1 : problem->axes[a].value;
	if (problem->axes[last].var)
		axis[last] = columns;
	for (int d = 0; d + 1 < y->rank; d++)
		if (problem->axes[y->axis[d]].var && y->axis[d] != last) {
			if (rest >= 0)
				axis[rest] = 2;
			rest = y->axis[d];
		}
	if (rest >= 0)
		axis[rest] = rows;
}

/* A row alone, whole blocks of rows, and one row more than whole blocks, or enough for every column to be a spike, up to
 * 2^23 elements. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	const struct op_axis *last = &problem->axes[problem->outputs[0].axis[problem->outputs[0].rank - 1]];
	int64_t columns = !last->var ? last->value : size == SIZE_SMALL ? 512 : 4096;
	int64_t spiky = (columns - 1) / LAYERNORM_SPIKES + 1, most = (1 << 23) / columns + 1;
	int64_t cover = LAYERNORM_SPIKE_ROW + spiky + spiky / (LAYERNORM_FAR - 1) + 1, past = rows_past_blocks(columns, 5 << 19);
	int64_t medium = past > cover ? past : cover < most ? cover : most;
	int64_t rows[SIZE_COUNT][2] = {{1, rows_of_blocks(columns, 1 << 18)}, {medium, 0}, {16384, 0}};
	int count = size == SIZE_SMALL ? 2 : 1;

	(void)variant;
	for (int i = 0; i < count && i < room; i++)
		set_axes(problem, rows[size][i], columns, axis + (int64_t)i * problem->axis_count);
	return count < room ? count : room;
}

/* Activations as large as the largest that trained models are known for, weights and biases as theirs, on both sides of
 * zero. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct layernorm_roles roles = layernorm_roles_of(problem);

	(void)variant;
	if (input == roles.eps)
		*out = (struct op_range){4e-6, 3e-5};
	else if (input == roles.x)
		*out = (struct op_range){-8000, 8000};
	else
		*out = (struct op_range){-7, 7};
	return true;
}

/* More rows than 300, in the last var axis in front. */
static int64_t reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *y = &problem->outputs[0];
	int last = y->axis[y->rank - 1], rest = -1;

	(void)variant;
	if (axis == last)
		return 4096;
	for (int d = 0; d + 1 < y->rank; d++)
		if (problem->axes[y->axis[d]].var)
			rest = y->axis[d];
	return axis != rest ? 1 : problem->axes[last].var || problem->axes[last].value <= 8192 ? 301 : 33;
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	(void)variant;
	if (layernorm_roles_of(problem).eps >= 0)
		return 0;
	out[0] = epsilon_constant(problem, "layer_norm_eps");
	return 1;
}

static struct rule rule(const struct op_case *c, int output)
{
	bool far = c->contents == CONTENTS_SECOND && (c->given >> layernorm_roles_of(c->problem).x & 1) == 0;

	switch (c->problem->outputs[output].dtype) {
	case DTYPE_FLOAT16:
		return (struct rule){far ? 1e-3 : 5e-5, 0x1p-10, 1};
	case DTYPE_BFLOAT16:
		return (struct rule){far ? 1e-3 : 5e-5, 0x1p-7, 1};
	default:
		return (struct rule){far ? 2e-4 : 5e-5, 1e-5, 1};
	}
}

/* An epsilon given as an argument: none that a reference would have by heart. What None stands for differs by library. */
static double scalar(const struct op_case *c, int input)
{
	if (c->absent >> input & 1)
		return (double)NAN;
	return c->contents == CONTENTS_FIRST ? 4e-6 : 3e-5;
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct layernorm_fill f = layernorm_fill_of(c, input);

	(void)err;
#pragma omp parallel for if (out->elements >= PARALLEL_FROM)
	for (int64_t block = 0; block < (out->elements + 3) / 4; block++) {
		struct philox random = philox_block(f.key, (uint64_t)block);

		for (int64_t i = 4 * block; i < 4 * block + 4 && i < out->elements; i++)
			number_store(out->data, out->dtype, i, layernorm_element(&f, i, random.word[i % 4]));
	}
	return 0;
}

static void read(const struct tensor *tensor, int64_t first, int64_t count, double *out)
{
	number_read(tensor->data, tensor->dtype, first, count, out);
}

static double *doubles(int64_t count)
{
	double *memory = calloc((size_t)count + 1, sizeof *memory);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

/* Takes the mean from a row and returns its variance. */
static double centre(double *x, int64_t columns)
{
	double sum = 0, squares = 0;

	for (int64_t i = 0; i < columns; i++)
		sum += x[i];
	for (int64_t i = 0; i < columns; i++) {
		x[i] -= sum / (double)columns;
		squares += x[i] * x[i];
	}
	return squares / (double)columns;
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	if (check_epsilon(c, layernorm_roles_of(c->problem).eps, err) != 0)
		return -1;
	return check_all_finite(c, in, err);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct layernorm_roles roles = layernorm_roles_of(c->problem);
	int64_t columns = in[roles.x].shape[in[roles.x].rank - 1], rows = columns > 0 ? out[0].elements / columns : 0;
	double *weight = doubles(columns), *bias = doubles(columns), eps = layernorm_eps(c);

	(void)err;
	for (int64_t i = 0; i < columns; i++)
		weight[i] = 1;
	if (in[roles.weight].data != NULL)
		read(&in[roles.weight], 0, columns, weight);
	if (roles.bias >= 0 && in[roles.bias].data != NULL)
		read(&in[roles.bias], 0, columns, bias);
#pragma omp parallel if (out[0].elements >= PARALLEL_FROM)
	{
		double *x = doubles(columns);

#pragma omp for
		for (int64_t row = 0; row < rows; row++) {
			read(&in[roles.x], row * columns, columns, x);
			double root = sqrt(centre(x, columns) + eps);

			for (int64_t i = 0; i < columns; i++)
				x[i] = x[i] / root * weight[i] + bias[i];
			number_write(out[0].data, out[0].dtype, row * columns, columns, x);
		}
		free(x);
	}
	free(weight);
	free(bias);
	return 0;
}

static void probe_axes(const struct op_problem *problem, int variant, int64_t *axis)
{
	(void)variant;
	set_axes(problem, PROBE_ROWS, 512, axis);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ((x - mean) w / y)^2 - variance of every element of the answer that is finite. Returns how many; `largest` gets the
 * largest variance. */
static int64_t estimate(const struct op_case *c, const struct tensor *in, const struct tensor *y, double *estimates,
                        double *largest)
{
	struct layernorm_roles roles = layernorm_roles_of(c->problem);
	int64_t columns = in[roles.weight].elements, rows = columns > 0 ? y->elements / columns : 0, count = 0;
	double *weight = doubles(columns), *x = doubles(columns), *answer = doubles(columns);

	*largest = 0;
	read(&in[roles.weight], 0, columns, weight);
	for (int64_t row = 0; row < rows; row++) {
		read(&in[roles.x], row * columns, columns, x);
		read(y, row * columns, columns, answer);
		double variance = centre(x, columns);

		*largest = fmax(*largest, variance);
		for (int64_t i = 0; i < columns; i++) {
			double root = x[i] * weight[i] / answer[i];

			if (isfinite(root))
				estimates[count++] = root * root - variance;
		}
	}
	free(weight);
	free(x);
	free(answer);
	return count;
}

static int probe(const struct op_case *c, const struct tensor *in, const struct tensor *out, struct op_constant *found,
                 struct err *err)
{
	double *estimates = doubles(out[0].elements), variance, median = 0;
	int64_t count = estimate(c, in, &out[0], estimates, &variance), near = 0;

	qsort(estimates, (size_t)count, sizeof *estimates, by_value);
	if (count > 0)
		median = estimates[count / 2];
	for (int64_t i = 0; i < count; i++)
		near += fabs(estimates[i] - median) <= 0.05 * (fabs(median) + variance);
	free(estimates);
	if (near * 10 < out[0].elements * 9)
		return err_set(
		    err,
		    "the reference's epsilon cannot be seen: its answer to tiny inputs is not their layer norm with "
		    "any one epsilon");
	bool none = fabs(median) <= 0.05 * variance;

	found[0].value = none ? 0 : epsilon_round(median);
	if (!none && found[0].value == 0)
		return err_set(
		    err,
		    "the reference's epsilon is about %.3g, which is no round number; name it in the description "
		    "(\"Epsilon is fixed at 1e-5.\")",
		    median);
	return 0;
}

/* The cases of --edge. */
static const struct op_edge edges[] = {{"no_rows", "no rows in, no rows out"}, {NULL, NULL}};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	(void)edge;
	return op_edge_rows(sizes, problem, variant, 0, axis);
}

static const char *const op_types[] = {"layernorm", "layer_norm", "norm", NULL};

const struct op layernorm_op = {
    .name = "layernorm",
    .op_types = op_types,
    .match = match,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = constants,
    .rule = rule,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .probe = probe,
    .probe_axes = probe_axes,
};
