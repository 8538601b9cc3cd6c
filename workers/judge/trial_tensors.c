/* trial_tensors - prepares the tensors of a case: their shapes, their memory, and the values of the inputs. */
#include "workers/judge/trial_internal.h"

#include <string.h>

#include "workers/judge/case_inputs.h"
#include "workers/judge/message_text.h"
#include "workers/protocol/layout.h"

int trial_tensor_count(const struct trial *trial)
{
	return trial->job->problem.input_count + trial->job->problem.output_count;
}

/* Returns which values an input must have after the run: the old values, the values of an output, or values that no
 * output has. If an output has another dtype or another size than the input, its values cannot replace those of the
 * input. The input must then keep its old values. */
struct op_in_place trial_in_place(const struct trial *trial, const struct round *round, int input)
{
	const struct op_in_place kept = {OP_KEPT, true};
	const struct op_problem *problem = &trial->job->problem;
	const struct tensor *before = &round->in[input];
	struct op_in_place out;

	if (trial->op == NULL || trial->op->in_place == NULL || before->rank == OP_SCALAR ||
	    trial->job->inputs[input].kind == SOURCE_ABSENT)
		return kept;
	out = trial->op->in_place(&round->c, input);
	if (out.place >= 0 && out.place < problem->output_count &&
	    (round->first[out.place].dtype != before->dtype || round->first[out.place].elements != before->elements))
		return kept;
	return out;
}

/* Returns true if no output has the values that the input must have after the run, and if ground truth `slot` computes
 * these values. Builtin computes such values. If builtin is not among the ground truths, a ground truth that is Python
 * source computes them: it writes them to its own copy of the input. All other ground truths compute only outputs. */
static bool trial_has_own_truth(const struct trial *trial, const struct round *round, int input, int slot)
{
	const int builtin = trial_builtin_at(trial);

	return trial_in_place(trial, round, input).place >= trial->job->problem.output_count &&
	       (builtin < 0 ? trial->truths.items[slot].program : slot == builtin);
}

/* Returns the size in bytes of every tensor in the shared arena, inputs first. Both sets of input values have equal
 * sizes. */
static const int64_t *tensor_bytes(struct trial *trial)
{
	const struct op_problem *problem = &trial->job->problem;
	const struct round *round = &trial->round[0];
	int64_t *bytes = arena_array(&trial->arena, (size_t)trial_tensor_count(trial), sizeof *bytes);

	for (int i = 0; i < problem->input_count; i++)
		if (trial->job->inputs[i].kind != SOURCE_ABSENT)
			bytes[i] = job_tensor_bytes(&round->in[i]);
	for (int i = 0; i < problem->output_count; i++)
		bytes[problem->input_count + i] = job_tensor_bytes(&round->first[i]);
	return bytes;
}

/* Returns how many private copies of a tensor the judge needs. The memory in which the judge fills the inputs does not
 * count. An output needs a copy of the reference's result and one for each ground truth. An input that the reference
 * may write to needs a copy of its values after the run. If the values that such an input must have are not those of an
 * output, the input also needs a copy for each ground truth that computes these values. */
static int private_copies(const struct trial *trial, const struct round *round, int tensor)
{
	if (tensor >= trial->job->problem.input_count)
		return 1 + trial->truths.count;
	int copies = trial_in_place(trial, round, tensor).place != OP_KEPT;

	for (int slot = 0; slot < trial->truths.count; slot++)
		copies += trial_has_own_truth(trial, round, tensor, slot);
	return copies;
}

/* Returns the size in bytes of the private memory: the copies of all tensors, and the buffer `spare`. */
static int64_t private_bytes(const struct trial *trial, const int64_t *bytes)
{
	int64_t total = LAYOUT_ALIGN;

	for (int i = 0; trial->extra.fit && i < trial->job->problem.output_count; i++)
		total = layout_add(total, extra_runs_bytes(&trial->round[0].first[i]));
	for (int r = 0; r < trial->rounds; r++)
		for (int i = 0; i < trial_tensor_count(trial); i++)
			for (int copies = private_copies(trial, &trial->round[r], i); copies > 0; copies--)
				total = layout_add(total, layout_round(bytes[i]));
	return total;
}

