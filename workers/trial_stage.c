/* A run is staged in the arena, and written down for the runner or for a provider. */
#include "workers/trial_parts.h"

#include <inttypes.h>

#include "base/json.h"

enum { CANARY = TRIAL_CANARY };
static const unsigned char poison[RUN_COUNT] = {0xFF, 0xFE, 0xFD};

/* The first contents lie elsewhere when they come again. */
static const int layout_of[RUN_COUNT] = {0, 1, 1};

static void write_shape(struct buf *out, const struct tensor *tensor)
{
	buf_text(out, "\"shape\":[");
	for (int d = 0; d < tensor->rank; d++)
		buf_printf(out, "%s%" PRId64, d > 0 ? "," : "", tensor->shape[d]);
	buf_text(out, "]");
}

static void write_value(struct buf *out, const struct input_source *scalar)
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

static void write_place(const struct trial *trial, struct buf *out, int index, const char *name,
			const struct tensor *tensor)
{
	buf_printf(out, "%s{\"name\":", out->data[out->length - 1] == '[' ? "" : ",");
	buf_json_string(out, name);
	buf_printf(out, ",\"dtype\":\"%s\",", dtype_name(tensor->dtype));
	write_shape(out, tensor);
	buf_printf(out, ",\"offset\":%" PRId64, trial->layout.offset[index]);
}

/* The second contents, and the same once more, find torch's generators elsewhere: what depends on them is no answer to these
 * inputs. An operation that samples finds them as they were. */
static uint64_t generator_seed(const struct trial *trial, const struct round *round)
{
	bool samples = trial->op == NULL || (trial->op->samples != NULL && trial->op->samples(&round->c));

	return trial->run == RUN_AGAIN && !samples ? round->c.seed + 1 : round->c.seed;
}

static void write_tensors(struct trial *trial, const struct round *round, struct buf *out)
{
	const struct op_problem *problem = &trial->job->problem;

	buf_printf(out, "\"gradients\":%s,\"seed\":%" PRIu64 ",\"arena\":",
		   trial->job->asks == JOB_GRADIENTS ? "true" : "false", generator_seed(trial, round));
	shared_describe(trial_stage_of(trial), out);
	buf_text(out, ",\"inputs\":[");
	for (int i = 0; i < problem->input_count; i++) {
		if (round->in[i].data != NULL) {
			write_place(trial, out, i, problem->inputs[i].name, &round->in[i]);
		} else {
			const struct input_source absent = {.kind = SOURCE_ABSENT};

			buf_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
			buf_json_string(out, problem->inputs[i].name);
			buf_text(out, ",\"value\":");
			write_value(out, problem->inputs[i].rank == OP_SCALAR ? &round->scalar[i] : &absent);
		}
		buf_text(out, "}");
	}
	buf_text(out, "],\"outputs\":[");
	for (int i = 0; i < problem->output_count; i++) {
		write_place(trial, out, problem->input_count + i, problem->outputs[i].name, &round->first[i]);
		buf_text(out, problem->outputs[i].rank == OP_SCALAR ? ",\"scalar\":true}" : ",\"scalar\":false}");
	}
	buf_text(out, "]");
}

/* {"run": {"gradients", "seed", "arena", "inputs": [{"name", "dtype", "shape", "offset"} | {"name", "value"}],
 *          "outputs": [{"name", "dtype", "shape", "offset", "scalar"}]}} */
void trial_write_run(struct trial *trial, const struct round *round, struct buf *out)
{
	buf_text(out, "{\"run\":{");
	write_tensors(trial, round, out);
	buf_text(out, "}}");
}

