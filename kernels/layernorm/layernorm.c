/* layernorm - computes y[r][c] = (x[r][c] - mean) / sqrt(variance + eps) * w[c] + b[c], with the mean and the variance
 * of row r. The variance is the sum of the squared differences from the mean, divided by H (not by H - 1).
 *
 * Activations have the shape [..., H], with at least two axes, and the dtype float32, float16 or bfloat16. Weight and
 * bias have the shape [H], and may have a wider dtype (FlashInfer's norm.layernorm expects float32). The bias is
 * optional.
 *
 * Epsilon is a Python scalar, or the value that kernels/core/norm_epsilon.h finds (a model's "layer_norm_eps"). If the
 * definition has no such scalar, and no value is found, reftest computes epsilon from the output of a probe case. The
 * variance of a probe case's rows is far below any epsilon, so that y = (x - mean) w / sqrt(eps).
 *
 * Tolerance for the first set of values. The reference and the ground truth round nearly the same number to the
 * output's dtype, so rtol is 2^-7 for bfloat16, 2^-10 for float16 and 1e-5 for float32. If a mean is accumulated in
 * float32, one element after another, its relative error is up to sqrt(H) 2^-25. In the first set the mean of a row is
 * at most 7 times the row's standard deviation. Therefore the error of (x - mean) / sqrt(variance) is 2e-5 if H is
 * 8192. This error is multiplied by a weight, which is below 2 in the first set. Adding the bias may cancel most of the
 * value, but not the error, so rtol is not enough and atol is 5e-5.
 *
 * Tolerance for the second set of values. Weights reach 8 in the second set, so the error that is 5e-5 in the first set
 * may be 1.5e-4 here, and atol is 2e-4. In the rows of integers close to M (input_values.h) every sum is exact. The
 * mean of such a row still has a relative error of 2^-24, because 1 / H and its product with the sum are rounded. The
 * error of the mean is about the same if the mean is updated part by part (Welford). With a float32 output the mean is
 * at most 91 times the standard deviation; multiplied by a weight of 8, the error of the mean is 4e-5. With a float16
 * or bfloat16 output the mean is up to 1440 times the standard deviation, and the error is 7e-4; therefore atol is 1e-3
 * for these dtypes. If a variance is computed as the mean of squares minus the square of the mean, its error is about
 * 2^-24 times the square of the mean. In the rows of integers close to M, this error is 5e-4 of the variance if the
 * output is float32, and 10 % of the variance if the output is float16 or bfloat16. If the mean were smaller, the
 * rounding of a float16 or bfloat16 output would hide this error of the variance.
 *
 * In the even row, weights reach 2048, and outputs are the weight or its negative, plus the bias. Sums are exact, and
 * rtol allows the error of the quotient.
 *
 * If a workload provides the activations, the tolerance is that of the first set of input values. If a reference
 * divides by H - 1 instead of H, the relative change of y is 1 / (2 H). A float32 output reveals this change; float16
 * and bfloat16 outputs do not. */
#include "kernels/layernorm/input_values.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/core/mistakes.h"
#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/core/norm_epsilon.h"
#include "kernels/core/row_counts.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/take.h"

enum { PARALLEL_FROM = 1 << 20, PROBE_ROWS = 16 }; /* PARALLEL_FROM: if there are fewer elements, one thread is faster
						    * than several */

static int match_input(const struct op_problem *problem, int i, struct err *why)
{
	struct layernorm_roles roles = layernorm_roles_of(problem);
	const struct op_arg *input = &problem->inputs[i], *output = &problem->outputs[0];
	bool flat = i == roles.weight || i == roles.bias;
	char found[256], expected[256];

	if (input->rank == OP_SCALAR)
		return i == roles.eps && strncmp(input->name, "eps", 3) == 0
		           ? 0
		           : err_set(why, "input '%s' is a Python scalar; a layer norm has only one Python scalar, "
		           	"its epsilon", input->name);
	if (!match_is_float(input))
		return err_set(why, "input '%s' is %s; it must be float32, float16 or bfloat16", input->name,
		               dtype_name(input->dtype));
	if (flat ? input->axis[0] != output->axis[output->rank - 1] : !match_same_shape(input, output))
		return err_set(why, "input '%s' has shape %s; it must have the shape %s of output '%s', or only the "
				    "last axis of that shape",
		               input->name, op_shape_text(problem, input, found, sizeof found),
		               op_shape_text(problem, output, expected, sizeof expected), output->name);
	return 0;
}

/* Returns true if the op_type, the name or the presence of a bias shows that the norm is a layer norm. */
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
		return err_set(why, "the definition has neither \"layernorm\" in its name nor a bias among its inputs");
	if (problem->output_count != 1 || problem->outputs[0].rank < 2 || !match_is_float(&problem->outputs[0]))
		return err_set(why, "the definition has %d outputs; a layer norm has one float output of two axes or "
				    "more", problem->output_count);
	if (roles.x < 0 || roles.weight < 0 || parts != problem->input_count)
		return err_set(why, "the definition's %d inputs are not those of a layer norm; a layer norm has "
				    "activations, a weight, optionally a bias, and optionally an epsilon",
		               problem->input_count);
	for (int i = 0; i < problem->input_count; i++)
		if (match_input(problem, i, why) != 0)
			return -1;
	return 0;
}

