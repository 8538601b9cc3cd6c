/* simple_gla - gated linear attention with one gate per head: S <- e^g S + k v^T, output = scale S^T q. For the
 * tensors, see recurrence.h in kernels/common/linear_attention. For the input values, see input_values.h in the same
 * folder; for the tolerances, see input_values.c. */
#include "kernels/common/linear_attention/gradient_oracle.h"
#include "kernels/common/linear_attention/input_values.h"
#include "kernels/common/linear_attention/recurrence.h"

static int match(const struct op_problem *problem, struct err *why)
{
	return recurrence_match(RECURRENCE_HEAD_GATE, problem, why);
}

static const char *const op_types[] = {"simple_gla", NULL};

static const struct op_coverage coverage[] = {
    RECURRENCE_COVERAGE,
    COVERAGE_OPTION("decay", "gamma", "of heads", "has a constant decay of each head", "of tokens",
		    "has a decay of each token"),
    {.name = NULL},
};

const struct op simple_gla_op = {
    .name = "simple_gla",
    .op_types = op_types,
    .match = match,
    .coverage = coverage,
    RECURRENCE_MEMBERS,
};
