#include "workers/protocol/chain_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "dataset/truth_chain.h"
#include "workers/protocol/job.h"

struct step {
	struct op_problem problem;
	const struct op_entry *entry;
	int variant;
	struct op_constant constants[OP_CONSTANTS];
	int constant_count;
	const struct chain_step *said;
};

struct chain_plan {
	const char *text;
	const struct op_problem *problem; /* the problem of the definition */
	const struct chain *chain;
	struct op_arg *tensors; /* all tensors: the inputs, the outputs, and the tensors that steps pass to later
				 * steps */
	int tensor_count;
	struct step steps[CHAIN_STEPS];
};

static const char *const *names_of(const struct op_arg *args, int count, struct arena *arena)
{
	const char **names = arena_array(arena, (size_t)count, sizeof *names);

	for (int i = 0; i < count; i++)
		names[i] = args[i].name;
	return names;
}

static const struct chain *read_chain(const char *text, const struct op_problem *problem, struct arena *arena,
				      struct err *err)
{
	const struct json_text json_text = {"ground_truth", text, strlen(text), 1};
	const char **axes = arena_array(arena, (size_t)problem->axis_count, sizeof *axes);
	cJSON *json = json_parse(&json_text, err);

	if (json == NULL)
		return NULL;
	for (int i = 0; i < problem->axis_count; i++)
		axes[i] = problem->axes[i].name;
	const struct chain_scope scope = {axes,
					  names_of(problem->inputs, problem->input_count, arena),
					  names_of(problem->outputs, problem->output_count, arena),
					  problem->axis_count,
					  problem->input_count,
					  problem->output_count};
	const struct chain *chain = chain_read(&json_text, NULL, json, &scope, arena, err);

	cJSON_Delete(json);
	return chain;
}

static void list_tensors(struct chain_plan *plan, struct arena *arena)
{
	const struct op_problem *problem = plan->problem;
	int given = problem->input_count + problem->output_count;

	plan->tensor_count = given + plan->chain->tensor_count;
	plan->tensors = arena_array(arena, (size_t)plan->tensor_count, sizeof *plan->tensors);
	memcpy(plan->tensors, problem->inputs, (size_t)problem->input_count * sizeof *plan->tensors);
	memcpy(plan->tensors + problem->input_count, problem->outputs, (size_t)problem->output_count * sizeof *plan->tensors);
	for (int i = 0; i < plan->chain->tensor_count; i++) {
		const struct chain_tensor *from = &plan->chain->tensors[i];
		struct op_arg *to = &plan->tensors[given + i];

		*to = (struct op_arg){.name = from->name, .dtype = from->dtype, .rank = from->rank};
		memcpy(to->axis, from->axis, (size_t)from->rank * sizeof *from->axis);
	}
}

static const struct op_arg *args_of(const struct chain_plan *plan, const struct chain_arg *said, int count,
				    struct arena *arena)
{
	struct op_arg *args = arena_array(arena, (size_t)count, sizeof *args);

	for (int i = 0; i < count; i++) {
		args[i] = plan->tensors[said[i].tensor];
		args[i].name = said[i].name;
	}
	return args;
}

/* Sets the constants of a step's operation (such as an epsilon that no input states) to the values in the chain. */
static int set_constants(struct step *step, int number, struct err *err)
{
	const struct op *op = step->entry->op;

	step->constant_count = op->constants != NULL ? op->constants(&step->problem, step->variant, step->constants) : 0;
	for (int i = 0; i < step->said->constant_count; i++) {
		struct op_constant *found = NULL;

		for (int k = 0; k < step->constant_count; k++)
			if (strcmp(step->constants[k].name, step->said->constants[i]) == 0)
				found = &step->constants[k];
		if (found == NULL)
			return err_set(err, "ground_truth/%d (%s): the operation has no constant \"%s\"", number, step->said->op,
				       err_show(step->said->constants[i]).text);
		found->value = step->said->values[i];
		snprintf(found->source, sizeof found->source, "ground_truth");
	}
	for (int k = 0; k < step->constant_count; k++)
		if (isnan(step->constants[k].value))
			return err_set(err, "ground_truth/%d (%s): nothing states the value of %s; add \"constants\": {\"%s\": …}",
				       number, step->said->op, step->constants[k].name, step->constants[k].name);
	return 0;
}

static int make_step(struct chain_plan *plan, const struct kernels_api *api, int number, struct arena *arena,
		     struct err *err)
{
	struct step *step = &plan->steps[number];
	const struct chain_step *said = &plan->chain->steps[number];
	struct err why = {""};

	step->said = said;
	step->problem = (struct op_problem){.name = plan->problem->name,
					    .op_type = said->op,
					    .description = said->description,
					    .axes = plan->problem->axes,
					    .axis_count = plan->problem->axis_count,
					    .inputs = args_of(plan, said->inputs, said->input_count, arena),
					    .input_count = said->input_count,
					    .outputs = args_of(plan, said->outputs, said->output_count, arena),
					    .output_count = said->output_count};
	step->entry = api->find(&step->problem, &step->variant, &why);
	if (step->entry == NULL)
		return err_set(err, "ground_truth/%d (%s): %s", number, err_show(said->op).text, why.text);
	if (step->entry->op->judge != NULL || step->entry->op->samples != NULL)
		return err_set(err, "ground_truth/%d (%s): this op family judges outputs by rules of its own, so the "
				    "operation cannot be a step of a chain",
			       number, said->op);
	return set_constants(step, number, err);
}