static int64_t input_bytes(const struct trial *trial, const int64_t *bytes)
{
	int64_t total = 0;

	for (int i = 0; i < trial->job->problem.input_count; i++)
		total = layout_add(total, layout_round(bytes[i]));
	return total;
}

static int64_t arena_bytes(struct trial *trial, const int64_t *given)
{
	int inputs = trial->job->problem.input_count;
	int64_t *bytes = arena_array(&trial->arena, (size_t)trial_tensor_count(trial), sizeof *bytes);
	int64_t most = 0;

	memcpy(bytes, given, (size_t)trial_tensor_count(trial) * sizeof *bytes);
	for (int i = inputs; trial->extra.fit && i < trial_tensor_count(trial); i++)
		bytes[i] = extra_runs_bytes(&trial->round[0].first[i - inputs]);

	for (int layout = 0; layout < 2; layout++) {
		int64_t total = layout_make(bytes, trial_tensor_count(trial), layout, &trial->arena).total;

		most = total > most ? total : most;
	}
	return most;
}

/* Returns the job with the scalars of this set of input values. */
static const struct job *job_of(const struct trial *trial, enum op_contents contents)
{
	return trial->set_job[contents] != NULL ? trial->set_job[contents] : trial->job;
}

/* Reserves the memory for this case. If there is not enough memory, sets the status `skipped`. If one set of inputs is
 * small, reserves memory for both sets. */
static int reserve(struct trial *trial, const int64_t *bytes)
{
	struct device *device = trial->device;
	struct arena *arena = &trial->arena;
	struct judge_context_need need = {arena_bytes(trial, bytes), private_bytes(trial, bytes), 0, 0, 0, 0};
	struct err err = {""};
	enum judge_context_answer answer;

	trial->input_bytes = input_bytes(trial, bytes);
	trial->one_set = trial->rounds == 1 || trial->input_bytes > trial->context->keep / 2;
	need.inputs = trial->one_set ? trial->input_bytes : 2 * trial->input_bytes;
	for (int r = 0; trial->op != NULL && r < trial->rounds; r++) {
		int64_t scratch = device->calls->truth_scratch(device, trial->op, &trial->round[r].c);

		need.scratch = scratch > need.scratch ? scratch : need.scratch;
	}
	answer = judge_context_reserve(trial->context, &need, &err);
	if (answer == CONTEXT_ERROR)
		trial_decide_error(trial, &err);
	else if (answer == CONTEXT_NO_MEMORY)
		trial_decide(trial, STATUS_SKIPPED, REASON_MEMORY,
			     arena_printf(arena, "the case needs %s on %s, but only %s are free", format_bytes(arena, need.need),
					  trial->context->device_name, format_bytes(arena, need.available)));
	return answer == CONTEXT_OK ? 0 : -1;
}

static unsigned char *take_private(unsigned char **at, int64_t bytes)
{
	unsigned char *memory = *at;

	*at += layout_round(bytes);
	return memory;
}

static void place_tensors(struct trial *trial, struct round *round, const int64_t *bytes, unsigned char **at)
{
	const struct op_problem *problem = &trial->job->problem;

	for (int i = 0; i < problem->output_count; i++) {
		round->first[i].data = take_private(at, bytes[problem->input_count + i]);
		for (int slot = 0; slot < trial->truths.count; slot++)
			round->truth[slot][i].data = take_private(at, bytes[problem->input_count + i]);
	}
	for (int i = 0; i < problem->input_count; i++) {
		if (trial_in_place(trial, round, i).place != OP_KEPT)
			round->left[i].data = take_private(at, bytes[i]);
		for (int slot = 0; slot < trial->truths.count; slot++)
			if (trial_has_own_truth(trial, round, i, slot))
				round->truth[slot][op_own_place(problem, i)].data = take_private(at, bytes[i]);
	}
}

