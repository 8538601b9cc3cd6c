#include "kernels/common/norm/rms.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/norm/rms_input_values.h"
#include "kernels/core/mistakes.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/core/row_counts.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/take.h"

enum { PARALLEL_FROM = 1 << 14 }; /* if a tensor has fewer elements, one thread is faster than several */

/* Rejects unknown dtypes of inputs and outputs, and Python scalars that are not an epsilon. */
static int refuse_dtypes(const struct op_problem *problem, struct err *why)
{
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		if (input->rank == OP_SCALAR && strncmp(input->name, "eps", 3) != 0)
			return err_set(why, "input '%s' is a Python scalar; in a norm, only the epsilon may be a scalar",
				       input->name);
		if (input->rank != OP_SCALAR && !match_is_float(input))
			return err_set(why, "input '%s' is %s; expected float32, float16 or bfloat16", input->name,
				       dtype_name(input->dtype));
	}
	for (int i = 0; i < problem->output_count; i++)
		if (!match_is_float(&problem->outputs[i]))
			return err_set(why, "output '%s' is %s; expected float32, float16 or bfloat16",
				       problem->outputs[i].name, dtype_name(problem->outputs[i].dtype));
	return 0;
}

/* Rejects tensors of a wrong shape. The weight must have one axis, which is the last axis of the output. Every other
 * tensor must have the shape of the output. */
static int refuse_shapes(const struct op_problem *problem, struct err *why)
{
	struct rms_roles roles = rms_roles_of(problem);
	const struct op_arg *output = &problem->outputs[0];
	char found[512], expected[512];

	op_shape_text(problem, output, expected, sizeof expected);
	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		bool weight = i == roles.weight && input->axis[0] == output->axis[output->rank - 1];

		if (input->rank == OP_SCALAR || weight || (i != roles.weight && match_same_shape(input, output)))
			continue;
		return err_set(why, "input '%s' has shape %s; expected %s like output '%s', or only the last axis of "
			"that shape",
			       input->name, op_shape_text(problem, input, found, sizeof found), expected, output->name);
	}
	if (problem->output_count == 2 && !match_same_shape(&problem->outputs[1], output))
		return err_set(why, "output '%s' has shape %s; expected %s like output '%s'", problem->outputs[1].name,
			       op_shape_text(problem, &problem->outputs[1], found, sizeof found), expected,
			       output->name);
	return 0;
}

/* Rejects a definition whose name contains the name of an activation function as a word, such as "fused_rmsnorm_silu".
 * Such a definition computes more than a norm. */
static int refuse_activations(const struct op_problem *problem, struct err *why)
{
	static const char *const activations[] = {"silu", "gelu", "relu", "sigmoid", "swish", "swiglu", "geglu", "tanh"};
	const char *end;

	for (const char *word = problem->name; *word != '\0'; word = *end == '_' ? end + 1 : end) {
		size_t length = strcspn(word, "_");

		end = word + length;
		for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
			if (strlen(activations[i]) == length && memcmp(activations[i], word, length) == 0)
				return err_set(why, "the definition's name says '%s', which a norm does not compute",
					       activations[i]);
	}
	return 0;
}

int rms_match(const struct op_problem *problem, struct err *why)
{
	int scalars = 0;

	if (refuse_activations(problem, why) != 0)
		return -1;
	if (problem->output_count < 1 || problem->output_count > 2 || problem->outputs[0].rank < 1)
		return err_set(why,
			       "the definition has %d outputs; expected a tensor and, optionally, the updated residual",
			       problem->output_count);
	if (refuse_dtypes(problem, why) != 0)
		return -1;
	for (int i = 0; i < problem->input_count; i++)
		scalars += problem->inputs[i].rank == OP_SCALAR;
	struct rms_roles roles = rms_roles_of(problem);
	int tensors = problem->input_count - scalars, needed = roles.residual >= 0 ? 3 : 2;

	if (roles.weight < 0)
		return err_set(why, "the inputs lack a weight (a tensor with one axis)");
	if (roles.hidden < 0 || tensors != needed || scalars > 1)
		return err_set(
		    why,
		    "the definition has %d inputs; expected a hidden state, a weight and, optionally, a residual and "
		    "an epsilon",
		    problem->input_count);
	if (problem->output_count == 2 && roles.residual < 0)
		return err_set(why, "the definition has two outputs, but none of its inputs is a residual to update");
	if (refuse_shapes(problem, why) != 0)
		return -1;
	return roles.residual >= 0 ? RMS_FUSED_ADD : RMS_PLAIN;
}

