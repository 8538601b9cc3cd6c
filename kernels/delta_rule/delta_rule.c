/* delta_rule - linear attention that corrects the value stored for a key: S <- S + beta k (v - S^T k)^T, output = scale
 * S^T q. For the tensors, see recurrence.h in kernels/common/linear_attention. For the input values, see input_values.h
 * in the same folder; for the tolerances, see input_values.c. */
#include "kernels/common/linear_attention/gradient_oracle.h"
#include "kernels/common/linear_attention/input_values.h"
#include "kernels/common/linear_attention/recurrence.h"

static int match(const struct op_problem *problem, struct err *why)
{
	return recurrence_match(RECURRENCE_DELTA, problem, why);
}

static const char *const op_types[] = {"delta_rule", NULL};

static const struct op_coverage coverage[] = {
    RECURRENCE_COVERAGE,
    RECURRENCE_COVERAGE_BETA,
    {.name = NULL},
};

const struct op delta_rule_op = {
    .name = "delta_rule",
    .op_types = op_types,
    .match = match,
    .coverage = coverage,
    RECURRENCE_MEMBERS,
};
