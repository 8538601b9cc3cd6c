/* trial - performs the steps of a trial:
 *
 * - begin: Read the job, and find the op family and the constants. If the definition does not specify a constant, first
 *   run a probing case, which has one run and no verdict.
 * - make, store: If the definition's own code makes inputs, another process calls it (trial_custom_inputs.c).
 * - arrange: Prepare the tensors of the case, their memory, and both sets of input values.
 * - stage: Write canaries, inputs, and poison for the outputs to the shared arena, and write the message to the runner.
 * - ran: After each run, check that canaries and inputs are unchanged, and check the outputs' shapes and dtypes.
 * - ran, after the first run: Copy the outputs, then stage and request the run on the second set of input values.
 * - ran, after the second run: Copy the outputs, then stage the first set again, at other addresses in the shared arena
 *   and with other seeds for torch's generators. Skip the second and third run if job.runs says so.
 * - ran, after the third run: Check that the outputs of the first and the third run are equal bit for bit.
 * - ran, after the third run, if the case is small and has no ground truth: Request extra runs, each for one check.
 * - ran, after the last run: Give the verdict. The op family may check the outputs of both sets together: for example,
 *   random samples must differ if the seeds differ.
 * - think: While the runner works, compare the outputs of the previous run with the ground truth, and compute the
 *   ground truth for the current run.
 *
 * The second and the third run find a reference that keeps results between calls: its outputs are wrong for the second
 * set of input values, or for the first set when this set is repeated. If a set of inputs is large, the judge's memory
 * holds only one of the two sets at a time. Very large inputs are freed while the reference runs, because the reference
 * and its allocator's cache may need the memory. For such inputs, the ground truth is computed right after a run, when
 * the inputs have been filled again.
 *
 * If there are several failures, the verdict reports the one that is found first. Before each run, the outputs' memory
 * is filled with byte values (poison) that differ from run to run. Therefore an output that the reference never writes
 * differs between the runs, and is reported as nondeterministic. */
#include "workers/judge/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kernels/core/gradient_bounds.h"
#include "workers/judge/agreement.h"
#include "workers/judge/message_text.h"
#include "workers/judge/trial_internal.h"

/* The beginning of the message if a failure occurs only with the second set of input values. */
#define ON_SECOND "on the second set of input values (same shapes, called right after the first set)"

/* Sets the status and the reason of the verdict, unless they are already set. */
void trial_decide(struct trial *trial, enum status status, enum reason reason, const char *message)
{
	if (trial->decided)
		return;
	trial->decided = true;
	trial->verdict.status = status;
	trial->verdict.reason = reason;
	trial->verdict.message = message;
}

void trial_decide_error(struct trial *trial, const struct err *err)
{
	trial_decide(trial, STATUS_ERROR, REASON_GROUND_TRUTH, arena_string(&trial->arena, err->text));
}

void trial_add_finding(struct trial *trial, const char *sentence)
{
	struct verdict *verdict = &trial->verdict;
	const char **findings = arena_array(&trial->arena, (size_t)verdict->finding_count + 1, sizeof *findings);

	for (int i = 0; i < verdict->finding_count; i++)
		findings[i] = verdict->findings[i];
	findings[verdict->finding_count++] = sentence;
	verdict->findings = findings;
}

/* ---- ground truths ---- */

bool trial_is_builtin(const struct truth *truth)
{
	return strcmp(truth->name, "builtin") == 0;
}

static void find_truths(struct trial *trial)
{
	struct truth *builtin;

	trial->truths = trial->job->truths;
	if (trial->truths.count == 0 && trial->entry != NULL) {
		builtin = arena_alloc(&trial->arena, sizeof *builtin);
		*builtin = (struct truth){.name = "builtin", .version = trial->entry->truth_digest};
		trial->truths = (struct truths){builtin, 1, false, TRUTHS_NAMED};
	}
	for (int i = 0; i < trial->truths.count; i++)
		trial->tried[i] = (struct tried_truth){
		    .name = trial->truths.items[i].name, .version = trial->truths.items[i].version, .margin = NAN};
}

/* Returns the index of builtin in the list of ground truths to try, or -1 if builtin is not in the list. */
int trial_builtin_at(const struct trial *trial)
{
	for (int i = 0; i < trial->truths.count; i++)
		if (trial_is_builtin(&trial->truths.items[i]))
			return i;
	return -1;
}

/* Returns the memory in which the current run is staged: the memory shared with the runner, or with the process that
 * computes a ground truth. */
struct shared_memory *trial_stage_of(struct trial *trial)
{
	return trial->answer_memory != NULL ? trial->answer_memory : &trial->context->shared;
}

/* ---- the family and its constants ---- */

