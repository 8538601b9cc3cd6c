/* trial_ground_truths - requests ground truths of other libraries from the provider, and checks whether all ground
 * truths agree. */
#include "workers/judge/trial_internal.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "workers/judge/agreement.h"
#include "workers/judge/message_text.h"
#include "workers/protocol/layout.h"

/* Ensures that the memory that the judge shares with the process of ground truth `at` is large enough for this case. If
 * that process is the provider, memory that is too small is released here, because the provider maps it only during a
 * request. If that process is the runner of a ground truth, it may still map memory from an earlier case, so this
 * memory is released only after the last case of the definition. */
static int reserve_answer_memory(struct trial *trial, const struct round *round, int at, struct err *err)
{
	enum { SMALL_CASE = 64 << 20 };
	bool program = trial->truths.items[at].program;
	struct shared_memory *memory = program ? &trial->context->truth_memory[at] : &trial->context->provider_memory;
	int64_t *bytes = arena_array(&trial->arena, (size_t)trial_tensor_count(trial), sizeof *bytes), need, available;

	for (int i = 0; i < trial_tensor_count(trial); i++)
		bytes[i] = i < trial->job->problem.input_count
			       ? round->in[i].data == NULL ? 0 : job_tensor_bytes(&round->in[i])
			       : job_tensor_bytes(&round->first[i - trial->job->problem.input_count]);
	need = layout_make(bytes, trial_tensor_count(trial), 0, &trial->arena).total;
	trial->answer_memory = memory;
	if (!program && memory->blocks != NULL && shared_memory_room(memory) < need)
		shared_memory_renew(memory); /* the provider does not map this memory now, because no request is
					      * pending */
	available = need > SMALL_CASE ? layout_add(trial->device->calls->memory_free(trial->device),
						   shared_memory_used(memory))
				      : need;
	if (need > available)
		return err_set(err, "the ground truth needs its own copy of the case, which takes %s on %s, but "
				    "only %s are free",
			       format_bytes(&trial->arena, need), trial->context->device_name,
			       format_bytes(&trial->arena, available));
	return shared_memory_reserve(memory, need, 0, err) < 0 ? -1 : 0;
}

bool trial_ask_provider(struct trial *trial, struct round *round, int at, struct buf *out)
{
	struct err err = {""};
	bool ready = reserve_answer_memory(trial, round, at, &err) == 0 &&
		     trial_stage(trial, round, RUN_FIRST, &err) == 0;

	if (ready)
		(trial->truths.items[at].program ? trial_write_truth
						 : trial_write_provide)(trial, round, trial->truths.items[at].name, out);
	else
		trial_pass_over(trial, round, at, true, err.text);
	return ready;
}

static double amount_of(const cJSON *message, const char *key)
{
	const cJSON *value = json_member(message, key);

	return cJSON_IsNumber(value) && value->valuedouble >= 0 && isfinite(value->valuedouble) ? value->valuedouble : 0;
}

/* Reads the precision of the provider's arithmetic, one tolerance rule per output. Returns NULL if the field "coarse"
 * is null or invalid. */
static const struct rule *read_coarse(struct trial *trial, const cJSON *message)
{
	const cJSON *list = json_member(message, "coarse"), *item;
	int count = trial->job->problem.output_count, output = 0;
	struct rule *rules = arena_array(&trial->arena, (size_t)count, sizeof *rules);

	if (!cJSON_IsArray(list))
		return NULL;
	cJSON_ArrayForEach(item, list)
		if (output < count)
			rules[output++] = (struct rule){.atol = amount_of(item, "atol"), .rtol = amount_of(item, "rtol")};
	return rules;
}

/* Handles the answer of a ground truth. `message` is the answer, and `said` is the list of outputs in it. Copies these
 * outputs, and compares the reference's outputs with them. If the answer does not match the request, this ground truth
 * is skipped. */
void trial_take_provided(struct trial *trial, struct round *round, int at, const cJSON *said, const cJSON *message)
{
	const cJSON *item;
	struct tried_truth *tried = &trial->tried[at];
	struct err err = {""};
	enum reason reason;
	int rc, output = 0;
	const char *wrong = trial_overwritten_canary(trial, &err, &rc);

	tried->seconds += amount_of(message, "seconds");
	tried->prepared += amount_of(message, "prepared");
	trial_note_latency(trial, trial->truths.items[at].name, message);
	round->coarse[at] = read_coarse(trial, message);
	tried->coarse |= round->coarse[at] != NULL;
	if (wrong == NULL && trial->truths.items[at].program)
		wrong = trial_changed_by_truth(trial, round);
	if (wrong == NULL && cJSON_GetArraySize(said) != trial->job->problem.output_count)
		wrong = "the ground truth did not return the number of outputs that the definition declares";
	cJSON_ArrayForEach(item, said)
		if (wrong == NULL)
			wrong = trial_wrong_form(trial, round, output++, item, &reason);
	if (wrong == NULL && trial_copy_provided(trial, round, round->truth[at], &err) != 0)
		wrong = err.text;
	if (wrong != NULL && trial->truths.items[at].place != NULL)
		wrong = arena_printf(&trial->arena, "%s: %s", trial->truths.items[at].place, wrong);
	if (wrong != NULL)
		trial_pass_over(trial, round, at, rc < 0 || err.text[0] != '\0', wrong);
	else
		trial_compare_with(trial, round, at);
}

