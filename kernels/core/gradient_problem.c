/* gradient_problem - converts between a definition's problem and the problem of its gradients, in both directions. This
 * file does not depend on any family. */
#include "kernels/core/gradient_bounds.h"

#include <string.h>

static struct op_arg in_definition(const struct op_arg *arg)
{
	struct op_arg out = *arg;

	if (out.rank != OP_SCALAR && out.dtype == DTYPE_FLOAT64)
		out.dtype = DTYPE_FLOAT32;
	return out;
}

struct op_problem gradient_forward_problem(const struct op_problem *gradients, struct gradient_forward *out)
{
	struct op_problem problem = *gradients;

	problem.inputs = out->inputs;
	problem.outputs = out->outputs;
	problem.input_count = problem.output_count = 0;
	for (int i = 0; i < gradients->input_count; i++) {
		struct op_arg arg = in_definition(&gradients->inputs[i]);

		if (gradient_is_step(&arg))
			continue;
		if (!gradient_is_given(&arg)) {
			out->inputs[problem.input_count++] = arg;
			continue;
		}
		arg.name += sizeof GRADIENT_OF_OUTPUT - 1;
		out->outputs[problem.output_count++] = arg;
	}
	return problem;
}

const struct op_case *gradient_forward_of(const struct op_case *c, struct gradient_forward *out)
{
	out->problem = gradient_forward_problem(c->problem, out);
	out->c = *c;
	out->c.problem = &out->problem;
	return &out->c;
}

static struct op_arg renamed(const struct op_arg *arg, const char *prefix, bool in_float64, struct arena *arena)
{
	struct op_arg out = *arg;

	out.name = arena_printf(arena, "%s%s", prefix, arg->name);
	out.optional = false;
	if (in_float64)
		out.dtype = DTYPE_FLOAT64;
	return out;
}

struct op_problem gradient_problem(const struct op_problem *forward, const bool *absent, bool in_float64,
				   struct arena *arena)
{
	struct op_problem problem = *forward;
	struct op_arg *inputs =
	    arena_array(arena, 2 * (size_t)forward->input_count + (size_t)forward->output_count, sizeof *inputs);
	struct op_arg *outputs = arena_array(arena, 2 * (size_t)forward->input_count, sizeof *outputs);

	problem.inputs = inputs;
	problem.outputs = outputs;
	problem.input_count = problem.output_count = 0;
	for (int i = 0; i < forward->input_count; i++) {
		const struct op_arg *input = &forward->inputs[i];

		inputs[problem.input_count] = *input;
		if (in_float64 && gradient_takes(input))
			inputs[problem.input_count].dtype = DTYPE_FLOAT64;
		problem.input_count++;
		if (gradient_takes(input) && !absent[i])
			outputs[problem.output_count++] = renamed(input, GRADIENT_OF_INPUT, in_float64, arena);
	}
	for (int i = 0; i < forward->output_count; i++)
		if (gradient_takes(&forward->outputs[i]))
			inputs[problem.input_count++] =
			    renamed(&forward->outputs[i], GRADIENT_OF_OUTPUT, in_float64, arena);
	for (int i = 0; in_float64 && i < forward->input_count; i++) {
		if (!gradient_takes(&forward->inputs[i]) || absent[i])
			continue;
		inputs[problem.input_count++] = renamed(&forward->inputs[i], GRADIENT_STEP, true, arena);
		outputs[problem.output_count] = renamed(&forward->inputs[i], GRADIENT_SLOPE, true, arena);
		outputs[problem.output_count++].rank = 0;
	}
	return problem;
}
