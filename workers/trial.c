/* The order of a trial:
 *   begin   job, family, constants; if one is attested nowhere, a probing case goes first (one run, no verdict)
 *   arrange tensors of the case, memory, both contents of the inputs
 *   stage   a layout of the arena: canaries, inputs, poison in the outputs; the message to the runner
 *   ran     after each run: canaries, inputs unchanged, shapes and dtypes; then
 *             first run:  outputs are copied; the run on the second contents is staged and sent off
 *             second run: outputs are copied; the first contents are staged again, elsewhere in the arena, and torch's
 *                         generators get other seeds
 *             last run:   the outputs must be the bits of the first; then the verdict, for which the family may look at
 *                         the outputs of both contents together (draws must not be the same under other seeds)
 *   think   while the runner works: ground truth and comparison of the contents of the run before
 * A reference that keeps something between calls answers the second contents, or the first when they come again, as it
 * must not. Where one set of inputs is large, memory holds one set at a time, and of very large ones none while the
 * reference runs: they stand beside neither what the reference takes nor the cache of its allocator. Ground truth is then
 * made right after a run, while its inputs are there.
 * What is found first decides. Poison differs between the runs, so that an output that was never written cannot look
 * deterministic. */
#include "workers/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kernels/gradient.h"
#include "workers/agreement.h"
#include "workers/say.h"
#include "workers/trial_parts.h"

/* How a message begins that is about the second contents alone. */
#define ON_SECOND "on the second contents (other values of the same shapes, right after the first)"

/* Decides, unless it is decided already. */
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
		*builtin = (struct truth){"builtin", trial->entry->truth_digest};
		trial->truths = (struct truths){builtin, 1, false};
	}
	for (int i = 0; i < trial->truths.count; i++)
		trial->witness[i] = (struct witness){
		    .name = trial->truths.items[i].name, .version = trial->truths.items[i].version, .margin = NAN};
}

/* Its place among the witnesses; -1: it is not among them. */
int trial_builtin_at(const struct trial *trial)
{
	for (int i = 0; i < trial->truths.count; i++)
		if (trial_is_builtin(&trial->truths.items[i]))
			return i;
	return -1;
}

/* Memory that is being shared: with the runner, or with the provider. */
struct shared *trial_stage_of(struct trial *trial)
{
	return trial->at_stand ? &trial->court->stand : &trial->court->shared;
}

/* ---- the family and its constants ---- */

static int find_family(struct trial *trial)
{
	const struct job *job = trial->job;
	struct err why = {""};

	if (job->op == NULL)
		return 0;
	trial->entry = trial->court->kernels->face->by_name(job->op);
	if (trial->entry == NULL) {
		err_set(&why, "%s has no op family '%s'; run `make` again", trial->court->kernels->path, job->op);
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

/* Constants that an earlier case of this definition recovered need no second probing. */
static void take_constants(struct trial *trial)
{
	const struct court *court = trial->court;

	memcpy(trial->constants, trial->job->constants, sizeof trial->constants);
	for (int i = 0; i < trial->job->constant_count; i++)
		for (int k = 0; isnan(trial->constants[i].value) && k < court->recovered_count; k++)
			if (strcmp(trial->constants[i].name, court->recovered[k].name) == 0)
				trial->constants[i].value = court->recovered[k].value;
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
							      "%s is attested nowhere; probing the reference shows %g",
							      constant->name, constant->value));
	}
	trial->verdict.constants = values;
}

/* Who decided, and who was passed over. A case that was decided before anybody was asked belongs to those who would
 * have been: the first, or all. Builtin alone is told by name and version as it is. */
static void list_witnesses(struct trial *trial)
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
		if (!trial->round[0].answered[i] && trial->witness[i].passed_over == NULL)
			trial_pass_over(trial, &trial->round[0], i, false, "it was not asked: the case was decided before");
	for (int r = 0; r < trial->rounds; r++)
		asked = trial->round[r].asked > asked ? trial->round[r].asked : asked;
	verdict->witnesses = trial->witness;
	verdict->witness_count = all ? truths->count : asked;
	verdict->all_witnesses = all && verdict->witness_count > 0;
}

/* Everybody was passed over. */
static void decide_nobody(struct trial *trial, const struct round *round)
{
	struct buf text = {0};

	for (int i = 0; i < trial->truths.count; i++)
		if (round->answered[i] || round->passed_over[i] == NULL)
			return;
	if (trial->truths.count == 0)
		return;
	for (int i = 0; i < trial->truths.count; i++)
		buf_printf(&text, "%s%s: %s", i > 0 ? "\n" : "no ground truth gave an answer: ", trial->witness[i].name,
			   round->passed_over[i]);
	trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, arena_copy(&trial->arena, text.data, text.length));
	buf_free(&text);
}