/* Gives each input of a round an address in `at`, the memory in which the judge keeps inputs. */
static void place_inputs(struct trial *trial, struct round *round, unsigned char *at)
{
	const struct op_problem *problem = &trial->job->problem;

	if (!trial->one_set && round->c.contents == CONTENTS_SECOND)
		at += trial->input_bytes;
	for (int i = 0; i < problem->input_count; i++)
		if (round->in[i].rank != OP_SCALAR && trial->job->inputs[i].kind != SOURCE_ABSENT)
			round->in[i].data = take_private(&at, job_tensor_bytes(&round->in[i]));
}

static void decide_ruling(struct trial *trial, const struct rejection *rejection)
{
	const char *message = arena_string(&trial->arena, rejection->why.text);

	if (rejection->reason == REASON_INPUTS)
		message = trial_inputs_message(trial, message);
	trial_decide(trial, rejection->status, rejection->reason, message);
}

int trial_hold_inputs(struct trial *trial, struct round *round)
{
	struct rejection rejection = {STATUS_SKIPPED, REASON_MEMORY, {""}}; /* the rejection if case_inputs_fill sets
									     * none */
	enum op_contents contents = round->c.contents;
	unsigned char *memory;

	if (trial->held[contents])
		return 0;
	enum judge_part before = judge_seconds_turn(&trial->context->clock, JUDGE_INPUTS);

	if (trial->one_set)
		trial->held[CONTENTS_FIRST] = trial->held[CONTENTS_SECOND] = false;
	memory = judge_context_take_inputs(trial->context, trial->one_set ? trial->input_bytes : 2 * trial->input_bytes,
					   &rejection.why);
	if (memory != NULL) {
		place_inputs(trial, round, memory);
		trial->held[contents] = case_inputs_fill(trial->device, trial->context->tensors, job_of(trial, contents),
							 trial->op, &round->c, round->in, &rejection) == 0;
	}
	if (!trial->held[contents])
		decide_ruling(trial, &rejection);
	judge_seconds_turn(&trial->context->clock, before);
	return trial->held[contents] ? 0 : -1;
}

void trial_drop_inputs(struct trial *trial)
{
	if (judge_context_drop_inputs(trial->context))
		trial->held[CONTENTS_FIRST] = trial->held[CONTENTS_SECOND] = false;
}

/* Initialises the case and the tensors of a round. The tensors have no memory yet. */
static void begin_round(struct trial *trial, struct round *round, const int64_t *axis, enum op_contents contents)
{
	const struct job *job = job_of(trial, contents);
	const struct op_problem *problem = &trial->job->problem;
	buf_free(&round->misses);
	memset(round, 0, sizeof *round);
	round->truth = arena_array(&trial->arena, (size_t)trial->truths.count, sizeof *round->truth);
	round->c = (struct op_case){.problem = problem,
				    .variant = trial->variant,
				    .axis = axis,
				    .probe = trial->probing,
				    .constant_count = job->constant_count,
				    .absent = case_inputs_absent(job)};
	if (!trial->probing) {
		round->c.edge = job->edge;
		round->c.given = case_inputs_given(job);
	}
	op_case_set_contents(&round->c, job->seed, contents);
	memcpy(round->c.constants, trial->constants, sizeof round->c.constants);
	for (int i = 0; i < problem->input_count; i++) {
		round->in[i] = round->left[i] = job_tensor(&problem->inputs[i], axis);
		if (problem->inputs[i].rank != OP_SCALAR)
			continue;
		round->scalar[i] = case_inputs_scalar(job, trial->op, &round->c, i);
		case_inputs_set_scalar(job, trial->op, &round->c, i);
	}
	for (int i = 0; i < problem->output_count; i++) {
		round->first[i] = job_tensor(&problem->outputs[i], axis);
		if (round->first[i].rank == OP_SCALAR) /* the runner stores a returned number as a 0-D tensor */
			round->first[i].rank = 0;
		for (int slot = 0; slot < trial->truths.count; slot++)
			round->truth[slot][i] = round->first[i];
	}
	for (int slot = 0; slot < trial->truths.count; slot++)
		for (int i = 0; i < problem->input_count; i++)
			round->truth[slot][op_own_place(problem, i)] = round->in[i];
}

