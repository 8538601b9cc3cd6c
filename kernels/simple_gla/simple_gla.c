/* simple_gla - gated linear attention with one gate per head: S <- e^g S + k v^T, output = scale S^T q.
 * kernels/common/linear_attention/recurrence.h describes the tensors. kernels/common/linear_attention/input_values.h
 * describes their values and the tolerances. */
#include "kernels/common/linear_attention/gradient_oracle.h"
#include "kernels/common/linear_attention/input_values.h"
#include "kernels/common/linear_attention/recurrence.h"

static int match(const struct op_problem *problem, struct err *why)
{
	return recurrence_match(RECURRENCE_HEAD_GATE, problem, why);
}

static const char *const op_types[] = {"simple_gla", NULL};

const struct op simple_gla_op = {
    .name = "simple_gla",
    .op_types = op_types,
    .match = match,
    .roles = recurrence_role_names,
    .bind = recurrence_bind,
    .modes = recurrence_mode_names,
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