/* Only such as are coarser than the case's rules vouch for the outputs, and builtin, who was asked as well, cannot. */
static void decide_too_coarse(struct trial *trial, const struct round *round)
{
	struct agreement agreement = {.count = trial->truths.count};
	bool coarse[TRUTHS_MAX] = {false};
	int builtin = trial_builtin_at(trial);

	for (int i = 0; i < agreement.count; i++) {
		agreement.answered[i] = round->answered[i];
		coarse[i] = round->coarse[i] != NULL;
	}
	if (!agreement_too_coarse(&agreement, coarse, builtin) || round->passed_over[builtin] == NULL)
		return;
	trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
		     arena_printf(&trial->arena,
				  "whoever answered is coarser than the rule and does not decide alone, and builtin gave no "
				  "answer: %s",
				  round->passed_over[builtin]));
}

/* Somebody vouches for the outputs, but nobody for an input that was written to. */
static void decide_unjudged(struct trial *trial, const struct round *round)
{
	int input = trial_unjudged_input(trial, round);

	if (input < 0)
		return;
	trial_decide(
	    trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
	    arena_printf(
		&trial->arena,
		"what the reference left in its input '%s' was compared with nothing: of the ground truths only "
		"builtin tells what it has to hold, and it %s",
		trial->job->problem.inputs[input].name,
		trial_builtin_at(trial) < 0 ? "was not asked; name it too, after --ground-truth" : "gave no answer"));
}

/* Did the reference give the same bits for both contents? Small outputs (an index, a flag) may well be alike. */
static bool answers_are_alike(struct trial *trial)
{
	const struct round *first = &trial->round[CONTENTS_FIRST], *second = &trial->round[CONTENTS_SECOND];
	struct err err;

	for (int i = 0; i < trial->job->problem.output_count; i++)
		if (trial->device->calls->first_difference(trial->device, first->first[i].data, second->first[i].data,
							   job_tensor_bytes(&first->first[i]), &err) != -1)
			return false;
	return true;
}

/* The outputs miss the ground truth on one of the contents, or on both. */
static void decide_missed(struct trial *trial)
{
	const struct round *first = &trial->round[CONTENTS_FIRST], *second = &trial->round[CONTENTS_SECOND];
	const struct round *missed = first->missed != REASON_NONE ? first : second;

	if (missed->missed == REASON_NONE)
		return;
	if (trial->decided)
		return;
	trial_decide(trial, STATUS_FAILED, missed->missed,
		     arena_printf(&trial->arena, "%s%s%.*s", missed == first ? "" : ON_SECOND ", ",
				  missed == second && answers_are_alike(trial)
				      ? "the outputs are those of the first: the reference keeps results between calls; "
				      : "",
				  (int)missed->misses.length, missed->misses.data));
}

/* What the two contents show of one output: the first's figures with the larger margin of both, unless only the second failed. */
static void merge_output(struct output_verdict *out, const struct output_verdict *other)
{
	bool zeros = out->metrics.zeros_would_pass && other->metrics.zeros_would_pass;

	if (out->status == STATUS_PASSED && other->status != STATUS_PASSED)
		*out = *other;
	else if (out->status == STATUS_PASSED && other->metrics.margin > out->metrics.margin)
		out->metrics.margin = other->metrics.margin;
	out->metrics.zeros_would_pass = zeros;
}

/* An output for each witness that answered, and for each input that was written to. */
static void list_outputs(struct trial *trial)
{
	struct verdict *verdict = &trial->verdict;
	struct output_verdict *list = arena_array(&trial->arena, 2 * (size_t)TRUTHS_MAX * OP_PLACES, sizeof *list);

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

static enum trial_answer give_verdict(struct trial *trial, struct buf *out)
{
	struct verdict *verdict = &trial->verdict;
	const struct device_calls *calls = trial->device->calls;

	if (!trial->decided && trial->op == NULL)
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, trial->job->no_truth);
	for (int r = 0; r < trial->rounds && !trial->decided; r++)
		decide_nobody(trial, &trial->round[r]);
	decide_missed(trial);
	trial_judge_both(trial);
	if (trial->overwritten != NULL) /* an output that was kept, and is wrong for that, says so first */
		trial_decide(trial, STATUS_FAILED, REASON_NONDETERMINISTIC, trial->overwritten);
	for (int r = 0; r < trial->rounds && !trial->decided; r++) {
		decide_too_coarse(trial, &trial->round[r]);
		if (!trial->decided)
			decide_unjudged(trial, &trial->round[r]);
	}
	list_outputs(trial);
	trial_decide(trial, STATUS_PASSED, REASON_NONE, NULL);
	verdict->device = trial->court->device_name;
	verdict->device_class = calls->class_name(trial->device);
	if (trial->entry != NULL)
		list_witnesses(trial);
	if (trial->job != NULL)
		list_constants(trial);
	verdict_write(verdict, out);
	return TRIAL_VERDICT;
}

