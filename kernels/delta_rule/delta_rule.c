/* delta_rule - linear attention that corrects what it holds: S <- S + beta k (v - S^T k)^T, output = scale S^T q.
 * kernels/recurrence.h says what its tensors are, kernels/recurrence_inputs.h what they hold and within which bounds
 * references are right. */
#include "kernels/recurrence_gradient.h"
#include "kernels/recurrence_inputs.h"

static int match(const struct op_problem *problem, struct err *why)
{
	return recurrence_match("delta_rule", RECURRENCE_DELTA, problem, why);
}

static const char *const op_types[] = {"delta_rule", NULL};

const struct op delta_rule_op = {
    .name = "delta_rule",
    .op_types = op_types,
    .match = match,
    .sizes = recurrence_sizes,
    .edges = recurrence_edges,
    .edge_axes = recurrence_edge_axes,
    .rule = recurrence_rule,
    .scalar = recurrence_scalar,
    .range = recurrence_range,
    .reach = recurrence_reach,
    .fill = recurrence_fill,
    .check = recurrence_check,
    .oracle = recurrence_oracle,
    .gradient = &recurrence_gradient,
};