/* "A":["M","K"] for each tensor: what has the same axis is known by it, for sizes may be equal by chance. */
static void write_axis_names(const struct op_problem *problem, const struct op_arg *args, int count, struct buf *out)
{
	for (int i = 0; i < count; i++) {
		buf_text(out, out->data[out->length - 1] == '{' ? "" : ",");
		buf_json_string(out, args[i].name);
		buf_text(out, ":[");
		for (int d = 0; d < args[i].rank; d++) { /* none of a Python scalar */
			buf_text(out, d > 0 ? "," : "");
			buf_json_string(out, problem->axes[args[i].axis[d]].name);
		}
		buf_text(out, "]");
	}
}

/* {"provide": {"provider", "family", "variant", "name", "op_type", "class", "tags": [text], "axes": {name: value},
 *              "axes_of": {tensor: [name]}, "constants": {name: value}, and what a run has}} */
void trial_write_provide(struct trial *trial, const struct round *round, const char *provider, struct buf *out)
{
	const struct op_problem *problem = &trial->job->problem;
	const char *comma = "";

	buf_text(out, "{\"provide\":{\"provider\":");
	buf_json_string(out, provider);
	buf_text(out, ",\"family\":");
	buf_json_string(out, trial->entry->op->name);
	buf_printf(out, ",\"variant\":%d,\"name\":", round->c.variant);
	buf_json_string(out, problem->name);
	buf_text(out, ",\"op_type\":");
	buf_json_string(out, problem->op_type);
	buf_text(out, ",\"class\":");
	buf_json_string(out, trial->device->calls->class_name(trial->device));
	buf_text(out, ",\"tags\":[");
	for (int i = 0; i < problem->tag_count; i++, comma = ",") {
		buf_text(out, comma);
		buf_json_string(out, problem->tags[i]);
	}
	buf_text(out, "],\"axes\":{");
	comma = "";
	for (int i = 0; i < problem->axis_count; i++, comma = ",") {
		buf_text(out, comma);
		buf_json_string(out, problem->axes[i].name);
		buf_printf(out, ":%" PRId64, round->c.axis[i]);
	}
	buf_text(out, "},\"axes_of\":{");
	write_axis_names(problem, problem->inputs, problem->input_count, out);
	write_axis_names(problem, problem->outputs, problem->output_count, out);
	buf_text(out, "},\"constants\":{");
	comma = "";
	for (int i = 0; i < round->c.constant_count; i++, comma = ",") {
		buf_text(out, comma);
		buf_json_string(out, round->c.constants[i].name);
		buf_text(out, ":");
		buf_json_number(out, round->c.constants[i].value);
	}
	buf_text(out, "},");
	write_tensors(trial, round, out);
	buf_text(out, "}}");
}

/* Canaries, inputs and poison into the arena, in the layout of run `run`. */
int trial_stage(struct trial *trial, const struct round *round, enum trial_run run, struct err *err)
{
	const struct op_problem *problem = &trial->job->problem;
	struct shared *shared = trial_stage_of(trial);
	int64_t *bytes = arena_array(&trial->arena, (size_t)trial_tensor_count(trial), sizeof *bytes);
	int rc = 0;

	for (int i = 0; i < problem->input_count; i++)
		bytes[i] = round->in[i].data == NULL ? 0 : job_tensor_bytes(&round->in[i]);
	for (int i = 0; i < problem->output_count; i++)
		bytes[problem->input_count + i] = job_tensor_bytes(&round->first[i]);
	trial->layout = layout_make(bytes, trial_tensor_count(trial), layout_of[run], &trial->arena);
	for (int g = 0; rc == 0 && g < trial->layout.gap_count; g++) {
		const struct layout_gap *gap = &trial->layout.gaps[g];

		rc = shared_set(shared, gap->begin, CANARY, gap->end - gap->begin, err);
	}
	for (int i = 0; rc == 0 && i < problem->input_count; i++)
		rc = shared_put(shared, trial->layout.offset[i], round->in[i].data, bytes[i], err);
	for (int i = problem->input_count; rc == 0 && i < trial_tensor_count(trial); i++)
		rc = shared_set(shared, trial->layout.offset[i], poison[run], bytes[i], err);
	return rc;
}