/* Returns the number of rows of the first medium case. There are enough rows for a spike in every column
 * (rms_input_values.h), unless the tensor would then have more than 2^25 elements. */
static int64_t medium_rows(int64_t columns)
{
	int64_t cover = RMS_SPIKE_ROW + (columns - 1) / RMS_SPIKES + 1, most = (1 << 25) / columns;

	return rows_at_least(rows_past_block(columns, ROWS_ELEMENTS), cover < most ? cover : most,
	                     rows_block(columns));
}

void rms_set_axes(const struct op_problem *problem, int64_t rows, int64_t columns, int64_t *axis)
{
	const struct op_arg *output = &problem->outputs[0];
	int last = output->axis[output->rank - 1];

	op_start_axes(problem, 1, axis);
	op_set_axis(problem, last, columns, axis);
	rows_divide(problem, output, -1, rows, axis);
}

static int64_t columns_of(const struct op_problem *problem, int64_t if_var)
{
	const struct op_axis *axis = &problem->axes[problem->outputs[0].axis[problem->outputs[0].rank - 1]];

	return axis->var ? if_var : axis->value;
}

/* The functions rows_of_size and medium_rows determine the numbers of rows. */
int rms_sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	int64_t columns = columns_of(problem, size == SIZE_SMALL ? 128 : 4096), rows[ROWS_CASES];
	int count = rows_of_size(size, columns, ROWS_ELEMENTS, rows);

	(void)variant;
	if (size == SIZE_MEDIUM)
		rows[0] = medium_rows(columns);
	for (int i = 0; i < count && i < room; i++)
		rms_set_axes(problem, rows[i], columns, axis + i * problem->axis_count);
	return count < room ? count : room;
}

/* Returns the range of an input. Activations exceed the largest values known from trained models. Weights reach the
 * smallest and the largest magnitudes of trained models, with both signs. An epsilon input has a value that no
 * reference hard-codes. */
bool rms_range(const struct op_problem *problem, int offset, int input, struct op_range *out)
{
	struct rms_roles roles = rms_roles_of(problem);

	if (input == roles.eps)
		*out = (struct op_range){4e-6, 3e-5};
	else if (input == roles.weight)
		*out = rms_is_loud(problem) ? (struct op_range){-60, 60}
		       : offset != 0        ? (struct op_range){-7, 7}
		                            : (struct op_range){-14, 14};
	else
		*out = (struct op_range){-16000, 16000};
	return true;
}

/* For the axis of the rows, returns the number of rows of the medium size. If several axes form the rows, returns 1 for
 * each of them. */
struct op_reach rms_reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *output = &problem->outputs[0];
	int last = output->axis[output->rank - 1];
	int64_t columns = columns_of(problem, 4096);

	(void)variant;
	if (axis == last)
		return (struct op_reach){4096, 0};
	for (int d = 0; d + 1 < output->rank; d++)
		if (output->axis[d] == axis && output->rank == 2)
			return (struct op_reach){medium_rows(columns), rows_block(columns)};
	return (struct op_reach){1, 0};
}

const struct op_edge rms_edges[] = {{"no_rows", "if the input has no rows, the output has no rows"}, {NULL, NULL}};

bool rms_edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	(void)edge;
	return op_edge_rows(rms_sizes, problem, variant, 0, axis);
}

struct rule rms_rule(const struct op_case *c, int output)
{
	bool exact = rms_is_exact(c) && !(rms_eps(c) > 1e-3);

	switch (c->problem->outputs[output].dtype) {
	case DTYPE_FLOAT16:
		return exact ? (struct rule){0, 0x1p-12, 1} : (struct rule){0x1p-24, 0x1p-10, 1};
	case DTYPE_BFLOAT16:
		return exact ? (struct rule){0, 0x1p-9, 1} : (struct rule){0x1p-126, 0x1p-7, 1};
	default:
		return (struct rule){0x1p-126, 1e-5, 1};
	}
}

int rms_find_parts(const struct op_case *c, const struct tensor *in, struct tensor *out, struct rms_parts *parts,
		   struct err *err)
{
	struct rms_roles roles = rms_roles_of(c->problem);

