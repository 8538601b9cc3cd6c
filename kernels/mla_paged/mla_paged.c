/* mla_paged - multi-head latent attention over a paged cache of latents, decode and prefill. The tensors are described
 * in kernels/common/attention/forms.h, which also declares the functions that implement the family. */
#include "kernels/core/op.h"

#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/forms.h"
#include "kernels/common/attention/input_values.h"
#include "kernels/common/attention/sizes.h"

static const char *const op_types[] = {"mla_paged", NULL};

static int match(const struct op_problem *problem, struct err *why)
{
	return attention_match(problem, ATTENTION_LATENT, why);
}

static const struct op_coverage coverage[] = {
    ATTENTION_COVERAGE_QUERIES,
    ATTENTION_COVERAGE,
    ATTENTION_COVERAGE_PAGES,
    {.name = NULL},
};

const struct op mla_paged_op = {
    .name = "mla_paged",
    .op_types = op_types,
    .match = match,
    .roles = attention_latent_role_names,
    .coverage = coverage,
    ATTENTION_MEMBERS,
};
