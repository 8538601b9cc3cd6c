/* rmsnorm - y = x / sqrt(mean of x^2 + eps) * w, plain or with a residual added first, as in FlashInfer's norm.rmsnorm
 * and norm.fused_add_rmsnorm. For the norm, its inputs and its tolerances, see kernels/common/norm/rms.h.
 *
 * Epsilon is a hidden constant (kernels/core/norm_epsilon.h), or a Python scalar among the inputs. If no source states
 * epsilon, reftest computes it from the reference's output for tiny inputs. */
#include "kernels/core/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/norm/rms.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/norm_epsilon.h"
#include "kernels/core/take.h"

enum { PROBE_ROWS = 16 };

static const char *const op_types[] = {"rmsnorm", "fused_add_rmsnorm", NULL};
static const char *const op_words[] = {"rmsnorm", "rms_norm", "fused_add_rmsnorm", "fused_add_rms_norm", NULL};

static int match(const struct op_problem *problem, struct err *why)
{
	if (strstr(problem->name, "gemma_") != NULL)
		return err_set(why, "the definition's name contains gemma_; a Gemma norm multiplies by (1 + weight), "
				    "which this op family does not compute");
	return rms_match(problem, why);
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	(void)variant;
	return epsilon_constants(problem, rms_roles_of(problem).eps, "rms_norm_eps", out);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	return rms_fill(c, 0, input, out, err);
}

static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	(void)variant;
	return rms_range(problem, 0, input, out);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	return rms_oracle(c, 0, in, out, err);
}

/* Estimates epsilon from every element of the output. Let m be the mean square of the row: y = x w / sqrt(m + eps), so
 * eps = (x w / y)^2 - m. Returns the number of estimates, and stores the largest mean square in `largest`. */
static int64_t estimate(const struct rms_parts *parts, const struct tensor *answer, double *estimates, double *largest)
{
	double *x = take(parts->columns, sizeof *x), *y = take(parts->columns, sizeof *y);
	double *weight = take(parts->columns, sizeof *weight);
	int64_t count = 0;

	*largest = 0;
	for (int64_t i = 0; i < parts->columns; i++)
		weight[i] = 1;
	if (parts->weight != NULL)
		dtype_load_run(parts->weight->data, parts->weight->dtype, 0, parts->columns, weight);
	for (int64_t row = 0; row < parts->rows; row++) {
		double square = 0;

		rms_read_row(parts, row, x, y);
		dtype_load_run(answer->data, answer->dtype, row * parts->columns, parts->columns, y);
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

/* Sets epsilon to the median of the estimates if they agree. The estimates disagree if the output is not a norm of the
 * inputs. */
static int settle(double *estimates, int64_t count, int64_t elements, double square, double *eps, struct err *err)
{
	if (count * 10 < elements * 9)
		return err_set(
		    err,
		    "the reference's epsilon cannot be determined: for tiny inputs, the reference's output is zero or "
		    "not finite in %lld of %lld elements",
		    (long long)(elements - count), (long long)elements);
	return epsilon_settle(estimates, count, count, square, eps, err);
}

static int probe(const struct op_case *c, const struct tensor *in, const struct tensor *out, struct op_constant *found,
		 struct err *err)
{
	const struct tensor *answer = &out[rms_roles_of(c->problem).output];
	struct rms_parts parts;
	double square;

	if (rms_find_parts(c, in, NULL, &parts, err) != 0)
		return -1;
	if (answer->elements != parts.hidden->elements)
		return err_set(err,
			       "the reference's epsilon cannot be determined: the reference's output has %lld "
			       "elements, but its input has %lld",
			       (long long)answer->elements, (long long)parts.hidden->elements);
	double *estimates = take(parts.hidden->elements, sizeof *estimates);
	int64_t count = estimate(&parts, answer, estimates, &square);
	int status = settle(estimates, count, parts.hidden->elements, square, &found[0].value, err);

	free(estimates);
	return status;
}

static void probe_axes(const struct op_problem *problem, int variant, int64_t *axis)
{
	(void)variant;
	rms_set_axes(problem, PROBE_ROWS, 128, axis);
}

const struct op rmsnorm_op = {
    .name = "rmsnorm",
    .op_types = op_types,
    .words = op_words,
    .match = match,
    .roles = rms_role_names,
    .bind = rms_bind,
    .mistakes = rms_mistakes,
    .coverage = rms_coverage,
    .sizes = rms_sizes,
    .edges = rms_edges,
    .edge_axes = rms_edge_axes,
    .constants = constants,
    .rule = rms_rule,
    .scalar = epsilon_scalar,
    .range = range,
    .reach = rms_reach,
    .fill = fill,
    .check = rms_check,
    .oracle = oracle,
    .probe = probe,
    .probe_axes = probe_axes,
};
