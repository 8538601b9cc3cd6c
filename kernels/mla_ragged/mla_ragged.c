/* mla_ragged - multi-head latent attention over keys and values that lie one sequence after the other: the form before
 * its weights are absorbed, in which keys have a rotary part that values do not. kernels/attention_ragged.h. */
#include "kernels/op.h"

#include "kernels/attention_inputs.h"
#include "kernels/attention_ragged.h"

static const char *const op_types[] = {"mla_ragged", NULL};

const struct op mla_ragged_op = {
    .name = "mla_ragged",
    .op_types = op_types,
    .match = attention_ragged_match,
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