/* Sets the last leading var axis to `rows` and each other leading var axis to 2. If H is var, sets it to `columns`. */
static void set_axes(const struct op_problem *problem, int64_t rows, int64_t columns, int64_t *axis)
{
	const struct op_arg *y = &problem->outputs[0];

	rows_set(problem, y, rows, 2, axis);
	op_set_axis(problem, y->axis[y->rank - 1], columns, axis);
}

/* Returns the number of rows of the first medium case. There are enough rows for a spike in every column, unless the
 * tensor would then have more than 2^23 elements. */
static int64_t medium_rows(int64_t columns)
{
	int64_t spiky = (columns - 1) / LAYERNORM_SPIKES + 1, most = (1 << 23) / columns + 1;
	int64_t cover = LAYERNORM_SPIKE_ROW + spiky + spiky / (LAYERNORM_FAR - 1) + 1;

	return rows_at_least(rows_past_block(columns, ROWS_ELEMENTS), cover < most ? cover : most,
	                     rows_block(columns));
}

/* The functions rows_of_size and medium_rows determine the numbers of rows. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	const struct op_axis *last = &problem->axes[problem->outputs[0].axis[problem->outputs[0].rank - 1]];
	int64_t columns = !last->var ? last->value : size == SIZE_SMALL ? 512 : 4096, rows[ROWS_CASES];
	int count = rows_of_size(size, columns, ROWS_ELEMENTS, rows);

	(void)variant;
	if (size == SIZE_MEDIUM)
		rows[0] = medium_rows(columns);
	for (int i = 0; i < count && i < room; i++)
		set_axes(problem, rows[i], columns, axis + (int64_t)i * problem->axis_count);
	return count < room ? count : room;
}

/* The activations exceed the largest values known from trained models. Weights and biases reach their largest values
 * with both signs. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	struct layernorm_roles roles = layernorm_roles_of(problem);

	(void)variant;
	if (input == roles.eps)
		*out = (struct op_range){4e-6, 3e-5};
	else if (input == roles.x)
		*out = (struct op_range){-16000, 16000};
	else if (input == roles.weight)
		*out = (struct op_range){-1000, 1000};
	else
		*out = (struct op_range){-7, 7};
	return true;
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *y = &problem->outputs[0];
	int last = y->axis[y->rank - 1];
	int64_t columns = problem->axes[last].var ? 4096 : problem->axes[last].value;

	(void)variant;
	if (axis == last)
		return (struct op_reach){4096, 0};
	if (axis != rows_axis(problem, y))
		return (struct op_reach){1, 0};
	return (struct op_reach){medium_rows(columns), rows_block(columns)};
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	(void)variant;
	return epsilon_constants(problem, layernorm_roles_of(problem).eps, "layer_norm_eps", out);
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

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct layernorm_fill f = layernorm_fill_of(c, input);

	(void)err;
#pragma omp parallel for if (out->elements >= PARALLEL_FROM)
	for (int64_t block = 0; block < (out->elements + 3) / 4; block++) {
		struct philox random = philox_block(f.key, (uint64_t)block);

		for (int64_t i = 4 * block; i < 4 * block + 4 && i < out->elements; i++)
			dtype_store_float(out->data, out->dtype, i, layernorm_element(&f, i, random.word[i % 4]));
	}
	return 0;
}

static void read(const struct tensor *tensor, int64_t first, int64_t count, double *out)
{
	dtype_load_run(tensor->data, tensor->dtype, first, count, out);
}

/* Subtracts the mean from a row and returns the row's variance. */
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

enum mistake { NO_MISTAKE, EPS_OUTSIDE, MEAN_SQUARE, MEAN_KEPT, BIASED_WEIGHT, SUM_OF_SQUARES, TWICE, ONE_LESS, RMS };

static const struct op_mistake mistakes[] = {
    {.says = "eps was added to the standard deviation, not to the variance", .in_oracle = EPS_OUTSIDE},
    {.says = "the mean square was used in place of the variance", .in_oracle = MEAN_SQUARE},
    {.says = "the mean was not subtracted from the elements", .in_oracle = MEAN_KEPT},
    {.says = "the norm was an RMS norm, which subtracts no mean", .in_oracle = RMS},
    {.says = "the bias was added before the multiplication by the weight", .in_oracle = BIASED_WEIGHT},
    {.says = "the sum of squares was used in place of the variance", .in_oracle = SUM_OF_SQUARES},
    {.says = "elements were divided by the variance, not by its root", .in_oracle = TWICE},
    {.says = "the variance was divided by H - 1, not by H", .in_oracle = ONE_LESS},
    {.says = "the weight was 1 + w", .before = before_add, .role = "weight", .by = 1},
    {.says = NULL},
};

