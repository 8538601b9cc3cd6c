/* mla_ragged - multi-head latent attention over keys and values that are stored one sequence after the other. In this
 * form, the up-projection weights are not absorbed, and queries and keys have a rotary part, but values do not. The
 * tensors are described in kernels/common/attention/forms.h, which also declares the functions that implement the
 * family. */
#include "kernels/core/op.h"

#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/forms.h"
#include "kernels/common/attention/input_values.h"
#include "kernels/common/attention/sizes.h"

static const char *const op_types[] = {"mla_ragged", NULL};

static int match(const struct op_problem *problem, struct err *why)
{
	return attention_match(problem, ATTENTION_RAGGED, why);
}

static const struct op_coverage coverage[] = {
    ATTENTION_COVERAGE,
    {"D and Dv", coverage_ratio, .role = "q", .axis = -1, .other = "v", .other_axis = -1,
     .values = {{"equal", 1, 1, NULL}, {"different", 0, 0x1p62, "has D != Dv"}}},
    {.name = NULL},
};

const struct op mla_ragged_op = {
    .name = "mla_ragged",
    .op_types = op_types,
    .match = match,
    .roles = attention_role_names,
    .coverage = coverage,
    ATTENTION_MEMBERS,
};
