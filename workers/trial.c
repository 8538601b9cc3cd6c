/* The order of a trial:
 *   begin   job, family, constants; if one is attested nowhere, a probing case goes first (one run, no verdict)
 *   arrange tensors of the case, memory, inputs, constraints
 *   stage   a layout of the arena: canaries, inputs, poison in the outputs; the message to the runner
 *   ran     after each run: canaries, inputs unchanged, shapes and dtypes; then
 *             first run: outputs are copied, the second run is staged elsewhere and sent off; meanwhile (think) the
 *                        ground truth is made and compared
 *             second run: the outputs must be the same bits; the verdict
 * Of a case with large inputs the judge's own are given back while the reference runs, and made anew after it, so that
 * they stand beside neither what the reference takes nor the cache of its allocator; the ground truth then waits.
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

		trial->c.variant = trial->op->match(&problem, &why);
		trial->op = trial->op->gradient;
		if (trial->op == NULL)
			trial->c.variant = err_set(&why, "op family '%s' has no gradients; run `make` again", job->op);
	} else {
		trial->c.variant = trial->op->match(&job->problem, &why);
	}
	if (trial->c.variant < 0)
		trial_decide_error(trial, &why);
	return trial->c.variant < 0 ? -1 : 0;
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
	int decider = -1;

	if (truths->count == 0)
		return;
	for (int i = truths->count - 1; i >= 0; i--)
		if (trial->answered[i])
			decider = i;
	verdict->ground_truth = truths->items[decider < 0 ? 0 : decider].name;
	verdict->ground_truth_version = truths->items[decider < 0 ? 0 : decider].version;
	if (truths->count == 1 && trial_is_builtin(&truths->items[0]))
		return;
	for (int i = 0; all && i < truths->count; i++)
		if (!trial->answered[i] && trial->witness[i].passed_over == NULL)
			trial_pass_over(trial, i, false, "it was not asked: the case was decided before");
	verdict->witnesses = trial->witness;
	verdict->witness_count = all ? truths->count : trial->asked;
	verdict->all_witnesses = all && verdict->witness_count > 0;
}

/* Everybody was passed over. */
static void decide_nobody(struct trial *trial)
{
	struct buf text = {0};

	for (int i = 0; i < trial->truths.count; i++)
		if (trial->answered[i] || trial->witness[i].passed_over == NULL)
			return;
	if (trial->truths.count == 0)
		return;
	for (int i = 0; i < trial->truths.count; i++)
		buf_printf(&text, "%s%s: %s", i > 0 ? "\n" : "no ground truth gave an answer: ", trial->witness[i].name,
			   trial->witness[i].passed_over);
	trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, arena_copy(&trial->arena, text.data, text.length));
	buf_free(&text);
}

/* Only such as are coarser than the case's rules vouch for the outputs, and builtin, who was asked as well, cannot. */
static void decide_too_coarse(struct trial *trial)
{
	struct agreement agreement = {.count = trial->truths.count};
	bool coarse[TRUTHS_MAX] = {false};
	int builtin = trial_builtin_at(trial);

	for (int i = 0; i < agreement.count; i++) {
		agreement.answered[i] = trial->answered[i];
		coarse[i] = trial->coarse[i] != NULL;
	}
	if (!agreement_too_coarse(&agreement, coarse, builtin) || trial->witness[builtin].passed_over == NULL)
		return;
	trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
		     arena_printf(&trial->arena,
				  "whoever answered is coarser than the rule and does not decide alone, and builtin gave no "
				  "answer: %s",
				  trial->witness[builtin].passed_over));
}