static struct round *round_of_run(struct trial *trial, enum trial_run run)
{
	return &trial->round[run == RUN_SECOND ? CONTENTS_SECOND : CONTENTS_FIRST];
}

/* Stages a run of the case that is arranged and writes the message. */
static enum trial_answer ask(struct trial *trial, enum trial_run run, struct buf *out)
{
	struct round *round = round_of_run(trial, run);
	struct err err = {""};

	trial->run = run;
	if (trial_hold_inputs(trial, round) == 0 && trial_stage(trial, round, run, &err) != 0)
		trial_decide_error(trial, &err);
	if (trial->decided)
		return give_verdict(trial, out);
	trial_write_run(trial, round, out);
	trial_drop_inputs(trial);
	return TRIAL_RUN;
}

struct trial *trial_open(struct court *court, const cJSON *json)
{
	struct trial *trial = calloc(1, sizeof *trial);
	struct err err = {""};

	if (trial == NULL)
		die_no_memory();
	trial->court = court;
	trial->device = court->device;
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
					  "%s is attested nowhere, and probing the reference does not show it",
					  unknown->name));
	if (trial->decided || trial_arrange(trial, trial->job->axis, false) != 0)
		return give_verdict(trial, out);
	return ask(trial, RUN_FIRST, out);
}

enum trial_answer trial_begin(struct trial *trial, struct buf *out)
{
	const struct op *op = trial->op;
	int64_t *axis;

	if (trial->decided)
		return give_verdict(trial, out);
	if (unknown_constant(trial) == NULL || op->probe == NULL || op->probe_axes == NULL)
		return begin_case(trial, out);
	axis = arena_array(&trial->arena, (size_t)trial->job->problem.axis_count, sizeof *axis);
	op->probe_axes(&trial->job->problem, trial->variant, axis);
	if (trial_arrange(trial, axis, true) != 0)
		return give_verdict(trial, out);
	return ask(trial, RUN_FIRST, out);
}

/* What the probing case shows of the constants; then the case itself begins. */
static enum trial_answer recover(struct trial *trial, struct buf *out)
{
	struct court *court = trial->court;
	const struct op_problem *problem = &trial->job->problem;
	const struct round *round = &trial->round[0];
	struct err err = {""};
	struct tensor *in = trial_on_host(trial, &trial->arena, round->in, problem->input_count, &err);
	struct tensor *first = trial_on_host(trial, &trial->arena, round->first, problem->output_count, &err);

	if (in == NULL || first == NULL) {
		trial_decide_error(trial, &err);
		return give_verdict(trial, out);
	}
	if (trial->op->probe(&round->c, in, first, trial->constants, &err) != 0) {
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, arena_string(&trial->arena, err.text));
		return give_verdict(trial, out);
	}
	memcpy(court->recovered, trial->constants, sizeof court->recovered);
	court->recovered_count = trial->job->constant_count;
	return begin_case(trial, out);
}

/* Is its answer enough? One that is coarser than the case's rules is heard, and the next is asked as well; so it is
 * where an input was written to of which this one cannot tell what it has to hold. */
static bool decides(const struct trial *trial, const struct round *round, int at)
{
	return !trial->truths.all && round->answered[at] && round->coarse[at] == NULL &&
	       trial_unjudged_input(trial, round) < 0;
}

