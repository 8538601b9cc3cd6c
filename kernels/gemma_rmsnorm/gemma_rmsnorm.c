/* gemma_rmsnorm - y = x / sqrt(mean of x^2 + eps) * (1 + w), plain or with a residual added first: the norm, its inputs
 * and its bounds are kernels/rms.h's. FlashInfer's norm.gemma_rmsnorm and gemma_fused_add_rmsnorm compute this.
 *
 * In its schema a Gemma norm is any other RMS norm, and it comes under the same op_type. What tells is "gemma_" in the
 * definition's name or in its fi_api tag. A `model:gemma-…` tag does not: definitions exist that were taken from a
 * Gemma and yet apply the plain weight.
 *
 * Epsilon: a Python scalar, or what kernels/epsilon.h finds attested, or the 1e-6 of every published Gemma. */
#include "kernels/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/epsilon.h"
#include "kernels/rms.h"

static const char *const op_types[] = {
    "rmsnorm", "gemma_rmsnorm", "fused_add_rmsnorm", "gemma_fused_add_rmsnorm", "norm", NULL};

static bool is_gemma(const struct op_problem *problem)
{
	bool found = strstr(problem->name, "gemma_") != NULL || strstr(problem->op_type, "gemma") != NULL;

	for (int i = 0; i < problem->tag_count; i++)
		found |= strncmp(problem->tags[i], "fi_api:", 7) == 0 && strstr(problem->tags[i], "gemma_") != NULL;
	return found;
}

static int match(const struct op_problem *problem, struct err *why)
{
	if (!is_gemma(problem))
		return err_set(why, "neither its name nor its fi_api tag speaks of a gemma_ norm");
	return rms_match(problem, why);
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	(void)variant;
	if (rms_roles_of(problem).eps >= 0)
		return 0;
	out[0] = epsilon_constant(problem, "rms_norm_eps");
	if (isnan(out[0].value)) {
		out[0].value = 1e-6;
		snprintf(out[0].source, sizeof out[0].source, "every published Gemma");
	}
	return 1;
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	return rms_fill(c, 1, input, out, err);
}

static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	(void)variant;
	return rms_range(problem, 1, input, out);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	return rms_oracle(c, 1, in, out, err);
}

const struct op gemma_rmsnorm_op = {
    .name = "gemma_rmsnorm",
    .op_types = op_types,
    .match = match,
    .sizes = rms_sizes,
    .edges = rms_edges,
    .edge_axes = rms_edge_axes,
    .constants = constants,
    .rule = rms_rule,
    .leaves = op_leaves_namesake,
    .scalar = rms_scalar,
    .range = range,
    .reach = rms_reach,
    .fill = fill,
    .check = rms_check,
    .oracle = oracle,
};
