/* trial_save - writes the tensors of a case to a safetensors file: the inputs ("input.NAME"), the outputs of the
 * reference ("reference.NAME"), and the outputs of the ground truth ("truth.NAME"). If there are two sets of input
 * values, the file has the set on which the reference fails. All other data is in the metadata of the file, in the
 * entry "case", which is a JSON object:
 *
 *   {"seed", "scalars": {name: value}, "outputs": [{"name", "dtype", "atol", "rtol", "hit_ratio", "ground_truth",
 *    "failed": bool, "by_family": bool}], "message": text | null}
 *
 * "failed" is true if the reference failed on this output. "by_family" is true if the op family compares this output by
 * its own rule, which is not elementwise. */
#include "workers/judge/trial_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dataset/safetensors.h"

enum { HEAD_ALIGNMENT = 8 };

struct saved {
	const char *group, *name;
	const struct tensor *tensor;
};

/* Returns whether the output differs from ground truth `at`. */
static bool differs_from(const struct trial *trial, const struct round *round, int output, int at)
{
	for (int k = 0; k < round->output_count; k++)
		if (round->outputs[k].status == STATUS_FAILED && !round->of_input[k] &&
		    strcmp(round->outputs[k].name, trial->job->problem.outputs[output].name) == 0 &&
		    strcmp(round->outputs[k].ground_truth, trial->tried[at].name) == 0)
			return true;
	return false;
}

static void write_metadata(const struct trial *trial, const struct round *round, const int *truth, struct buf *out)
{
	const struct op_problem *problem = &trial->job->problem;
	const struct op *op = trial->op;

	buf_printf(out, "{\"seed\": %" PRIu64 ", \"scalars\": {", round->c.seed);
	for (int i = 0, written = 0; i < problem->input_count; i++) {
		const struct input_source absent = {.kind = SOURCE_ABSENT};

		if (round->in[i].data != NULL)
			continue;
		buf_text(out, written++ > 0 ? ", " : "");
		buf_json_string(out, problem->inputs[i].name);
		buf_text(out, ": ");
		trial_write_value(out, problem->inputs[i].rank == OP_SCALAR ? &round->scalar[i] : &absent);
	}
	buf_text(out, "}, \"outputs\": [");
	for (int i = 0; i < problem->output_count; i++) {
		const struct rule rule = trial_rule_for(trial, round, i, truth[i], -1);
		bool by_family = op != NULL && (op->weigh != NULL || (op->judges != NULL && op->judges(&round->c, i)));

		buf_text(out, i > 0 ? ", {\"name\": " : "{\"name\": ");
		buf_json_string(out, problem->outputs[i].name);
		buf_printf(out, ", \"dtype\": \"%s\", \"atol\": ", dtype_name(problem->outputs[i].dtype));
		buf_json_number(out, rule.atol);
		buf_text(out, ", \"rtol\": ");
		buf_json_number(out, rule.rtol);
		buf_text(out, ", \"hit_ratio\": ");
		buf_json_number(out, rule.hit_ratio);
		buf_text(out, ", \"ground_truth\": ");
		buf_json_string(out, truth[i] < 0 ? "" : trial->tried[truth[i]].name);
		bool failed = truth[i] >= 0 && differs_from(trial, round, i, truth[i]);

		buf_printf(out, ", \"failed\": %s, \"by_family\": %s}", failed ? "true" : "false", by_family ? "true" : "false");
	}
	buf_text(out, "], \"message\": ");
	if (trial->verdict.message != NULL)
		buf_json_string(out, trial->verdict.message);
	else
		buf_text(out, "null");
	buf_text(out, "}");
}

/* Returns the last ground truth from which an output differs. If no ground truth differs, returns the first one that
 * was computed, or -1 if none was computed. */
static int truth_of(const struct trial *trial, const struct round *round, int output)
{
	int found = -1;

	for (int at = trial->truths.count - 1; at >= 0; at--) {
		if (!round->answered[at] || round->truth[at][output].data == NULL)
			continue;
		found = at;
		if (differs_from(trial, round, output, at))
			break;
	}
	return found;
}

