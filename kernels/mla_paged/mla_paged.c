/* mla_paged - multi-head latent attention over a paged cache of latents, decode and prefill.
 * kernels/common/attention/paged.h implements the family. */
#include "kernels/core/op.h"

#include "kernels/common/attention/input_values.h"
#include "kernels/common/attention/paged.h"

static const char *const op_types[] = {"mla_paged", NULL};

static int match(const struct op_problem *problem, struct err *why)
{
	return attention_paged_match(problem, ATTENTION_LATENT, why);
}

const struct op mla_paged_op = {
    .name = "mla_paged",
    .op_types = op_types,
    .match = match,
    .roles = attention_latent_role_names,
    .bind = attention_paged_bind,
    .modes = attention_mode_names,
    .sizes = attention_paged_sizes,
    .edges = attention_edges,
    .edge_axes = attention_paged_edge_axes,
    .rule = attention_paged_rule,
    .scalar = attention_paged_scalar,
    .range = attention_paged_range,
    .reach = attention_paged_reach,
    .fill = attention_paged_fill,
    .check = attention_paged_check,
    .oracle = attention_paged_oracle,
};