/* ---- do they agree? ---- */

/* Returns whether the outputs of the ground truths `a` and `b` agree within the tolerance rules. If the op family has
 * its own rule for an output, the outputs of both ground truths must pass this rule. If the outputs differ, sets `miss`
 * to a message about the first difference. Returns -1 on error. */
static int pair_agrees(struct trial *trial, const struct round *round, int a, int b, const char **miss,
		       struct err *err)
{
	const struct tensor *found = round->truth[a], *wanted = round->truth[b];
	double margin = 0;
	int agrees = 1;

	*miss = NULL;
	for (int i = 0; i < trial->job->problem.output_count; i++) {
		struct rule rule = trial_rule_for(trial, round, i, a, b);
		struct output_verdict out;
		const char *why = NULL;
		int judged =
		    trial_compare_tensors(trial, round, i, found, wanted, rule, trial->tried[b].name, &out, NULL, &why, err);

		if (judged == 1 && why == NULL && !trial_is_builtin(&trial->truths.items[b]))
			judged = trial_compare_tensors(trial, round, i, wanted, found, rule, trial->tried[a].name, &out,
						       NULL, &why, err);
		if (judged < 0)
			return -1;
		margin = out.metrics.margin > margin || isnan(out.metrics.margin) ? out.metrics.margin : margin;
		if (why != NULL && *miss == NULL)
			*miss = why;
		agrees &= why == NULL;
	}
	if (isnan(margin))
		margin = INFINITY; /* NaN means that the outputs could not be compared; this counts as an infinite
				    * difference */
	if (trial_is_builtin(&trial->truths.items[b]) && !(trial->tried[a].margin > margin))
		trial->tried[a].margin = margin;
	return agrees;
}

/* Finds which ground truths differ from each other. Sets `first` to a message about the first difference. */
static int find_agreement(struct trial *trial, const struct round *round, struct agreement *out, const char **first,
			  struct err *err)
{
	*out = (struct agreement){.count = trial->truths.count};
	*first = NULL;
	memcpy(out->answered, round->answered, sizeof out->answered);
	for (int a = 0; a < trial->truths.count; a++)
		for (int b = a + 1; b < trial->truths.count; b++) {
			const char *miss;
			int agrees = 1;

			if (round->answered[a] && round->answered[b])
				agrees = pair_agrees(trial, round, a, b, &miss, err);
			if (agrees < 0)
				return -1;
			if (agrees)
				continue;
			agreement_differ(out, a, b);
			if (*first == NULL)
				*first = arena_printf(&trial->arena, "%s against %s: %s", trial->tried[a].name,
						      trial->tried[b].name, miss);
		}
	return 0;
}

/* Compares one output of ground truth `at` with the oracle's output, on the host. */
static int oracle_compares(struct trial *trial, const struct round *round, int output, int at, const struct tensor *in,
			   const struct tensor *found, const struct tensor *truth, struct metrics *metrics)
{
	struct err err = {""};
	int judged = trial->op->judge == NULL
			 ? 0
			 : trial->op->judge(&round->c, output, in, &found[output], &truth[output], metrics, NULL, &err);
	struct device *cpu;
	int rc = judged;

	if (judged != 0)
		return judged < 0 ? -1 : 0;
	if (trial->op->weigh != NULL) {
		trial->op->weigh(&round->c, output, trial_rule_for(trial, round, output, at, -1), &found[output],
				 &truth[output], metrics, &err);
		return 0;
	}
	cpu = trial->context->kernels->api->open_cpu(&err);
	if (cpu == NULL)
		return -1;
	rc = cpu->calls->compare(cpu, found[output].data, truth[output].data, found[output].dtype,
				 found[output].elements, trial_rule_for(trial, round, output, at, -1), metrics, &err);
	cpu->calls->close(cpu);
	return rc;
}

