/* trial_stage - fills the shared memory for a run and writes the message to the runner or to the provider. If the
 * runner needs a new field of a case, write the field in trial_write_run and read it in python/runner.py. If the field
 * is the same for all cases of a definition, send it with the reference instead (workers/pool/task.h). */
#include "workers/judge/trial_internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "kernels/core/gradient_bounds.h"
#include "kernels/core/roles.h"

enum { CANARY = TRIAL_CANARY };
static const unsigned char poison[RUN_COUNT] = {0xFF, 0xFE, 0xFD, 0xFC};

/* The layout (0 or 1) of each run. The two runs on the first set of input values have different layouts, in which the
 * tensors have different addresses. */
static const int layout_of[RUN_COUNT] = {0, 1, 1, 0};

static void write_shape(struct buf *out, const struct tensor *tensor)
{
	buf_text(out, "\"shape\":[");
	for (int d = 0; d < tensor->rank; d++)
		buf_printf(out, "%s%" PRId64, d > 0 ? "," : "", tensor->shape[d]);
	buf_text(out, "]");
}

void trial_write_value(struct buf *out, const struct input_source *scalar)
{
	if (scalar->kind == SOURCE_ABSENT)
		buf_text(out, "null");
	else if (scalar->scalar_kind == SCALAR_FLOAT)
		buf_json_number(out, scalar->number);
	else if (scalar->scalar_kind == SCALAR_BOOL)
		buf_text(out, scalar->integer != 0 ? "true" : "false");
	else
		buf_printf(out, "%" PRId64, scalar->integer);
}

void trial_write_place(const struct trial *trial, struct buf *out, int index, const char *name,
		       const struct tensor *tensor)
{
	buf_printf(out, "%s{\"name\":", out->data[out->length - 1] == '[' ? "" : ",");
	buf_json_string(out, name);
	buf_printf(out, ",\"dtype\":\"%s\",", dtype_name(tensor->dtype));
	write_shape(out, tensor);
	buf_printf(out, ",\"offset\":%" PRId64, trial->layout.offset[index]);
}

/* Returns the seed of torch's generators for a run. The last run on the first set of input values has another seed than
 * the first run, so that outputs which depend on the generators differ between the two runs. If the operation draws
 * random samples, or may draw them because the case has no op family, both runs get the same seed. But if the check
 * `seeds` needs different seeds, the two runs get different seeds (trial_changes_seed). */
static uint64_t generator_seed(const struct trial *trial, const struct round *round)
{
	bool samples = trial->op == NULL || (trial->op->samples != NULL && trial->op->samples(&round->c));

	if (trial->run == RUN_EXTRA)
		return trial->extra.kind == EXTRA_SEEDS ? round->c.seed + 1 : round->c.seed;
	samples = samples && !trial_changes_seed(trial);
	return trial->run == RUN_AGAIN && !samples ? round->c.seed + 1 : round->c.seed;
}

/* Returns the value of a scalar for a message to the provider (if `provider` is true) or to the runner. If a
 * description says that a number stands for the default, the provider receives the default itself, because its
 * libraries do not know the description. */
static struct input_source scalar_for(const struct round *round, bool provider, int input)
{
	struct input_source scalar = round->scalar[input];

	if (provider && scalar.kind == SOURCE_SCALAR && round->c.scalar[input] != scalar.number) {
		scalar.number = round->c.scalar[input];
		scalar.integer = (int64_t)scalar.number;
	}
	return scalar;
}

static void write_tensors(struct trial *trial, const struct round *round, bool provider, struct buf *out)
{
	const struct input_source absent = {.kind = SOURCE_ABSENT};
	const struct op_problem *problem = &trial->job->problem;

	buf_printf(out, "\"gradients\":%s,\"seed\":%" PRIu64 ",\"arena\":",
		   trial->job->asks == JOB_GRADIENTS ? "true" : "false", generator_seed(trial, round));
	shared_memory_describe(trial_stage_of(trial), out);
	buf_text(out, ",\"inputs\":[");
	for (int i = 0; i < problem->input_count; i++) {
		if (round->in[i].data != NULL) {
			trial_write_place(trial, out, i, problem->inputs[i].name, &round->in[i]);
		} else {
			const struct input_source scalar =
			    problem->inputs[i].rank == OP_SCALAR ? scalar_for(round, provider, i) : absent;

			buf_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
			buf_json_string(out, problem->inputs[i].name);
			buf_text(out, ",\"value\":");
			trial_write_value(out, &scalar);
		}
		buf_text(out, "}");
	}
	buf_text(out, "],\"outputs\":[");
	for (int i = 0; i < problem->output_count; i++) {
		trial_write_place(trial, out, problem->input_count + i, problem->outputs[i].name, &round->first[i]);
		buf_text(out, problem->outputs[i].rank == OP_SCALAR ? ",\"scalar\":true}" : ",\"scalar\":false}");
	}
	buf_text(out, "]");
}

/* {"run": {"extra", "gradients", "seed", "arena", "inputs": [{"name", "dtype", "shape", "offset"} | {"name", "value"}],
 *          "outputs": [{"name", "dtype", "shape", "offset", "scalar"}]}} */
void trial_write_run(struct trial *trial, const struct round *round, struct buf *out)
{
	buf_text(out, "{\"run\":{");
	if (extra_run_mode(trial) != NULL)
		buf_printf(out, "\"extra\":\"%s\",", extra_run_mode(trial));
	/* the latency is measured after the last run, so that the measured calls cannot affect outputs that are
	 * compared */
	if (trial->job->bench && trial_is_last_run(trial))
		buf_text(out, "\"bench\":true,");
	write_tensors(trial, round, false, out);
	buf_text(out, "}}");
}