static int find_family(struct trial *trial)
{
	const struct job *job = trial->job;
	struct err why = {""};

	if (job->op == NULL)
		return 0;
	trial->entry = trial->context->kernels->api->by_name(job->op);
	if (trial->entry == NULL) {
		err_set(&why, "%s has no op family '%s'; run `make` again", trial->context->kernels->path, job->op);
		trial_decide_error(trial, &why);
		return -1;
	}
	trial->op = trial->entry->op;
	if (job->asks == JOB_GRADIENTS) {
		struct gradient_forward forward;
		struct op_problem problem = gradient_forward_problem(&job->problem, &forward);

		trial->variant = trial->op->match(&problem, &why);
		trial->op = trial->op->gradient;
		if (trial->op == NULL)
			trial->variant = err_set(&why, "op family '%s' has no gradients; run `make` again", job->op);
	} else {
		trial->variant = trial->op->match(&job->problem, &why);
	}
	if (trial->variant < 0)
		trial_decide_error(trial, &why);
	return trial->variant < 0 ? -1 : 0;
}

/* Copies the constants from the job. If the job has no value for a constant, uses the value that probing recovered in
 * an earlier case of this definition, if there is one. */
static void take_constants(struct trial *trial)
{
	const struct judge_context *context = trial->context;

	memcpy(trial->constants, trial->job->constants, sizeof trial->constants);
	for (int i = 0; i < trial->job->constant_count; i++)
		for (int k = 0; isnan(trial->constants[i].value) && k < context->recovered_count; k++)
			if (strcmp(trial->constants[i].name, context->recovered[k].name) == 0)
				trial->constants[i].value = context->recovered[k].value;
}

static const struct op_constant *unknown_constant(const struct trial *trial)
{
	for (int i = 0; trial->op != NULL && i < trial->job->constant_count; i++)
		if (isnan(trial->constants[i].value))
			return &trial->constants[i];
	return NULL;
}

/* ---- the verdict ---- */

static void list_constants(struct trial *trial)
{
	int count = trial->op == NULL ? 0 : trial->job->constant_count;
	struct named_value *values = arena_array(&trial->arena, (size_t)count, sizeof *values);

	for (int i = 0; i < count; i++) {
		const struct op_constant *constant = &trial->constants[i];

		if (isnan(constant->value))
			continue;
		values[trial->verdict.constant_count++] =
		    (struct named_value){constant->name, constant->source, constant->value};
		if (constant->conflict[0] != '\0')
			trial_add_finding(trial, constant->conflict);
		if (isnan(trial->job->constants[i].value))
			trial_add_finding(trial, arena_printf(&trial->arena,
							      "%s is unattested: nothing in the definition states "
							      "its value; the outputs of the reference imply that "
							      "it is %g",
							      constant->name, constant->value));
	}
	trial->verdict.constants = values;
}

/* Adds to the verdict the ground truth on which it is based, and the ground truths that were skipped. If no ground
 * truth was computed, the first one in the list of ground truths to try is added. If the user requested all ground
 * truths, a ground truth also counts as skipped if it was not computed before the verdict became final. If builtin is
 * the only ground truth to try, only its name and its version are added. */
static void list_ground_truths(struct trial *trial)
{
	struct verdict *verdict = &trial->verdict;
	const struct truths *truths = &trial->truths;
	bool all = truths->all && truths->count > 1;
	int decider = -1, asked = 0;

	if (truths->count == 0)
		return;
	for (int i = truths->count - 1; i >= 0; i--)
		if (trial->round[0].answered[i] || trial->round[1].answered[i])
			decider = i;
	verdict->ground_truth = truths->items[decider < 0 ? 0 : decider].name;
	verdict->ground_truth_version = truths->items[decider < 0 ? 0 : decider].version;
	if (truths->count == 1 && trial_is_builtin(&truths->items[0]))
		return;
	for (int i = 0; all && i < truths->count; i++)
		if (!trial->round[0].answered[i] && trial->tried[i].passed_over == NULL) {
			trial_pass_over(trial, &trial->round[0], i, false, "not computed, because the case already "
									   "had a verdict");
			trial->tried[i].not_asked = true;
		}
	for (int r = 0; r < trial->rounds; r++)
		asked = trial->round[r].asked > asked ? trial->round[r].asked : asked;
	verdict->tried = trial->tried;
	verdict->tried_count = all ? truths->count : asked;
	verdict->all_tried = all && verdict->tried_count > 0;
}

/* If every ground truth was skipped for this set of input values, returns a message with the reasons. Returns NULL if
 * at least one was not skipped, or if there are no ground truths to try. */