/* Returns whether this case has a second set of input values. Inputs from a workload are the same in both sets.
 * Therefore there is a second set only if reftest generates at least one input, or if the definition's code has made
 * two sets. */
static bool has_second_contents(const struct trial *trial)
{
	const struct job *job = trial->job;

	if (!job_runs_on(job->runs, CONTENTS_FIRST) || !job_runs_on(job->runs, CONTENTS_SECOND))
		return false;
	if (!trial->probing && trial->custom.sets > 1)
		return true;
	for (int i = 0; i < job->problem.input_count; i++)
		if ((trial->op != NULL || trial_is_checked(trial)) && !trial->probing && job->inputs[i].kind == SOURCE_RANDOM)
			return true;
	return false;
}

/* Fills both sets of inputs, and checks that the inputs are valid. If the memory has room for only one set
 * (trial->one_set), fills and checks only the first set. */
static int make_inputs(struct trial *trial)
{
	for (int r = trial->one_set ? 0 : trial->rounds - 1; r >= 0; r--) {
		struct rejection rejection = {.why = {""}};

		if (trial_hold_inputs(trial, &trial->round[r]) != 0)
			return -1;
		if (trial->probing ||
		    case_inputs_check(trial->device, job_of(trial, trial->round[r].c.contents), trial->op, &trial->round[r].c, trial->round[r].in,
				      &trial->arena, &rejection) == 0)
			continue;
		decide_ruling(trial, &rejection);
		return -1;
	}
	return 0;
}

/* Returns the size in bytes of all tensors of the case. */
static int64_t all_bytes(const struct trial *trial, const int64_t *bytes)
{
	int64_t total = 0;

	for (int i = 0; i < trial_tensor_count(trial); i++)
		total = layout_add(total, layout_round(bytes[i]));
	return total;
}

/* Prepares the case for the axis lengths `axis`. Returns 0 if the inputs are ready in private memory, and -1 if the
 * status of the case is already set. */
int trial_arrange(struct trial *trial, const int64_t *axis, bool probing)
{
	const int64_t *bytes;
	unsigned char *at;

	trial->probing = probing;
	trial->judging = 0;
	trial->rounds = has_second_contents(trial) ? 2 : 1;
	trial->held[CONTENTS_FIRST] = trial->held[CONTENTS_SECOND] = false;
	for (int r = 0; r < trial->rounds; r++)
		begin_round(trial, &trial->round[r], axis,
			    probing || job_runs_on(trial->job->runs, CONTENTS_FIRST) ? (enum op_contents)r : CONTENTS_SECOND);
	bytes = tensor_bytes(trial);
	trial->extra.fit = extra_runs_fit(trial, all_bytes(trial, bytes));
	if (reserve(trial, bytes) != 0)
		return -1;
	at = trial->context->private;
	trial->spare = take_private(&at, LAYOUT_ALIGN);
	for (int r = 0; r < trial->rounds; r++)
		place_tensors(trial, &trial->round[r], bytes, &at);
	for (int i = 0; trial->extra.fit && i < trial->job->problem.output_count; i++)
		trial->extra.out[i].data = take_private(&at, extra_runs_bytes(&trial->round[0].first[i]));
	judge_seconds_turn(&trial->context->clock, JUDGE_INPUTS);
	int rc = make_inputs(trial);

	judge_seconds_turn(&trial->context->clock, JUDGE_OTHER);
	return rc;
}