/* On to the next witness that is to be asked of these contents. true: `out` has a message to the provider. */
static bool ask_witnesses(struct trial *trial, struct round *round, struct buf *out)
{
	const struct truths *truths = &trial->truths;
	const struct round *first = &trial->round[CONTENTS_FIRST];
	bool enough = round->asked > 0 && decides(trial, round, round->asked - 1);

	for (; !trial->decided && !enough && round->asked < truths->count; round->asked++) {
		int at = round->asked;

		if (round != first && first->passed_over[at] != NULL) {
			round->passed_over[at] = first->passed_over[at]; /* it would decide nothing here either */
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

/* The first contents' witnesses, then the second's, then the verdict. */
static enum trial_answer next_witness(struct trial *trial, struct buf *out)
{
	for (; trial->op != NULL && !trial->decided && trial->judging < trial->rounds; trial->judging++)
		if (ask_witnesses(trial, &trial->round[trial->judging], out))
			return TRIAL_PROVIDE;
	return give_verdict(trial, out);
}

/* Whatever the provider had to say, it was asked and is done; one that gave the outputs is enough, unless all are
 * asked. */
enum trial_answer trial_provided(struct trial *trial, const cJSON *message, struct buf *out)
{
	const char *declined = json_text_of(message, "unavailable"), *failed = json_text_of(message, "failed");
	const char *unmapped = json_text_of(message, "unmapped");
	const char *trouble = failed != NULL ? failed : unmapped;
	struct round *round = &trial->round[trial->judging < trial->rounds ? trial->judging : 0];
	int at = round->asked;

	if (!trial->at_stand)
		return give_verdict(trial, out);
	if (unmapped != NULL && trial->court->stand.kind == SHARED_CUDA) {
		shared_renew(&trial->court->stand);
		trial->court->stand.kind = SHARED_STAGED;
		return next_witness(trial, out);
	}
	if (cJSON_IsArray(json_member(message, "provided")))
		trial_take_provided(trial, round, at, message);
	else if (declined != NULL)
		trial_pass_over(trial, round, at, false, declined);
	else
		trial_pass_over(trial, round, at, cJSON_IsTrue(json_member(message, "accident")) || failed == NULL,
				trouble != NULL ? trouble : "it sent what nobody understands");
	round->asked++;
	return next_witness(trial, out);
}

/* A case of one set of contents has no second run. */
static enum trial_answer next_run(struct trial *trial, struct buf *out)
{
	if (trial->run == RUN_FIRST && trial->rounds > 1)
		return ask(trial, RUN_SECOND, out);
	return ask(trial, RUN_AGAIN, out);
}

enum trial_answer trial_ran(struct trial *trial, const cJSON *ran, struct buf *out)
{
	struct round *round = round_of_run(trial, trial->run);
	struct err err = {""};

	trial_check_canaries(trial);
	if (!trial->decided && trial_hold_inputs(trial, round) == 0)
		trial_check_inputs(trial, round);
	trial_check_forms(trial, round, ran);
	if (trial->run == RUN_AGAIN)
		trial_check_deterministic(trial, round);
	if (!trial->decided && trial->run == RUN_AGAIN)
		return next_witness(trial, out);
	if (!trial->decided && trial_copy_what_was_written(trial, round, &err) != 0)
		trial_decide_error(trial, &err);
	if (!trial->probing && trial->one_set && trial->rounds > 1)
		trial_ask_builtin_early(trial, round); /* its inputs would have to be made again */
	if (trial->decided)
		return give_verdict(trial, out);
	return trial->probing ? recover(trial, out) : next_run(trial, out);
}

/* Is it the case that holds gradients finer than their dtypes can? References that insist on theirs raise there. */
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

/* Without a family the inputs were valid by no rule: a reference that raises on them has shown nothing. */
void trial_blame(struct trial *trial, const cJSON *blame, struct buf *out)
{
	const char *message = json_text_of(blame, "message");
	enum reason reason = blamed_reason(blame);
	int64_t line = 0;

	message = arena_string(&trial->arena, message == NULL ? "the runner failed" : message);
	json_integer(json_member(blame, "line"), &line);
	trial->verdict.reference_line = line > 0 && line < INT32_MAX ? (int)line : 0;
	trial->decided = trial->decided && trial->job == NULL;
	if (trial->job != NULL && trial->job->op == NULL && reason == REASON_RAISED &&
	    !cJSON_IsTrue(json_member(blame, "loading")))
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
			     arena_printf(&trial->arena, "%s\nOn generic inputs, which no rule makes valid, %s",
					  trial->job->no_truth == NULL ? "" : trial->job->no_truth, message));
	if (asks_in_float64(trial) && reason == REASON_RAISED && !cJSON_IsTrue(json_member(blame, "loading")))
		trial_decide(trial, STATUS_SKIPPED, REASON_UNSUPPORTED_DTYPE,
		             arena_printf(&trial->arena, "in float64 %s", message));
	if (trial->run == RUN_SECOND)
		message = arena_printf(&trial->arena, ON_SECOND ", %s", message);
	trial_decide(trial, STATUS_ERROR, reason, message);
	give_verdict(trial, out);
}

void trial_close(struct trial *trial)
{
	if (trial == NULL)
		return;
	for (int r = 0; r < CONTENTS_COUNT; r++)
		buf_free(&trial->round[r].misses);
	arena_free(&trial->arena);
	free(trial);
}