static const char *no_answer(struct trial *trial, const struct round *round)
{
	struct buf text = {0};

	for (int i = 0; i < trial->truths.count; i++)
		if (round->answered[i] || round->passed_over[i] == NULL)
			return NULL;
	for (int i = 0; i < trial->truths.count; i++)
		buf_printf(&text, "%s%s: %s", i > 0 ? "\n" : "no ground truth could be computed: ", trial->tried[i].name,
			   round->passed_over[i]);
	const char *message = text.length == 0 ? NULL : arena_copy(&trial->arena, text.data, text.length);

	buf_free(&text);
	return message;
}

/* Sets the status `skipped` if every ground truth was skipped. */
static void decide_no_answer(struct trial *trial, const struct round *round)
{
	const char *message = no_answer(trial, round);

	if (message != NULL)
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, message);
}

/* Sets the status `skipped` if builtin failed and the outputs agree only with coarse ground truths. A ground truth is
 * coarse if its arithmetic is less precise than the case's tolerance rules. */
static void decide_too_coarse(struct trial *trial, const struct round *round)
{
	struct agreement agreement = {.count = trial->truths.count};
	bool coarse[GROUND_TRUTHS_MAX] = {false};
	int builtin = trial_builtin_at(trial);

	for (int i = 0; i < agreement.count; i++) {
		agreement.answered[i] = round->answered[i];
		coarse[i] = round->coarse[i] != NULL;
	}
	if (!agreement_too_coarse(&agreement, coarse, builtin) || round->passed_over[builtin] == NULL)
		return;
	trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
		     arena_printf(&trial->arena,
				  "no ground truth can decide this case: builtin failed, and the other ground truths "
				  "are less precise than the tolerance rule requires; builtin: %s",
				  round->passed_over[builtin]));
}

/* Sets the status `skipped` if the outputs are correct, but no ground truth could check the new values of an input to
 * which the reference wrote. */
static void decide_unjudged(struct trial *trial, const struct round *round)
{
	int input = trial_unjudged_input(trial, round);

	if (input < 0)
		return;
	trial_decide(
	    trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
	    arena_printf(
		&trial->arena,
		trial_builtin_at(trial) < 0
		    ? "the values that the reference wrote to its input '%s' were not checked: only the ground truth "
		      "builtin computes them; add builtin to --ground-truth"
		    : "the values that the reference wrote to its input '%s' were not checked: only the ground truth "
		      "builtin computes them, and builtin failed",
		trial->job->problem.inputs[input].name));
}

/* Returns whether this output has equal bits for both sets of input values. This can be correct if the output is small,
 * such as an index or a flag. */
static bool output_is_alike(struct trial *trial, int output)
{
	const struct tensor *first = &trial->round[CONTENTS_FIRST].first[output];
	const struct tensor *second = &trial->round[CONTENTS_SECOND].first[output];
	struct err err;

	return trial->device->calls->first_difference(trial->device, first->data, second->data, job_tensor_bytes(first),
						      &err) == -1;
}

static bool answers_are_alike(struct trial *trial)
{
	for (int i = 0; i < trial->job->problem.output_count; i++)
		if (!output_is_alike(trial, i))
			return false;
	return true;
}

/* Sets the status `failed` if an output reused the memory of an earlier call's output. An output with the same values
 * for both sets of input values, such as a constant, may reuse memory, because this changes no values. */
static void decide_overwritten(struct trial *trial)
{
	for (int i = 0; trial->rounds > 1 && i < trial->job->problem.output_count; i++)
		if ((trial->overwrites >> i & 1) != 0 && !output_is_alike(trial, i))
			trial_decide(trial, STATUS_FAILED, REASON_NONDETERMINISTIC,
				     arena_printf(&trial->arena,
						  "output '%s' uses the memory of an output of an earlier call: a "
						  "caller that still uses the earlier output would read changed values",
						  trial->job->problem.outputs[i].name));
}

/* Sets the status `failed` if the outputs differ from the ground truth for one or both sets of input values. */
static void decide_missed(struct trial *trial)
{
	const struct round *first = &trial->round[CONTENTS_FIRST], *second = &trial->round[CONTENTS_SECOND];
	const struct round *missed = first->missed != REASON_NONE ? first : second;

	if (missed->missed == REASON_NONE)
		return;
	if (trial->decided)
		return;
	trial->verdict.second_set = missed == second;
	trial_decide(trial, STATUS_FAILED, missed->missed,
		     arena_printf(&trial->arena, "%s%s%.*s", missed == first ? "" : ON_SECOND ", ",
				  missed == second && answers_are_alike(trial)
				      ? "the reference returned the outputs of the first set of input values again, so it keeps results "
					"between calls; "
				      : "",
				  (int)missed->misses.length, missed->misses.data));
}

/* Merges the results of an output for both sets of input values into one. The merged result is that of the second set
 * if only the second set failed, else that of the first set. The merged margin is the larger of the two margins. */