struct chain_plan *chain_plan_make(const struct kernels_api *api, const char *text, const struct op_problem *problem,
				   struct arena *arena, struct err *err)
{
	struct chain_plan *plan = arena_alloc(arena, sizeof *plan);

	memset(plan, 0, sizeof *plan);
	plan->text = text;
	plan->problem = problem;
	plan->chain = read_chain(text, problem, arena, err);
	if (plan->chain == NULL)
		return NULL;
	list_tensors(plan, arena);
	for (int i = 0; i < plan->chain->step_count; i++)
		if (make_step(plan, api, i, arena, err) != 0)
			return NULL;
	return plan;
}

const char *chain_plan_version(const struct chain_plan *plan, struct arena *arena)
{
	struct buf all = {0};
	char hex[DIGEST_HEX];

	buf_printf(&all, "%s\n", plan->text);
	for (int i = 0; i < plan->chain->step_count; i++) {
		const struct step *step = &plan->steps[i];

		buf_printf(&all, "%s variant %d\n", step->entry->truth_digest, step->variant);
		for (int k = 0; k < step->constant_count; k++)
			buf_printf(&all, "%s %.17g\n", step->constants[k].name, step->constants[k].value);
	}
	const struct digest digest = digest_of(all.data, all.length);

	buf_free(&all);
	digest_hex(&digest, hex);
	return arena_string(arena, hex);
}

/* Converts a case of the definition to a case of one step. */
static struct op_case case_of(const struct step *step, const struct op_case *c)
{
	struct op_case out = {.problem = &step->problem,
			      .variant = step->variant,
			      .axis = c->axis,
			      .seed = c->seed,
			      .constant_count = step->constant_count,
			      .given = ~(uint64_t)0,
			      .contents = c->contents};

	memcpy(out.constants, step->constants, sizeof out.constants);
	for (int i = 0; i < step->said->input_count; i++) {
		int tensor = step->said->inputs[i].tensor;

		if (tensor >= c->problem->input_count)
			continue;
		out.scalar[i] = c->scalar[tensor];
		out.absent |= (c->absent >> tensor & 1) << i;
	}
	return out;
}

static bool makes(const struct chain_step *step, const bool *needed)
{
	for (int i = 0; i < step->output_count; i++)
		if (needed[step->outputs[i].tensor])
			return true;
	return false;
}

struct rule chain_plan_rule(const struct chain_plan *plan, const struct op_case *c, int output)
{
	bool needed[CHAIN_STEPS * CHAIN_ARGS] = {false};
	struct rule sum = {.hit_ratio = 1};

	needed[plan->problem->input_count + output] = true;
	for (int number = plan->chain->step_count - 1; number >= 0; number--) {
		const struct step *step = &plan->steps[number];
		const struct op_case at = case_of(step, c);
		struct rule widest = {.hit_ratio = 1};

		if (!makes(step->said, needed))
			continue;
		for (int i = 0; i < step->said->output_count; i++) {
			if (!needed[step->said->outputs[i].tensor])
				continue;
			struct rule rule = step->entry->op->rule(&at, i);

			widest.atol = fmax(widest.atol, rule.atol);
			widest.rtol = fmax(widest.rtol, rule.rtol);
			widest.hit_ratio = fmin(widest.hit_ratio, rule.hit_ratio);
		}
		sum.atol += widest.atol;
		sum.rtol += widest.rtol;
		sum.hit_ratio = fmin(sum.hit_ratio, widest.hit_ratio);
		for (int i = 0; i < step->said->input_count; i++)
			needed[step->said->inputs[i].tensor] = true;
	}
	return sum;
}

static int compute_step(const struct step *step, int number, const struct op_case *c, struct tensor *tensors,
			struct err *err)
{
	const struct op_case at = case_of(step, c);
	struct tensor in[OP_ARGS] = {{0}}, out[OP_PLACES] = {{0}};
	const struct op *op = step->entry->op;
	struct err why = {""};

	for (int i = 0; i < step->said->input_count; i++)
		in[i] = tensors[step->said->inputs[i].tensor];
	for (int i = 0; i < step->said->output_count; i++)
		out[i] = tensors[step->said->outputs[i].tensor];
	if ((op->check != NULL && op->check(&at, in, &why) != 0) || op->oracle(&at, in, out, &why) != 0)
		return err_set(err, "ground_truth/%d (%s): %s", number, step->said->op, why.text);
	return 0;
}

int chain_plan_compute(const struct chain_plan *plan, const struct op_case *c, const struct tensor *in, struct tensor *out,
		       struct err *err)
{
	int inputs = plan->problem->input_count, outputs = plan->problem->output_count, rc = 0;
	struct arena arena = {0};
	struct tensor *tensors = arena_array(&arena, (size_t)plan->tensor_count, sizeof *tensors);

	memcpy(tensors, in, (size_t)inputs * sizeof *tensors);
	memcpy(tensors + inputs, out, (size_t)outputs * sizeof *tensors);
	for (int i = inputs + outputs; i < plan->tensor_count; i++) {
		tensors[i] = job_tensor(&plan->tensors[i], c->axis);
		tensors[i].data = arena_alloc(&arena, (size_t)job_tensor_bytes(&tensors[i]) + 1);
	}
	for (int i = 0; rc == 0 && i < plan->chain->step_count; i++)
		rc = compute_step(&plan->steps[i], i, c, tensors, err);
	arena_free(&arena);
	return rc;
}