/* Normalises one row as a reference with the mistake does. */
static void mistake_row(enum mistake mistake, double *x, int64_t columns, const double *weight, const double *bias,
			double eps)
{
	double sum = 0, squares = 0, n = (double)columns;

	for (int64_t i = 0; i < columns; i++)
		sum += x[i], squares += x[i] * x[i];
	double mean = sum / n, variance = squares / n - mean * mean;
	bool keeps = mistake == MEAN_KEPT || mistake == RMS, square = mistake == MEAN_SQUARE || mistake == RMS;
	double spread = square			      ? squares / n
			: mistake == SUM_OF_SQUARES ? variance * n
			: mistake == ONE_LESS	    ? variance * n / (n - 1)
						    : variance;
	double root = mistake == EPS_OUTSIDE ? sqrt(spread) + eps : sqrt(spread + eps);

	root = mistake == TWICE ? root * root : root;
	for (int64_t i = 0; i < columns; i++) {
		double y = (x[i] - (keeps ? 0 : mean)) / root;

		x[i] = mistake == BIASED_WEIGHT ? (y + bias[i]) * weight[i] : y * weight[i] + bias[i];
	}
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
	double *weight = take(columns, sizeof *weight), *bias = take(columns, sizeof *bias), eps = layernorm_eps(c);

	(void)err;
	for (int64_t i = 0; i < columns; i++)
		weight[i] = 1;
	if (in[roles.weight].data != NULL)
		read(&in[roles.weight], 0, columns, weight);
	if (roles.bias >= 0 && in[roles.bias].data != NULL)
		read(&in[roles.bias], 0, columns, bias);
#pragma omp parallel if (out[0].elements >= PARALLEL_FROM)
	{
		double *x = take(columns, sizeof *x);

#pragma omp for
		for (int64_t row = 0; row < rows; row++) {
			read(&in[roles.x], row * columns, columns, x);
			if (c->mistake != NO_MISTAKE) {
				mistake_row((enum mistake)c->mistake, x, columns, weight, bias, eps);
			} else {
				double root = sqrt(centre(x, columns) + eps);

				for (int64_t i = 0; i < columns; i++)
					x[i] = x[i] / root * weight[i] + bias[i];
			}
			dtype_store_run(out[0].data, out[0].dtype, row * columns, columns, x);
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

/* Estimates epsilon from every element of the output: ((x - mean) w / y)^2 - variance. Returns the number of finite
 * estimates. Stores the largest variance of any row in `largest`. */
static int64_t estimate(const struct op_case *c, const struct tensor *in, const struct tensor *y, double *estimates,
                        double *largest)
{
	struct layernorm_roles roles = layernorm_roles_of(c->problem);
	int64_t columns = in[roles.weight].elements, rows = columns > 0 ? y->elements / columns : 0, count = 0;
	double *weight = take(columns, sizeof *weight), *x = take(columns, sizeof *x);
	double *answer = take(columns, sizeof *answer);

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
	double *estimates = take(out[0].elements, sizeof *estimates), variance;
	int64_t count = estimate(c, in, &out[0], estimates, &variance);
	int status = epsilon_settle(estimates, count, out[0].elements, variance, &found[0].value, err);

	free(estimates);
	return status;
}

/* The cases that --edge adds. */
static const struct op_edge edges[] = {{"no_rows", "if the input has no rows, the output has no rows"}, {NULL, NULL}};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	(void)edge;
	return op_edge_rows(sizes, problem, variant, 0, axis);
}

static const char *const op_types[] = {"layernorm", "layer_norm", "norm", NULL};
static const char *const op_words[] = {"layernorm", "layer_norm", "layer_normalization", NULL};

static const struct op_role roles[] = {
    OP_ROLE("hidden", struct layernorm_roles, x),
    OP_ROLE("weight", struct layernorm_roles, weight),
    OP_ROLE("bias", struct layernorm_roles, bias),
    OP_ROLE("eps", struct layernorm_roles, eps),
    OP_ROLE_OUTPUT("output", struct layernorm_roles, output),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct layernorm_roles *)out = layernorm_roles_of(problem);
}

static const struct op_coverage coverage[] = {
    COVERAGE_OPTION("weight", "weight", "given", "has a weight", "none", "has no weight"),
    COVERAGE_OPTION("bias", "bias", "given", "has a bias", "none", "has no bias"),
    COVERAGE_OPTION("epsilon", "eps", "input", "has an epsilon among its inputs", "hidden", "has a hidden epsilon"),
    COVERAGE_DTYPES("hidden"),
    COVERAGE_ROWS("hidden"),
    {.name = NULL},
};

const struct op layernorm_op = {
    .name = "layernorm",
    .op_types = op_types,
    .words = op_words,
    .match = match,
    .roles = roles,
    .bind = bind,
    .mistakes = mistakes,
    .coverage = coverage,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = constants,
    .rule = rule,
    .scalar = epsilon_scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .probe = probe,
    .probe_axes = probe_axes,
};