static void merge_output(struct output_verdict *out, const struct output_verdict *other)
{
	bool zeros = out->metrics.zeros_would_pass && other->metrics.zeros_would_pass;
	bool bits = out->other_bits || other->other_bits;

	if (out->status == STATUS_PASSED && other->status != STATUS_PASSED)
		*out = *other;
	else if (out->status == STATUS_PASSED && other->metrics.margin > out->metrics.margin)
		out->metrics.margin = other->metrics.margin;
	out->metrics.zeros_would_pass = zeros;
	out->other_bits = bits;
}

/* Adds the comparisons to the verdict: one entry for each comparison of an output with a ground truth, and one for each
 * input that the reference wrote to. */
static void list_outputs(struct trial *trial)
{
	struct verdict *verdict = &trial->verdict;
	struct output_verdict *list =
	    arena_array(&trial->arena, 2 * (size_t)GROUND_TRUTHS_MAX * OP_PLACES, sizeof *list);

	verdict->outputs = list;
	verdict->weak = true;
	for (int r = 0; r < trial->rounds; r++) {
		const struct round *round = &trial->round[r];

		for (int i = 0; i < round->output_count; i++) {
			struct output_verdict *same = NULL;

			for (int k = 0; k < verdict->output_count && same == NULL; k++)
				if (strcmp(list[k].name, round->outputs[i].name) == 0 &&
				    strcmp(list[k].ground_truth, round->outputs[i].ground_truth) == 0)
					same = &list[k];
			if (same != NULL)
				merge_output(same, &round->outputs[i]);
			else
				list[verdict->output_count++] = round->outputs[i];
		}
		verdict->weak = verdict->weak && round->weak;
	}
	verdict->weak = verdict->weak && verdict->output_count > 0;
}

/* Returns whether the reference was compared with a ground truth for this set of input values. */
static bool any_answer(const struct trial *trial, const struct round *round)
{
	for (int i = 0; i < trial->truths.count; i++)
		if (round->answered[i])
			return true;
	return false;
}

/* Sets the status of a case without an op family. The status depends on the dataset's own ground truth (if there is
 * one) and on the checks. If a check fails, the case does not pass even if the reference agrees with the ground truth.
 * The reason is that the inputs may be invalid, and agreement on invalid inputs shows nothing. */
static void decide_without_family(struct trial *trial)
{
	const char *why = trial->job->no_truth;
	bool alone = false;

	for (int r = 0; r < trial->rounds; r++) {
		const char *skipped = no_answer(trial, &trial->round[r]);

		alone = alone || !any_answer(trial, &trial->round[r]);
		why = skipped != NULL ? skipped : why;
	}
	decide_missed(trial);
	if (!trial->decided)
		trial_decide_by_checks(trial, alone, why);
}

/* Sets the status `checked` if every ground truth that confirms the outputs may share a mistake with the reference. */
static void decide_related(struct trial *trial)
{
	const struct truths *truths = &trial->truths;
	const struct truth *related = NULL;

	for (int i = 0; i < truths->count; i++) {
		bool answered = trial->round[0].answered[i];

		if (answered && truths->items[i].related == NULL)
			return;
		if (answered && related == NULL)
			related = &truths->items[i];
	}
	if (related != NULL)
		trial_decide(trial, STATUS_CHECKED, REASON_NO_GROUND_TRUTH,
			     arena_printf(&trial->arena, "the reference agrees with %s, but %s", related->name,
					  related->related));
}

/* Returns whether the verdict is based on a ground truth from the dataset, which is Python source or a chain of
 * operations. Such a ground truth does not use the constants of the case. */
static bool a_text_decided(const struct trial *trial)
{
	for (int i = 0; i < trial->truths.count; i++)
		if ((trial->truths.items[i].program || trial->truths.items[i].chain) && trial->round[0].answered[i])
			return true;
	return false;
}

/* Sets the status `checked` if the ground truth used a constant that was recovered from the reference itself. The
 * reference's own outputs are no evidence that this constant is right. */
static void decide_unattested(struct trial *trial)
{
	if (trial->op == NULL || trial->op->free_constants || a_text_decided(trial))
		return;
	for (int i = 0; i < trial->job->constant_count; i++)
		if (isnan(trial->job->constants[i].value) && !isnan(trial->constants[i].value))
			trial_decide(trial, STATUS_CHECKED, REASON_UNATTESTED,
				     arena_printf(&trial->arena,
						  "the reference agrees with %s if %s is %g; the outputs of the "
						  "reference imply this value, but no "
						  "axis, name, description or model states it",
						  trial->truths.count > 0 ? trial->truths.items[0].name : "the ground truth",
						  trial->constants[i].name, trial->constants[i].value));
}

enum trial_answer trial_give_verdict(struct trial *trial, struct buf *out)
{
	struct verdict *verdict = &trial->verdict;
	const struct device_calls *calls = trial->device->calls;