	*parts = (struct rms_parts){.hidden = &in[roles.hidden], .eps = rms_eps(c), .mistake = c->mistake};
	if (in[roles.weight].data != NULL)
		parts->weight = &in[roles.weight];
	if (roles.residual >= 0 && in[roles.residual].data != NULL)
		parts->residual = &in[roles.residual];
	if (out != NULL) {
		parts->output = &out[roles.output];
		parts->updated = roles.updated >= 0 ? &out[roles.updated] : NULL;
	}
	parts->columns = parts->hidden->rank > 0 ? parts->hidden->shape[parts->hidden->rank - 1] : 0;
	parts->rows = parts->columns > 0 ? parts->hidden->elements / parts->columns : 0;
	if (parts->hidden->data == NULL)
		return err_set(err, "the hidden state is absent, so there is nothing to normalise");
	if ((parts->weight != NULL && parts->weight->elements != parts->columns) ||
	    (parts->residual != NULL && parts->residual->elements != parts->hidden->elements))
		return err_set(err, "the shapes of the inputs of %s do not match each other", c->problem->name);
	return 0;
}

void rms_read_row(const struct rms_parts *parts, int64_t row, double *x, double *scratch)
{
	int64_t first = row * parts->columns;

	dtype_load_run(parts->hidden->data, parts->hidden->dtype, first, parts->columns, x);
	if (parts->residual == NULL)
		return;
	dtype_load_run(parts->residual->data, parts->residual->dtype, first, parts->columns, scratch);
	for (int64_t i = 0; i < parts->columns; i++)
		x[i] += scratch[i];
}

static double factor_of(const struct rms_parts *parts, const double *x)
{
	double squares = 0, sum = 0, mean, count = (double)parts->columns;

	for (int64_t i = 0; i < parts->columns; i++)
		squares += x[i] * x[i], sum += x[i];
	mean = squares / count;
	switch (parts->mistake) {
	case RMS_EPS_OUTSIDE:
		return 1 / sqrt(mean) + parts->eps;
	case RMS_SUM:
		return 1 / sqrt(squares + parts->eps);
	case RMS_VARIANCE:
		return 1 / sqrt(mean - sum / count * (sum / count) + parts->eps);
	default:
		return 1 / sqrt(mean + parts->eps);
	}
}

/* Normalises one row. factors[c] is offset + w[c]. `x` and `y` have space for one row. */
static void normalise_row(const struct rms_parts *parts, int64_t row, const double *factors, double *x, double *y)
{
	rms_read_row(parts, row, x, y);
	if (parts->mistake == RMS_ROUNDED_SUM) {
		dtype_store_run(y, parts->hidden->dtype, 0, parts->columns, x);
		dtype_load_run(y, parts->hidden->dtype, 0, parts->columns, x);
	}
	double inverse = factor_of(parts, x);

	for (int64_t i = 0; i < parts->columns; i++)
		y[i] = x[i] * inverse * factors[i];
	dtype_store_run(parts->output->data, parts->output->dtype, row * parts->columns, parts->columns, y);
	if (parts->updated != NULL)
		dtype_store_run(parts->updated->data, parts->updated->dtype, row * parts->columns, parts->columns, x);
}

int rms_check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	if (check_epsilon(c, rms_roles_of(c->problem).eps, err) != 0)
		return -1;
	return check_all_finite(c, in, err);
}

int rms_oracle(const struct op_case *c, int offset, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct rms_parts parts;

	if (rms_find_parts(c, in, out, &parts, err) != 0)
		return -1;
	double *factors = take(parts.columns, sizeof *factors);

	if (parts.weight != NULL)
		dtype_load_run(parts.weight->data, parts.weight->dtype, 0, parts.columns, factors);
	for (int64_t i = 0; i < parts.columns; i++)
		factors[i] = parts.weight != NULL ? factors[i] + offset : 1;
#pragma omp parallel if (parts.hidden->elements > PARALLEL_FROM)
	{
		double *x = take(parts.columns, sizeof *x), *y = take(parts.columns, sizeof *y);

#pragma omp for
		for (int64_t row = 0; row < parts.rows; row++)
			normalise_row(&parts, row, factors, x, y);
		free(x);
		free(y);
	}
	free(factors);
	return 0;
}

const struct op_mistake rms_mistakes[] = {
    {.says = "eps was added to the inverse root, not to the mean square", .in_oracle = RMS_EPS_OUTSIDE},
    {.says = "the sum of squares was used in place of their mean", .in_oracle = RMS_SUM},
    {.says = "the variance was used in place of the mean square", .in_oracle = RMS_VARIANCE},
    {.says = "the sum of hidden state and residual was rounded before the norm", .in_oracle = RMS_ROUNDED_SUM},
    {.says = "the weight was 1 + w", .before = before_add, .role = "weight", .by = 1},
    {.says = "the weight was w, not 1 + w", .before = before_add, .role = "weight", .by = -1},
    {.says = NULL},
};