/* Compares ground truth `at` with the oracle, on the host. Returns whether they differ, or -1 if they cannot be
 * compared. */
static int differs_from_oracle(struct trial *trial, const struct round *round, int at, const struct tensor *in,
			       const struct tensor *truth)
{
	const struct op_problem *problem = &trial->job->problem;
	struct arena arena = {0};
	struct err err = {""};
	struct tensor *host = trial_on_host(trial, &arena, round->truth[at], problem->output_count, &err);
	int differs = host == NULL ? -1 : 0;

	for (int i = 0; differs >= 0 && i < problem->output_count; i++) {
		struct metrics metrics = {0};

		if (oracle_compares(trial, round, i, at, in, host, truth, &metrics) < 0)
			differs = -1;
		else if (!metrics.passed)
			differs = 1;
	}
	arena_free(&arena);
	return differs;
}

/* If the case is small enough, compares each computed ground truth with the oracle. */
static void ask_oracle(struct trial *trial, const struct round *round, struct agreement_vote *out)
{
	enum { ORACLE_BYTES = 256 << 20 };
	const struct op_problem *problem = &trial->job->problem;
	struct arena arena = {0};
	struct err err = {""};
	struct tensor *in = NULL, *truth = NULL;

	if (job_bytes(trial->job) <= ORACLE_BYTES) {
		in = trial_on_host(trial, &arena, round->in, problem->input_count, &err);
		truth = trial_on_host(trial, &arena, round->first, problem->output_count, &err);
	}
	out->cast = in != NULL && truth != NULL && trial->op != NULL && trial->op->oracle(&round->c, in, truth, &err) == 0;
	for (int at = 0; out->cast && at < trial->truths.count; at++) {
		int differs = round->answered[at] ? differs_from_oracle(trial, round, at, in, truth) : 0;

		out->cast = differs >= 0;
		out->against[at] = differs > 0;
	}
	arena_free(&arena);
}

/* Returns which ground truths differ from the oracle. On the CPU, builtin computes with the oracle, so the earlier
 * comparisons with builtin have the answer. */
static struct agreement_vote oracle_votes(struct trial *trial, const struct round *round,
					  const struct agreement *agreement)
{
	struct agreement_vote vote = {0};
	int builtin = trial_builtin_at(trial);

	if (builtin >= 0 && round->answered[builtin] &&
	    strcmp(trial->device->calls->class_name(trial->device), "cpu") == 0) {
		vote.cast = true;
		memcpy(vote.against, agreement->differ[builtin], sizeof vote.against);
	} else {
		ask_oracle(trial, round, &vote);
	}
	return vote;
}

/* Appends the names of the ground truths with which the reference agrees, such as "; the reference agrees with builtin
 * and torch". */
static void append_reference(const struct trial *trial, const struct round *round, struct buf *out)
{
	int said = 0;

	for (int i = 0; i < trial->truths.count; i++) {
		bool passed = true;

		if (!round->answered[i])
			continue;
		for (int k = 0; k < round->output_count; k++)
			if (strcmp(round->outputs[k].ground_truth, trial->tried[i].name) == 0)
				passed = passed && round->outputs[k].status == STATUS_PASSED;
		if (passed)
			buf_printf(out, "%s%s", said++ == 0 ? "; the reference agrees with " : " and ",
				   trial->tried[i].name);
	}
	if (said == 0)
		buf_text(out, "; the reference agrees with none of the ground truths");
}

static void decide_disagreement(struct trial *trial, const struct round *round, const struct agreement *agreement,
				const char *first)
{
	struct agreement_vote vote = {0};
	const char *names[GROUND_TRUTHS_MAX];
	struct buf text = {0};

	if (agreement_alone(agreement) < 0)
		vote = oracle_votes(trial, round, agreement);
	for (int i = 0; i < agreement->count; i++)
		names[i] = trial->tried[i].name;
	agreement_describe(agreement, &vote, names, &text);
	append_reference(trial, round, &text);
	buf_printf(&text, "\n%s", first);
	if (round->misses.length > 0)
		buf_printf(&text, "\nthe reference %s", round->misses.data);
	trial_decide(trial, STATUS_FAILED, REASON_GROUND_TRUTHS_DISAGREE,
		     arena_copy(&trial->arena, text.data, text.length));
	buf_free(&text);
}

void trial_check_agreement(struct trial *trial, struct round *round)
{
	struct agreement agreement;
	struct err err = {""};
	const char *first;

	if (find_agreement(trial, round, &agreement, &first, &err) != 0)
		trial_decide_error(trial, &err);
	else if (agreement_differences(&agreement) > 0)
		decide_disagreement(trial, round, &agreement, first);
}