	if (!trial->decided && trial_is_checked(trial))
		trial_make_checks(trial);
	if (!trial->decided && trial->op == NULL && trial->overwrites != 0)
		decide_overwritten(trial);
	if (!trial->decided && trial->op == NULL)
		decide_without_family(trial);
	for (int r = 0; r < trial->rounds && !trial->decided; r++)
		decide_no_answer(trial, &trial->round[r]);
	decide_missed(trial);
	trial_judge_both(trial);
	if (!trial->decided && trial->overwrites != 0)
		decide_overwritten(trial);
	for (int r = 0; r < trial->rounds && !trial->decided; r++) {
		decide_too_coarse(trial, &trial->round[r]);
		if (!trial->decided)
			decide_unjudged(trial, &trial->round[r]);
	}
	list_outputs(trial);
	decide_related(trial);
	decide_unattested(trial);
	trial_decide(trial, STATUS_PASSED, REASON_NONE, NULL);
	verdict->device = trial->context->device_name;
	verdict->device_class = calls->class_name(trial->device);
	list_ground_truths(trial);
	trial_diagnose(trial);
	trial_save(trial);
	verdict->latencies = trial->latencies;
	verdict->latency_count = trial->latency_count;
	trial_list_checks(trial);
	if (trial->job != NULL)
		list_constants(trial);
	verdict_write(verdict, out);
	return TRIAL_VERDICT;
}

struct shared_memory *trial_stage_memory(struct trial *trial)
{
	return trial_stage_of(trial);
}

struct round *trial_round_of_run(struct trial *trial, enum trial_run run)
{
	return &trial->round[run == RUN_SECOND ? CONTENTS_SECOND : CONTENTS_FIRST];
}

/* Stages a run of the arranged case in the shared arena and writes the message to the runner. */
static enum trial_answer ask(struct trial *trial, enum trial_run run, struct buf *out)
{
	struct round *round = trial_round_of_run(trial, run);
	struct err err = {""};

	trial->run = run;
	judge_seconds_count_run(&trial->context->clock, JUDGE_USUAL);
	if (trial_hold_inputs(trial, round) == 0 && trial_stage(trial, round, run, &err) != 0)
		trial_decide_error(trial, &err);
	if (trial->decided)
		return trial_give_verdict(trial, out);
	trial_write_run(trial, round, out);
	trial_drop_inputs(trial);
	return TRIAL_RUN;
}

struct trial *trial_open(struct judge_context *context, const cJSON *json)
{
	struct trial *trial = calloc(1, sizeof *trial);
	struct err err = {""};

	if (trial == NULL)
		die_no_memory();
	trial->context = context;
	trial->device = context->device;
	trial->job = job_read(json, &trial->arena, &err);
	if (trial->job == NULL)
		trial_decide(trial, STATUS_INVALID, REASON_NONE, arena_string(&trial->arena, err.text));
	else if (find_family(trial) == 0)
		take_constants(trial);
	if (trial->job != NULL)
		find_truths(trial);
	return trial;
}

static enum trial_answer begin_case(struct trial *trial, struct buf *out)
{
	const struct op_constant *unknown = unknown_constant(trial);

	if (unknown != NULL)
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
			     arena_printf(&trial->arena,
					  "%s is unattested: nothing in the definition states its value, and the outputs "
					  "of the reference do not show it",
					  unknown->name));
	if (trial->decided || trial_arrange(trial, trial->job->axis, false) != 0)
		return trial_give_verdict(trial, out);
	return ask(trial, RUN_FIRST, out);
}

enum trial_answer trial_begin(struct trial *trial, struct buf *out)
{
	const struct op *op = trial->op;
	int64_t *axis;

	if (trial->decided)
		return trial_give_verdict(trial, out);
	if (trial_needs_custom_inputs(trial))
		return trial_ask_custom_inputs(trial, out);
	if (unknown_constant(trial) == NULL || op->probe == NULL || op->probe_axes == NULL)
		return begin_case(trial, out);
	axis = arena_array(&trial->arena, (size_t)trial->job->problem.axis_count, sizeof *axis);
	op->probe_axes(&trial->job->problem, trial->variant, axis);
	if (trial_arrange(trial, axis, true) != 0)
		return trial_give_verdict(trial, out);
	return ask(trial, RUN_FIRST, out);
}

/* Recovers the constants from the outputs of the probing case, then begins the actual case. */
static enum trial_answer recover(struct trial *trial, struct buf *out)
{
	struct judge_context *context = trial->context;
	const struct op_problem *problem = &trial->job->problem;
	const struct round *round = &trial->round[0];
	struct err err = {""};
	struct tensor *in = trial_on_host(trial, &trial->arena, round->in, problem->input_count, &err);
	struct tensor *first = trial_on_host(trial, &trial->arena, round->first, problem->output_count, &err);

