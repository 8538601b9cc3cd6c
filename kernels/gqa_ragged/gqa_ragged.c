/* gqa_ragged - grouped-query attention over keys and values that are stored one sequence after the other (prefill
 * without a cache). kernels/common/attention/ragged.h implements the family. */
#include "kernels/core/op.h"

#include "kernels/common/attention/input_values.h"
#include "kernels/common/attention/ragged.h"

static const char *const op_types[] = {"gqa_ragged", NULL};

const struct op gqa_ragged_op = {
    .name = "gqa_ragged",
    .op_types = op_types,
    .match = attention_ragged_match,
    .roles = attention_role_names,
    .bind = attention_ragged_bind,
    .modes = attention_mode_names,
    .sizes = attention_ragged_sizes,
    .edges = attention_edges,
    .edge_axes = attention_ragged_edge_axes,
    .rule = attention_ragged_rule,
    .scalar = attention_ragged_scalar,
    .range = attention_ragged_range,
    .reach = attention_ragged_reach,
    .fill = attention_ragged_fill,
    .check = attention_ragged_check,
    .oracle = attention_ragged_oracle,
};
