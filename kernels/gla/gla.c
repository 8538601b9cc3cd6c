/* gla - gated linear attention with one gate per head and key element: S <- diag(e^g) S + k v^T, output = scale S^T q.
 * For the tensors, see recurrence.h in kernels/common/linear_attention. For the input values, see input_values.h in the
 * same folder; for the tolerances, see input_values.c. */
#include "kernels/common/linear_attention/gradient_oracle.h"
#include "kernels/common/linear_attention/input_values.h"
#include "kernels/common/linear_attention/recurrence.h"

static int match(const struct op_problem *problem, struct err *why)
{
	return recurrence_match(RECURRENCE_KEY_GATE, problem, why);
}

static const char *const op_types[] = {"gla", NULL};

static const struct op_coverage coverage[] = {
    RECURRENCE_COVERAGE,
    {.name = NULL},
};

const struct op gla_op = {
    .name = "gla",
    .op_types = op_types,
    .match = match,
    .coverage = coverage,
    RECURRENCE_MEMBERS,
};
