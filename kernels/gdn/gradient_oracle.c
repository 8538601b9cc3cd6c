#include "kernels/gdn/gradient_oracle.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "kernels/common/linear_attention/gradient_oracle.h"
#include "kernels/common/linear_attention/recurrence.h"
#include "kernels/gdn/input_values.h"
#include "kernels/gdn/oracle.h"
#include "kernels/gdn/roles.h"

extern const struct op gdn_op;

enum { DOES = RECURRENCE_DELTA | RECURRENCE_HEAD_GATE };

/* A gdn problem or case in which the gate `a` is renamed to g, the name that
 * kernels/common/linear_attention/recurrence.h requires. */
struct renamed {
	struct op_arg inputs[OP_ARGS], outputs[OP_ARGS];
	struct op_problem problem;
	struct op_case c;
};

static const char *rename_gate(const char *name, const char *gate)
{
	static const struct {
		const char *prefix, *name;
	} forms[] = {{"", "g"}, {GRADIENT_OF_INPUT, "d_g"}, {GRADIENT_STEP, "step:g"}, {GRADIENT_SLOPE, "slope_g"}};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		size_t length = strlen(forms[i].prefix);

		if (strncmp(name, forms[i].prefix, length) == 0 && strcmp(name + length, gate) == 0)
			return forms[i].name;
	}
	return name;
}

/* Renames the gate in the problem of a definition, or in the problem of its gradients. */
static const struct op_problem *rename_problem(const struct op_problem *problem, const char *gate, struct renamed *out)
{
	out->problem = *problem;
	out->problem.inputs = out->inputs;
	out->problem.outputs = out->outputs;
	for (int i = 0; i < problem->input_count; i++) {
		out->inputs[i] = problem->inputs[i];
		out->inputs[i].name = rename_gate(problem->inputs[i].name, gate);
	}
	for (int i = 0; i < problem->output_count; i++) {
		out->outputs[i] = problem->outputs[i];
		out->outputs[i].name = rename_gate(problem->outputs[i].name, gate);
	}
	return &out->problem;
}

/* Returns the variant of the recurrence. The layout of states and the normalisation of q and k come from
 * `gdn_variant`. */
static int variant_of(const struct op_problem *forward, int gdn_variant, const char *gate, struct err *why)
{
	struct renamed renamed;
	int variant = recurrence_match(DOES, rename_problem(forward, gate, &renamed), why);

	if (variant < 0)
		return -1;
	variant &= ~(RECURRENCE_V_FIRST | RECURRENCE_L2NORM);
	return variant | ((gdn_variant & GDN_V_LAST) != 0 ? 0 : RECURRENCE_V_FIRST) |
	       ((gdn_variant & GDN_L2NORM) != 0 ? RECURRENCE_L2NORM : 0);
}

static const struct op_case *rename_case(const struct op_case *c, struct renamed *out)
{
	struct gradient_forward forward;
	const struct op_case *f = gradient_forward_of(c, &forward);
	const char *gate = f->problem->inputs[gdn_roles_of(f->problem).a].name;

	out->c = *c;
	out->c.problem = rename_problem(c->problem, gate, out);
	out->c.variant = variant_of(f->problem, c->variant, gate, NULL);
	return &out->c;
}

static int match(const struct op_problem *forward, struct err *why)
{
	struct gdn_roles roles = gdn_roles_of(forward);

	if (roles.indices >= 0 || roles.buffer >= 0 || roles.frozen >= 0)
		return err_set(why,
			       "a gated delta net with a pool of states or a buffer of intermediate states is used "
			       "only for inference and has no gradients");
	return variant_of(forward, 0, forward->inputs[roles.a].name, why);
}

static struct rule rule(const struct op_case *c, int output)
{
	struct renamed renamed;

	return recurrence_gradient.rule(rename_case(c, &renamed), output);
}

static double scalar(const struct op_case *c, int input)
{
	struct gradient_forward forward;

	return gdn_op.scalar(gradient_forward_of(c, &forward), input);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	return gradient_fill(c, input, out, gdn_fill_for_gradients, err);
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct gradient_forward forward;

	return gdn_check(gradient_forward_of(c, &forward), in, err);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct renamed renamed;

	if (check(c, in, err) != 0)
		return -1;
	return recurrence_gradient.oracle(rename_case(c, &renamed), in, out, err);
}

const struct op gdn_gradient = {
    .name = "gdn_gradient",
    .on_host = true,
    .match = match,
    .rule = rule,
    .scalar = scalar,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .weigh = gradient_weigh,
};
