/* mla_ragged - multi-head latent attention over keys and values that are stored one sequence after the other. The
 * weights are not absorbed in this form, and only keys have a rotary part. kernels/common/attention/ragged.h implements
 * the family. */
#include "kernels/core/op.h"

#include "kernels/common/attention/input_values.h"
#include "kernels/common/attention/ragged.h"

static const char *const op_types[] = {"mla_ragged", NULL};

const struct op mla_ragged_op = {
    .name = "mla_ragged",
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
