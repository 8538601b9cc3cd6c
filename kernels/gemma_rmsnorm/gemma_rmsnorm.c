/* gemma_rmsnorm - y = x / sqrt(mean of x^2 + eps) * (1 + w), plain or with a residual added first, as in FlashInfer's
 * norm.gemma_rmsnorm and gemma_fused_add_rmsnorm. For the norm, its inputs and its tolerances, see
 * kernels/common/norm/rms.h.
 *
 * A Gemma norm has the same inputs, the same outputs and the same op_type as any other RMS norm. Only "gemma_" in the
 * definition's name or in its fi_api tag identifies a Gemma norm. A `model:gemma-…` tag does not identify a Gemma norm,
 * because some definitions that were extracted from a Gemma model multiply by w instead of 1 + w.
 *
 * Epsilon is a Python scalar or the value that kernels/core/norm_epsilon.h finds. If there is no such scalar and no
 * such value, epsilon is 1e-6, as in every published Gemma model. */
#include "kernels/core/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/common/norm/rms.h"
#include "kernels/core/norm_epsilon.h"

static const char *const op_types[] = {
    "rmsnorm", "gemma_rmsnorm", "fused_add_rmsnorm", "gemma_fused_add_rmsnorm", "norm", NULL};
static const char *const op_words[] = {"gemma_rmsnorm", "gemma_rms_norm", "gemma_fused_add_rmsnorm", NULL};

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
		return err_set(why, "neither the definition's name nor its fi_api tag contains gemma_");
	return rms_match(problem, why);
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	int count = epsilon_constants(problem, rms_roles_of(problem).eps, "rms_norm_eps", out);

	(void)variant;
	if (count > 0 && isnan(out[0].value)) {
		out[0].value = 1e-6;
		snprintf(out[0].source, sizeof out[0].source, "every published Gemma");
	}
	return count;
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
    .words = op_words,
    .match = match,
    .roles = rms_role_names,
    .bind = rms_bind,
    .mistakes = rms_mistakes,
    .coverage = rms_coverage,
    .sizes = rms_sizes,
    .edges = rms_edges,
    .edge_axes = rms_edge_axes,
    .constants = constants,
    .rule = rms_rule,
    .in_place = op_in_place_namesake,
    .scalar = epsilon_scalar,
    .range = range,
    .reach = rms_reach,
    .fill = fill,
    .check = rms_check,
    .oracle = oracle,
};