/* A ground truth is measured on the first set of input values. */
static void write_bench(const struct trial *trial, const struct round *round, struct buf *out)
{
	if (trial->job->bench && round->c.contents == CONTENTS_FIRST)
		buf_text(out, "\"bench\":true,");
}

/* {"truth": name, "run": as for the runner of the reference} */
void trial_write_truth(struct trial *trial, const struct round *round, const char *name, struct buf *out)
{
	buf_text(out, "{\"truth\":");
	buf_json_string(out, name);
	buf_text(out, ",\"run\":{");
	write_bench(trial, round, out);
	write_tensors(trial, round, false, out);
	buf_text(out, "}}");
}

/* Writes the roles and modes of the arguments. In a gradient case, these are the roles and modes of the forward
 * operation. */
static void write_roles(const struct trial *trial, struct buf *out)
{
	struct gradient_forward forward;
	struct op_problem problem = trial->job->problem;

	if (trial->job->asks == JOB_GRADIENTS)
		problem = gradient_forward_problem(&trial->job->problem, &forward);
	struct op_names names = op_names_of(trial->entry->op, &problem, trial->variant);

	op_names_write(&names, &problem, out);
}

/* Writes the name of the FlashInfer function to call, and for each input the name of the function's argument. Only
 * python/libraries/fi_api.py needs these fields. */
static void write_api(const struct trial *trial, struct buf *out)
{
	const struct job *job = trial->job;

	buf_text(out, "\"*\",\"roles\":{},\"output_roles\":{},\"modes\":[],\"api\":");
	buf_json_string(out, job->fi_api != NULL ? job->fi_api : "");
	buf_text(out, ",\"arguments\":{");
	for (int i = 0; job->fi_api != NULL && i < job->problem.input_count; i++) {
		buf_text(out, i > 0 ? "," : "");
		buf_json_string(out, job->problem.inputs[i].name);
		buf_text(out, ":");
		buf_json_string(out, job->arguments[i]);
	}
	buf_text(out, "}");
}

/* {"provide": {"provider", "family", "roles": {role: input}, "output_roles": {role: output}, "modes": [name], "name",
 *              "class", "axes": {name: value}, "constants": {name: value}, and the fields of a run}} */
void trial_write_provide(struct trial *trial, const struct round *round, const char *provider, struct buf *out)
{
	const struct op_problem *problem = &trial->job->problem;
	const char *comma = "";

	buf_text(out, "{\"provide\":{\"provider\":");
	buf_json_string(out, provider);
	buf_text(out, ",\"family\":");
	if (strcmp(provider, "fi_api") == 0) {
		write_api(trial, out);
	} else {
		buf_json_string(out, trial->entry->op->name);
		buf_text(out, ",");
		write_roles(trial, out);
	}
	buf_text(out, ",\"name\":");
	buf_json_string(out, problem->name);
	buf_text(out, ",\"class\":");
	buf_json_string(out, trial->device->calls->class_name(trial->device));
	buf_text(out, ",\"axes\":{");
	for (int i = 0; i < problem->axis_count; i++, comma = ",") {
		buf_text(out, comma);
		buf_json_string(out, problem->axes[i].name);
		buf_printf(out, ":%" PRId64, round->c.axis[i]);
	}
	buf_text(out, "},\"constants\":{");
	comma = "";
	for (int i = 0; i < round->c.constant_count; i++, comma = ",") {
		buf_text(out, comma);
		buf_json_string(out, round->c.constants[i].name);
		buf_text(out, ":");
		buf_json_number(out, round->c.constants[i].value);
	}
	buf_text(out, "},");
	write_bench(trial, round, out);
	write_tensors(trial, round, true, out);
	buf_text(out, "}}");
}

int trial_canary_parts(const struct trial *trial, struct shared_part *parts)
{
	for (int g = 0; g < trial->layout.gap_count; g++) {
		const struct layout_gap *gap = &trial->layout.gaps[g];

		parts[g] = (struct shared_part){.offset = gap->begin, .byte = CANARY, .length = gap->end - gap->begin};
	}
	return trial->layout.gap_count;
}

/* Writes canaries, inputs and poison for the outputs to the shared memory, in the layout of run `run`. */
int trial_stage(struct trial *trial, const struct round *round, enum trial_run run, struct err *err)
{
	enum judge_part before = judge_seconds_turn(&trial->context->clock, JUDGE_STAGES);
	const struct op_problem *problem = &trial->job->problem;
	int count = trial_tensor_count(trial), part_count = 0, rc;
	int64_t *bytes = arena_array(&trial->arena, (size_t)count, sizeof *bytes);
	struct shared_part *parts;

	for (int i = 0; i < problem->input_count; i++)
		bytes[i] = round->in[i].data == NULL ? 0 : job_tensor_bytes(&round->in[i]);
	for (int i = 0; i < problem->output_count; i++)
		bytes[problem->input_count + i] = job_tensor_bytes(&round->first[i]);
	trial->layout = layout_make(bytes, count, layout_of[run], &trial->arena);
	parts = arena_array(&trial->arena, (size_t)(trial->layout.gap_count + count), sizeof *parts);
	part_count = trial_canary_parts(trial, parts);
	for (int i = 0; i < count; i++)
		parts[part_count++] = (struct shared_part){.offset = trial->layout.offset[i],
							   .memory = i < problem->input_count ? round->in[i].data : NULL,
							   .byte = poison[run],
							   .length = bytes[i]};
	rc = shared_memory_write_parts(trial_stage_of(trial), parts, part_count, err);
	judge_seconds_turn(&trial->context->clock, before);
	return rc;
}