/* Lists the tensors that the file must have. */
static int list_tensors(const struct trial *trial, const struct round *round, const int *truth, struct saved *list)
{
	const struct op_problem *problem = &trial->job->problem;
	int count = 0;

	for (int i = 0; i < problem->input_count; i++)
		if (round->in[i].data != NULL)
			list[count++] = (struct saved){"input", problem->inputs[i].name, &round->in[i]};
	for (int i = 0; i < problem->output_count; i++) {
		if (truth[i] < 0)
			continue;
		list[count++] = (struct saved){"reference", problem->outputs[i].name, &round->first[i]};
		list[count++] = (struct saved){"truth", problem->outputs[i].name, &round->truth[truth[i]][i]};
	}
	return count;
}

static void write_header(const struct trial *trial, const struct round *round, const int *truth, const struct saved *list,
			 int count, struct buf *out)
{
	struct buf text = {0}, json = {0};
	int64_t offset = 0;

	write_metadata(trial, round, truth, &text);
	buf_text(&json, "{\"__metadata__\": {\"case\": ");
	buf_json_string(&json, text.data);
	buf_text(&json, "}");
	for (int i = 0; i < count; i++) {
		const struct tensor *tensor = list[i].tensor;
		int64_t end = offset + job_tensor_bytes(tensor);

		text.length = 0;
		buf_printf(&text, "%s.%s", list[i].group, list[i].name);
		buf_text(&json, ", ");
		buf_json_string(&json, text.data);
		buf_printf(&json, ": {\"dtype\": \"%s\", \"shape\": [", safetensors_dtype(tensor->dtype));
		for (int d = 0; d < tensor->rank; d++)
			buf_printf(&json, "%s%" PRId64, d > 0 ? ", " : "", tensor->shape[d]);
		buf_printf(&json, "], \"data_offsets\": [%" PRId64 ", %" PRId64 "]}", offset, end);
		offset = end;
	}
	buf_text(&json, "}");
	while (json.length % HEAD_ALIGNMENT != 0)
		buf_text(&json, " ");
	for (int byte = 0; byte < 8; byte++) {
		char c = (char)(json.length >> 8 * byte);

		buf_add(out, &c, 1);
	}
	buf_add(out, json.data, json.length);
	buf_free(&json);
	buf_free(&text);
}

/* Writes one tensor after the other, so that only one of them is in host memory. */
static bool write_data(struct trial *trial, const struct saved *list, int count, FILE *file)
{
	bool good = true;

	for (int i = 0; i < count && good; i++) {
		struct arena arena = {0};
		struct err err = {""};
		size_t bytes = (size_t)job_tensor_bytes(list[i].tensor);
		struct tensor *host = trial_on_host(trial, &arena, list[i].tensor, 1, &err);

		good = host != NULL && fwrite(host->data, 1, bytes, file) == bytes;
		arena_free(&arena);
	}
	return good;
}

void trial_save(struct trial *trial)
{
	if (trial->job == NULL || trial->job->save == NULL || trial->job->asks == JOB_GRADIENTS || trial->rounds == 0)
		return;
	const struct op_problem *problem = &trial->job->problem;
	struct round *round = &trial->round[trial->rounds > 1 && trial->round[0].missed == REASON_NONE &&
					    trial->round[1].missed != REASON_NONE];
	struct saved *list = arena_array(&trial->arena, (size_t)(problem->input_count + 2 * problem->output_count) + 1,
					 sizeof *list);
	int *truth = arena_array(&trial->arena, (size_t)problem->output_count + 1, sizeof *truth);
	struct buf head = {0};

	if (trial_hold_inputs(trial, round) != 0)
		return;
	for (int i = 0; i < problem->output_count; i++)
		truth[i] = truth_of(trial, round, i);
	int count = list_tensors(trial, round, truth, list);

	write_header(trial, round, truth, list, count, &head);
	FILE *file = fopen(trial->job->save, "wbe");
	bool good = file != NULL && fwrite(head.data, 1, head.length, file) == head.length &&
		    write_data(trial, list, count, file);

	if (file != NULL && (fclose(file) != 0 || !good))
		remove(trial->job->save);
	buf_free(&head);
}