	if (in == NULL || first == NULL) {
		trial_decide_error(trial, &err);
		return trial_give_verdict(trial, out);
	}
	if (trial->op->probe(&round->c, in, first, trial->constants, &err) != 0) {
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, arena_string(&trial->arena, err.text));
		return trial_give_verdict(trial, out);
	}
	memcpy(context->recovered, trial->constants, sizeof context->recovered);
	context->recovered_count = trial->job->constant_count;
	return begin_case(trial, out);
}

/* Returns whether ground truth `at` alone is enough for the verdict. The ground truth is not enough if it may share a
 * mistake with the reference, or if its arithmetic is coarser than the case's tolerance rules. It is also not enough if
 * the reference wrote to an input and the ground truth does not compute the final values of this input. */
static bool decides(const struct trial *trial, const struct round *round, int at)
{
	return !trial->truths.all && round->answered[at] && round->coarse[at] == NULL &&
	       trial->truths.items[at].related == NULL && trial_unjudged_input(trial, round) < 0;
}

/* Tries ground truths for one set of input values, one after the other. Returns true if another process must compute
 * the next ground truth; `out` then has the message to this process. */
static bool try_ground_truths(struct trial *trial, struct round *round, struct buf *out)
{
	const struct truths *truths = &trial->truths;
	const struct round *first = &trial->round[CONTENTS_FIRST];
	bool enough = round->asked > 0 && decides(trial, round, round->asked - 1);

	for (; !trial->decided && !enough && round->asked < truths->count; round->asked++) {
		int at = round->asked;

		if (round != first && first->passed_over[at] != NULL) {
			round->passed_over[at] = first->passed_over[at]; /* a ground truth that was skipped for the
									  * first set is also skipped for the second */
		} else if (truths->items[at].refused != NULL) {
			trial_pass_over(trial, round, at, false, truths->items[at].refused);
		} else if (truths->items[at].chain) {
			if (!round->answered[at] && trial_hold_inputs(trial, round) == 0)
				trial_ask_chain(trial, round, at);
		} else if (!trial_is_builtin(&truths->items[at])) {
			if (trial_hold_inputs(trial, round) == 0 && trial_ask_provider(trial, round, at, out))
				return true;
		} else if (!round->answered[at] && round->passed_over[at] == NULL) {
			if (trial_hold_inputs(trial, round) == 0)
				trial_ask_builtin(trial, round, at);
		}
		enough = decides(trial, round, at);
	}
	if (!trial->decided)
		trial_check_agreement(trial, round);
	return false;
}

/* Tries the ground truths for the first set of input values, and then for the second set. Gives the verdict if no
 * ground truth is left to try. */
static enum trial_answer next_ground_truth(struct trial *trial, struct buf *out)
{
	for (; trial->truths.count > 0 && !trial->decided && trial->judging < trial->rounds; trial->judging++)
		if (try_ground_truths(trial, &trial->round[trial->judging], out))
			return TRIAL_PROVIDE;
	return trial_give_verdict(trial, out);
}

/* Returns the list of outputs in `message`, which is the answer of the provider or of a ground truth's runner. */
static const cJSON *provided_by(const struct trial *trial, int at, const cJSON *message)
{
	return json_member(message, trial->truths.items[at].program ? "ran" : "provided");
}

/* Records that a ground truth failed, and whether the reason is that a library could not compile its kernels. */
static void provider_failed(struct trial *trial, struct round *round, int at, const cJSON *message, const char *trouble)
{
	bool accident = cJSON_IsTrue(json_member(message, "accident")) || json_text_of(message, "failed") == NULL;

	trial->tried[at].not_built |= cJSON_IsTrue(json_member(message, "not_built"));
	trial_pass_over(trial, round, at, accident, trouble != NULL ? trouble : "the provider sent an invalid answer");
}

/* Handles the provider's answer: outputs, a refusal or a failure. Then tries the next ground truth, or gives the
 * verdict. */
enum trial_answer trial_provided(struct trial *trial, const cJSON *message, struct buf *out)
{
	const char *declined = json_text_of(message, "unavailable"), *failed = json_text_of(message, "failed");
	const char *unmapped = json_text_of(message, "unmapped");
	const char *trouble = failed != NULL ? failed : unmapped;
	struct round *round = &trial->round[trial->judging < trial->rounds ? trial->judging : 0];
	int at = round->asked;

	if (trial->answer_memory == NULL)
		return trial_give_verdict(trial, out);
	if (unmapped != NULL && trial->answer_memory->kind == SHARED_CUDA) {
		shared_memory_renew(trial->answer_memory);
		trial->answer_memory->kind = SHARED_STAGED;
		return next_ground_truth(trial, out);
	}
	if (cJSON_IsArray(provided_by(trial, at, message)))
		trial_take_provided(trial, round, at, provided_by(trial, at, message), message);
	else if (declined != NULL)
		trial_pass_over(trial, round, at, false, declined);
	else
		provider_failed(trial, round, at, message, trouble);
	round->asked++;
	return next_ground_truth(trial, out);
}

