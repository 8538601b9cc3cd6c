/* simple_gla - gated linear attention with one gate a head: S <- e^g S + k v^T, output = scale S^T q.
 * kernels/recurrence.h says what its tensors are, kernels/recurrence_inputs.h what they hold and within which bounds
 * references are right. */
#include "kernels/recurrence_gradient.h"
#include "kernels/recurrence_inputs.h"

static int match(const struct op_problem *problem, struct err *why)
{
	return recurrence_match("simple_gla", RECURRENCE_HEAD_GATE, problem, why);
}

static const char *const op_types[] = {"simple_gla", NULL};

const struct op simple_gla_op = {
    .name = "simple_gla",
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