/* Somebody vouches for the outputs, but nobody for an input that was written to. */
static void decide_unjudged(struct trial *trial)
{
	int input = trial_unjudged_input(trial);

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

static enum trial_answer give_verdict(struct trial *trial, struct buf *out)
{
	struct verdict *verdict = &trial->verdict;
	const struct device_calls *calls = trial->device->calls;

	if (!trial->decided && trial->op != NULL)
		decide_nobody(trial);
	if (!trial->decided && trial->op == NULL)
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, trial->job->no_truth);
	if (trial->missed != REASON_NONE)
		trial_decide(trial, STATUS_FAILED, trial->missed, trial->missed_message);
	if (!trial->decided && trial->op != NULL)
		decide_too_coarse(trial);
	if (!trial->decided && trial->op != NULL)
		decide_unjudged(trial);
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

/* Stages a run of the case that is arranged and writes the message. */
static enum trial_answer ask(struct trial *trial, int run, struct buf *out)
{
	struct err err = {""};

	trial->run = run;
	if (trial_stage(trial, run, &err) != 0) {
		trial_decide_error(trial, &err);
		return give_verdict(trial, out);
	}
	trial_write_run(trial, out);
	trial->released = court_drop_inputs(trial->court);
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
	if (trial->decided || trial_arrange(trial, trial->job->axis, 0) != 0)
		return give_verdict(trial, out);
	return ask(trial, 0, out);
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
	op->probe_axes(&trial->job->problem, trial->c.variant, axis);
	if (trial_arrange(trial, axis, 1) != 0)
		return give_verdict(trial, out);
	return ask(trial, 0, out);
}

/* What the probing case shows of the constants; then the case itself begins. */
static enum trial_answer recover(struct trial *trial, struct buf *out)
{
	struct court *court = trial->court;
	const struct op_problem *problem = &trial->job->problem;
	struct err err = {""};
	struct tensor *in = trial_on_host(trial, &trial->arena, trial->in, problem->input_count, &err);
	struct tensor *first = trial_on_host(trial, &trial->arena, trial->first, problem->output_count, &err);

	if (in == NULL || first == NULL) {
		trial_decide_error(trial, &err);
		return give_verdict(trial, out);
	}
	if (trial->op->probe(&trial->c, in, first, trial->constants, &err) != 0) {
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, arena_string(&trial->arena, err.text));
		return give_verdict(trial, out);
	}
	memcpy(court->recovered, trial->constants, sizeof court->recovered);
	court->recovered_count = trial->job->constant_count;
	return begin_case(trial, out);
}

/* Is its answer enough? One that is coarser than the case's rules is heard, and the next is asked as well; so it is
 * where an input was written to of which this one cannot tell what it has to hold. */
static bool decides(const struct trial *trial, int at)
{
	return !trial->truths.all && trial->answered[at] && trial->coarse[at] == NULL &&
	       trial_unjudged_input(trial) < 0;
}

/* On to the next witness that is to be asked, or to the verdict. */
static enum trial_answer next_witness(struct trial *trial, struct buf *out)
{
	const struct truths *truths = &trial->truths;
	bool enough = false;

	for (; trial->op != NULL && !trial->decided && !enough && trial->asked < truths->count; trial->asked++) {
		int at = trial->asked;

		if (!trial_is_builtin(&truths->items[at])) {
			if (trial_ask_provider(trial, at, out))
				return TRIAL_PROVIDE;
		} else if (!trial->answered[at] && trial->witness[at].passed_over == NULL) {
			trial_ask_builtin(trial, at);
		}
		enough = decides(trial, at);
	}
	if (trial->op != NULL && !trial->decided)
		trial_check_agreement(trial);
	return give_verdict(trial, out);
}

/* Whatever the provider had to say, it was asked and is done; one that gave the outputs is enough, unless all are
 * asked. */
enum trial_answer trial_provided(struct trial *trial, const cJSON *message, struct buf *out)
{
	const char *declined = json_text_of(message, "unavailable"), *failed = json_text_of(message, "failed");
	const char *unmapped = json_text_of(message, "unmapped");
	const char *trouble = failed != NULL ? failed : unmapped;
	int at = trial->asked;

	if (!trial->at_stand)
		return give_verdict(trial, out);
	if (unmapped != NULL && trial->court->stand.kind == SHARED_CUDA) {
		shared_renew(&trial->court->stand);
		trial->court->stand.kind = SHARED_STAGED;
		return next_witness(trial, out);
	}
	if (cJSON_IsArray(json_member(message, "provided")))
		trial_take_provided(trial, at, message);
	else if (declined != NULL)
		trial_pass_over(trial, at, false, declined);
	else
		trial_pass_over(trial, at, cJSON_IsTrue(json_member(message, "accident")) || failed == NULL,
				trouble != NULL ? trouble : "it sent what nobody understands");
	if (decides(trial, at))
		trial->truths.count = at + 1; /* nobody else is asked */
	trial->asked++;
	return next_witness(trial, out);
}

enum trial_answer trial_ran(struct trial *trial, const cJSON *ran, struct buf *out)
{
	struct err err = {""};

	trial_check_canaries(trial);
	if (trial->released && !trial->decided)
		trial_make_inputs(trial);
	trial_check_inputs(trial);
	trial_check_forms(trial, ran);
	if (trial->run == 1)
		trial_check_deterministic(trial);
	if (!trial->decided && trial->run == 1)
		return next_witness(trial, out);
	if (!trial->decided && trial_copy_what_was_written(trial, &err) != 0)
		trial_decide_error(trial, &err);
	if (trial->decided)
		return give_verdict(trial, out);
	return trial->c.probe ? recover(trial, out) : ask(trial, 1, out);
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
	trial_decide(trial, STATUS_ERROR, reason, message);
	give_verdict(trial, out);
}

void trial_close(struct trial *trial)
{
	if (trial == NULL)
		return;
	buf_free(&trial->misses);
	arena_free(&trial->arena);
	free(trial);
}