bool trial_is_last_run(const struct trial *trial)
{
	switch (trial->job->runs) {
	case JOB_RUNS_FIRST:
	case JOB_RUNS_SECOND:
		return trial->run == RUN_FIRST;
	case JOB_RUNS_BOTH:
		return trial->run == (trial->rounds > 1 ? RUN_SECOND : RUN_AGAIN);
	default:
		return trial->run == RUN_AGAIN;
	}
}

/* Requests the next run. A case with only one set of input values has no second run. */
static enum trial_answer next_run(struct trial *trial, struct buf *out)
{
	if (trial->run == RUN_FIRST && trial->rounds > 1)
		return ask(trial, RUN_SECOND, out);
	return ask(trial, RUN_AGAIN, out);
}

/* Requests the next extra run. If there is no further extra run, tries the dataset's own ground truths. */
static enum trial_answer next_extra(struct trial *trial, struct buf *out)
{
	if (!trial->decided && extra_runs_next(trial, out))
		return TRIAL_RUN;
	judge_seconds_end_runs(&trial->context->clock);
	trial->run = RUN_AGAIN; /* the extra runs are over, and the ground truths come next */
	return next_ground_truth(trial, out);
}

enum trial_answer trial_ran(struct trial *trial, const cJSON *ran, struct buf *out)
{
	struct round *round = trial_round_of_run(trial, trial->run);
	struct err err = {""};

	judge_seconds_turn(&trial->context->clock, JUDGE_CHECKS);
	trial_check_canaries(trial);
	trial_note_latency(trial, "reference", ran);
	if (trial->run == RUN_EXTRA) {
		if (!trial->decided)
			extra_runs_read(trial, ran);
		return next_extra(trial, out);
	}
	if (!trial->decided && trial_hold_inputs(trial, round) == 0)
		trial_check_inputs(trial, round);
	trial_check_forms(trial, round, ran);
	if (!trial->decided)
		trial_check_replaced(trial, round);
	if (trial->run == RUN_AGAIN && trial_needs_first_seed(trial, round))
		return ask(trial, RUN_AGAIN, out);
	if (trial->run == RUN_AGAIN)
		trial_check_deterministic(trial, round);
	if (!trial->decided && trial->run == RUN_AGAIN && trial->extra.fit)
		return next_extra(trial, out);
	if (!trial->decided && trial->run == RUN_AGAIN)
		return next_ground_truth(trial, out);
	if (!trial->decided && trial_copy_what_was_written(trial, round, &err) != 0)
		trial_decide_error(trial, &err);
	if (!trial->probing && trial->one_set && trial->rounds > 1)
		trial_ask_builtin_early(trial, round); /* computes builtin now, because the second set will overwrite
						        * these inputs, and they would have to be filled again */
	if (trial->decided)
		return trial_give_verdict(trial, out);
	if (trial->probing)
		return recover(trial, out);
	return trial_is_last_run(trial) ? next_ground_truth(trial, out) : next_run(trial, out);
}

/* Returns whether this case computes gradients in float64 although the definition declares other dtypes. If the
 * reference raises in such a case, the case does not fail, because the reference may support only the declared
 * dtypes. */
static bool asks_in_float64(const struct trial *trial)
{
	const struct job *job = trial->job;

	return job != NULL && job->asks == JOB_GRADIENTS && job->problem.output_count > 0 &&
	       job->problem.outputs[0].dtype == DTYPE_FLOAT64;
}

static enum reason blamed_reason(const cJSON *blame)
{
	const char *name = json_text_of(blame, "reason");
	enum reason reason;

	return name != NULL && reason_parse(name, &reason) ? reason : REASON_CRASHED;
}

/* Sets the status of a case for which the definition's code failed to make the inputs. If reftest chose the sizes and
 * the code raises an exception, the status is `skipped`, because the code may not support these sizes. If reftest chose
 * the sizes and the code is a function `init`, the status is also `skipped` if the function ends its process or does
 * not answer. After any such failure of `init`, the definition is tested with generic inputs (init_fails in
 * engine/definition_files.c). */
static void blame_inputs(struct trial *trial, const cJSON *blame, const char *message)
{
	bool init = trial->job->input_code->kind == INPUT_CODE_INIT;
	bool fails = cJSON_IsTrue(json_member(blame, "raised")) || (init && cJSON_IsTrue(json_member(blame, "ended")));
	bool may_refuse = trial->job->chosen_axes && fails;

	if (init)
		trial->verdict.reference_line = 0; /* the line number belongs to `init`, not to the reference */
	trial_decide(trial, may_refuse ? STATUS_SKIPPED : STATUS_ERROR, REASON_INPUTS, trial_inputs_message(trial, message));
}

