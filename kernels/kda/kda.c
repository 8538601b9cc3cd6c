/* kda - Kimi delta attention with one gate per head and key element: S <- diag(e^g) S, then
 * S <- S + beta k (v - S^T k)^T, output = scale S^T q. For the tensors, see recurrence.h in
 * kernels/common/linear_attention. For the input values, see input_values.h in the same folder; for the tolerances, see
 * input_values.c. */
#include "kernels/common/linear_attention/gradient_oracle.h"
#include "kernels/common/linear_attention/input_values.h"
#include "kernels/common/linear_attention/recurrence.h"

static int match(const struct op_problem *problem, struct err *why)
{
	return recurrence_match(RECURRENCE_DELTA | RECURRENCE_KEY_GATE, problem, why);
}

static const char *const op_types[] = {"kda", NULL};

static const struct op_coverage coverage[] = {
    RECURRENCE_COVERAGE,
    RECURRENCE_COVERAGE_GATE("has a gate with a lower bound"),
    RECURRENCE_COVERAGE_BETA,
    {.name = NULL},
};

const struct op kda_op = {
    .name = "kda",
    .op_types = op_types,
    .match = match,
    .coverage = coverage,
    RECURRENCE_MEMBERS,
};