/* Returns a text about the inputs of a case without an op family: which of them are guesses, and which optional inputs
 * are None because the definition's code makes no value for them. */
static const char *guessed_inputs(struct trial *trial)
{
	const char *names = "";
	bool several = false;

	if (!trial->custom.done)
		return "generic inputs, which may be invalid for this operation";
	for (int i = 0; i < trial->job->problem.input_count; i++) {
		if (trial->job->inputs[i].kind != SOURCE_ABSENT)
			continue;
		several = *names != '\0';
		names = arena_printf(&trial->arena, "%s%s'%s'", names, several ? ", " : "", trial->job->problem.inputs[i].name);
	}
	return arena_printf(&trial->arena, "sizes that reftest chose, which may be invalid for this operation%s%s",
			    *names == '\0' ? "" : several ? ", and without the optional inputs " : ", and without the optional input ",
			    names);
}

/* Sets the status of a case that has no op family and whose reference needs something that this machine does not
 * have. */
static void blame_machine(struct trial *trial, const cJSON *blame, const char *message)
{
	bool on_cpu = strcmp(trial->device->calls->class_name(trial->device), "cpu") == 0;

	if (on_cpu && cJSON_IsTrue(json_member(blame, "needs_gpu")))
		trial_decide(trial, STATUS_SKIPPED, REASON_UNSUPPORTED_DEVICE,
			     arena_printf(&trial->arena, "the reference needs a GPU, and this run uses the CPU: %s", message));
	if (cJSON_IsTrue(json_member(blame, "needs_module")))
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
			     arena_printf(&trial->arena, "%s\nThe reference needs a module that is not installed: %s",
					  trial->job->no_truth == NULL ? "" : trial->job->no_truth, message));
}

/* Gives the verdict on a failure of the runner. In a case without an op family, the generated inputs, or the sizes that
 * reftest chose, may be invalid for the operation. Therefore the status is `skipped` if the reference reaches a limit,
 * or if it raises an exception that may depend on the inputs. */
void trial_blame(struct trial *trial, const cJSON *blame, struct buf *out)
{
	const char *message = json_text_of(blame, "message");
	enum reason reason = blamed_reason(blame);
	int64_t line = 0;

	message = arena_string(&trial->arena, message == NULL ? "the runner failed" : message);
	json_integer(json_member(blame, "line"), &line);
	trial->verdict.reference_line = line > 0 && line < INT32_MAX ? (int)line : 0;
	trial->decided = trial->decided && trial->job == NULL;
	if (reason == REASON_INPUTS && trial->job != NULL && trial->job->input_code != NULL)
		blame_inputs(trial, blame, message);
	if (!trial->decided && trial->run == RUN_EXTRA) {
		extra_runs_end(trial, message);
		trial->run = RUN_AGAIN;
		/* in a case with checks and an op family, the only ground truth is builtin, which needs no runner */
		if (trial->op != NULL)
			next_ground_truth(trial, out);
		else
			trial_give_verdict(trial, out);
		return;
	}
	if (trial->job != NULL && trial->job->op == NULL)
		blame_machine(trial, blame, message);
	if (trial->job != NULL && trial->job->op == NULL && !trial->job->inputs_are_valid && (!trial->custom.done || trial->job->chosen_axes) &&
	    (reason == REASON_RAISED || reason_is_limit(reason)) &&
	    !cJSON_IsTrue(json_member(blame, "loading")) && !cJSON_IsTrue(json_member(blame, "certain")))
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
			     arena_printf(&trial->arena, "%s\nOn %s, %s", trial->job->no_truth == NULL ? "" : trial->job->no_truth,
					  guessed_inputs(trial), message));
	if (asks_in_float64(trial) && reason == REASON_RAISED && !cJSON_IsTrue(json_member(blame, "loading")))
		trial_decide(trial, STATUS_SKIPPED, REASON_UNSUPPORTED_DTYPE,
		             arena_printf(&trial->arena, "in float64 %s", message));
	if (trial->run == RUN_SECOND && !trial->decided) {
		trial->verdict.second_set = true;
		message = arena_printf(&trial->arena, ON_SECOND ", %s", message);
	}
	trial_decide(trial, STATUS_ERROR, reason, message);
	trial_give_verdict(trial, out);
}

void trial_close(struct trial *trial)
{
	if (trial == NULL)
		return;
	for (int r = 0; r < CONTENTS_COUNT; r++)
		buf_free(&trial->round[r].misses);
	trial_free_custom_inputs(trial);
	arena_free(&trial->arena);
	free(trial);
}
