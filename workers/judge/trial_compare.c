/* trial_compare - compares the reference's results with those of a ground truth. Also computes the ground truth
 * builtin. */
#include "workers/judge/trial_internal.h"

#include <math.h>
#include <string.h>

#include "base/trace.h"
#include "kernels/core/gradient_bounds.h"
#include "kernels/core/compare_truncation.h"
#include "workers/judge/message_text.h"
#include "workers/protocol/chain_plan.h"

/* Copies tensors from the device to host memory, which is allocated in `arena`. Returns an array of OP_PLACES tensors,
 * because oracles expect this length; the tensors after the first `count` have no data. Returns NULL on error. The
 * copies may need much memory, so `arena` should be freed after each comparison. */
struct tensor *trial_on_host(struct trial *trial, struct arena *arena, const struct tensor *tensors, int count,
			     struct err *err)
{
	struct tensor *out = arena_array(arena, OP_PLACES, sizeof *out);

	for (int i = 0; i < count; i++) {
		int64_t bytes = job_tensor_bytes(&tensors[i]);

		out[i] = tensors[i];
		if (tensors[i].data == NULL)
			continue;
		out[i].data = arena_alloc(arena, (size_t)bytes);
		if (bytes > 0 &&
		    trial->device->calls->download(trial->device, out[i].data, tensors[i].data, bytes, err) != 0)
			return NULL;
	}
	return out;
}

/* Returns tensors that the host can read. On a GPU, returns copies (trial_on_host). On the CPU, returns `tensors`,
 * because a copy of a large case would take as long as the comparison. */
static const struct tensor *readable(struct trial *trial, struct arena *arena, const struct tensor *tensors, int count,
				     struct err *err)
{
	if (strcmp(trial->device->calls->class_name(trial->device), "cpu") != 0)
		return trial_on_host(trial, arena, tensors, count, err);
	struct tensor *out = arena_array(arena, OP_PLACES, sizeof *out);

	memcpy(out, tensors, (size_t)count * sizeof *out);
	return out;
}

/* Lets the op family judge an output. For `evidence`, see op.judge. Returns 1 if the family judged the output, 0 if the
 * output must be compared by the tolerance rule, and -1 on error. */
static int judge_by_family(struct trial *trial, const struct round *round, int output, const struct tensor *found,
			   const struct tensor *wanted, struct metrics *metrics, double *evidence, struct err *why)
{
	struct arena arena = {0};
	const struct tensor *in, *reference, *truth;
	int judged = -1;

	if (trial->op == NULL || trial->op->judge == NULL)
		return 0;
	in = readable(trial, &arena, round->in, trial->job->problem.input_count, why);
	reference = readable(trial, &arena, &found[output], 1, why);
	truth = readable(trial, &arena, &wanted[output], 1, why);
	if (in != NULL && reference != NULL && truth != NULL)
		judged = trial->op->judge(&round->c, output, in, reference, truth, metrics, evidence, why);
	arena_free(&arena);
	return judged;
}

/* Compares an output with the ground truth by the op family's own measure (op.weigh), which is not elementwise. Returns
 * 0, or -1 on error. */
static int weigh_by_family(struct trial *trial, const struct round *round, int output, const struct tensor *found,
			   const struct tensor *wanted, struct rule rule, struct metrics *metrics, struct err *why)
{
	struct arena arena = {0};
	const struct tensor *reference = readable(trial, &arena, &found[output], 1, why),
			    *truth = readable(trial, &arena, &wanted[output], 1, why);
	int rc = reference == NULL || truth == NULL ? -1 : 0;

	if (rc == 0)
		trial->op->weigh(&round->c, output, rule, reference, truth, metrics, why);
	arena_free(&arena);
	return rc;
}

static bool nonfinite(const struct metrics *metrics)
{
	return metrics->worst_count > 0 &&
	       (!isfinite(metrics->worst[0].reference) || !isfinite(metrics->worst[0].ground_truth));
}

/* Returns the case's tolerance rule for an output. If the arithmetic of ground truth `a` or `b` (-1: none) is coarser
 * than the rule, widens the rule to the precision of this arithmetic. */
struct rule trial_rule_for(const struct trial *trial, const struct round *round, int output, int a, int b)
{
	struct rule rule = job_rule(trial->job, round->c.contents, output);
	const int pair[] = {a, b};

	for (int i = 0; i < 2; i++) {
		const struct rule *coarse = pair[i] < 0 ? NULL : round->coarse[pair[i]];

		if (coarse != NULL && coarse[output].atol > rule.atol)
			rule.atol = coarse[output].atol;
		if (coarse != NULL && coarse[output].rtol > rule.rtol)
			rule.rtol = coarse[output].rtol;
	}
	return rule;
}

static struct output_verdict new_verdict(const char *name, const char *truth_name, const struct tensor *tensor,
					 struct rule rule)
{
	struct output_verdict out = {.name = name,
				     .ground_truth = truth_name,
				     .status = STATUS_PASSED,
				     .atol = rule.atol,
				     .rtol = rule.rtol,
				     .hit_ratio = rule.hit_ratio,
				     .rank = tensor->rank};

	memcpy(out.shape, tensor->shape, sizeof out.shape);
	return out;
}

/* Sets the status and the reason of an output from its metrics. Returns NULL if the output passed, else a message about
 * the difference. The message is `words`, a text of the op family. If `words` is NULL, the message is made from the
 * metrics. */
static const char *end_verdict(struct trial *trial, struct output_verdict *out, enum dtype dtype, const char *words)
{
	bool above_cap = trial->job->error_cap > 0 && out->metrics.max_abs > trial->job->error_cap;

	if (out->metrics.passed && above_cap) {
		out->metrics.passed = false;
		words = arena_printf(&trial->arena, "output '%s': an element differs by %g, more than the %g that the workload allows",
				     out->name, out->metrics.max_abs, trial->job->error_cap);
	}
	if (out->metrics.passed)
		return NULL;
	out->status = STATUS_FAILED;
	out->reason = nonfinite(&out->metrics) ? REASON_NONFINITE : REASON_NUMERIC;
	return words != NULL ? arena_string(&trial->arena, words) : format_miss(&trial->arena, out, dtype);
}

static int compare_elements(struct trial *trial, const struct tensor *found, const struct tensor *wanted,
			    struct rule rule, struct metrics *metrics, struct err *err)
{
	return trial->device->calls->compare(trial->device, found->data, wanted->data, found->dtype, found->elements,
					     rule, metrics, err);
}

/* Compares one output of `found` with `wanted` by the tolerance rule `rule`, and writes the result to `out`. If the
 * output fails, sets `miss` to the message. For `evidence`, see op.judge. Returns 1 if the op family judged the output
 * itself, 0 if it did not, and -1 on error. */
int trial_compare_tensors(struct trial *trial, const struct round *round, int output, const struct tensor *found,
			  const struct tensor *wanted, struct rule rule, const char *truth_name,
			  struct output_verdict *out, double *evidence, const char **miss, struct err *err)
{
	const struct tensor *tensor = &found[output];
	int judged;

	*miss = NULL;
	*out = new_verdict(trial->job->problem.outputs[output].name, truth_name, tensor, rule);
	judged = judge_by_family(trial, round, output, found, wanted, &out->metrics, evidence, err);
	if (judged < 0)
		return -1;
	if (judged == 0 && trial->op != NULL && trial->op->weigh != NULL) {
		if (weigh_by_family(trial, round, output, found, wanted, rule, &out->metrics, err) != 0)
			return -1;
		*miss = end_verdict(trial, out, tensor->dtype, err->text);
		return 0;
	}
	if (judged == 0 && compare_elements(trial, tensor, &wanted[output], rule, &out->metrics, err) != 0)
		return -1;
	*miss = end_verdict(trial, out, tensor->dtype, judged > 0 ? err->text : NULL);
	return judged;
}

/* Sets `missed` to the reason why the outputs fail. Of several reasons, the first in this list is used: non-finite
 * values, wrong outputs, wrong values of inputs. Sets `weak` to true if outputs that have only zeros would also pass;
 * for this, inputs that the reference wrote to do not count. */
static void sum_up_outputs(struct round *round)
{
	enum reason reason = REASON_NONE;
	bool weak = true;

	for (int i = 0; i < round->output_count; i++) {
		if (!round->of_input[i])
			weak = weak && round->outputs[i].metrics.zeros_would_pass;
		if (round->outputs[i].status == STATUS_FAILED && reason != REASON_NONFINITE &&
		    (reason == REASON_NONE || round->outputs[i].reason != REASON_MUTATED_INPUT))
			reason = round->outputs[i].reason;
	}
	round->weak = weak;
	round->missed = reason;
}

/* Begins a message that says how the reference differs from ground truth `at`. If there are several ground truths, the
 * message names this one. */
static void begin_miss(const struct trial *trial, struct round *round, int at)
{
	buf_text(&round->misses, round->misses.length > 0 ? "\n" : "");
	if (trial->truths.count > 1)
		buf_printf(&round->misses, "against %s: ", trial->tried[at].name);
}

/* Returns the name of the input to which an output of a gradient case belongs. The output is either the gradient with
 * respect to this input, or a slope: the change of the loss when a step is added to this input. */
static const char *input_behind(const struct trial *trial, int output)
{
	const struct op_arg *arg = &trial->job->problem.outputs[output];

	return arg->name + (gradient_is_slope(arg) ? sizeof GRADIENT_SLOPE : sizeof GRADIENT_OF_INPUT) - 1;
}

/* Returns whether the output has the same values as the ground truth, but different bits. Also returns false on
 * error. */
static bool have_other_bits(struct trial *trial, const struct output_verdict *out, const struct tensor *found,
			    const struct tensor *wanted)
{
	struct err err;

	return trial->job->compare_bits && out->metrics.max_abs == 0 && out->metrics.margin <= 0 &&
	       trial->device->calls->first_difference(trial->device, found->data, wanted->data, job_tensor_bytes(found),
						      &err) >= 0;
}

/* Returns the entry for the next comparison. After a successful comparison, the caller must increase output_count. */
static struct output_verdict *next_output(struct trial *trial, struct round *round)
{
	if (round->output_count == round->output_room) {
		const size_t count = (size_t)round->output_count, room = 2 * count + 1;
		struct output_verdict *outputs = arena_array(&trial->arena, room, sizeof *outputs);
		bool *of_input = arena_array(&trial->arena, room, sizeof *of_input);

		if (count > 0) {
			memcpy(outputs, round->outputs, count * sizeof *outputs);
			memcpy(of_input, round->of_input, count * sizeof *of_input);
		}
		round->outputs = outputs;
		round->of_input = of_input;
		round->output_room = (int)room;
	}
	return &round->outputs[round->output_count];
}

/* If an output that passed is truncated instead of rounded, makes it fail, and sets `miss` to the message. Does nothing
 * if the arithmetic of ground truth `at` is coarser than the tolerance rule, because such a ground truth cannot show
 * truncation. Returns 0, or -1 on error. */
static int look_for_truncation(struct trial *trial, const struct round *round, int at, int output,
			       struct output_verdict *out, const char **miss, struct err *err)
{
	struct arena arena = {0};
	const struct tensor *found, *truth;
	int rc = -1;

	if (round->coarse[at] != NULL || !output_may_be_truncated(round->first[output].dtype, &out->metrics))
		return 0;
	found = readable(trial, &arena, &round->first[output], 1, err);
	truth = readable(trial, &arena, &round->truth[at][output], 1, err);
	if (found != NULL && truth != NULL) {
		rc = 0;
		out->metrics.passed = !trial->context->kernels->api->output_is_truncated(out->name, found, truth, err);
		if (!out->metrics.passed)
			*miss = end_verdict(trial, out, found->dtype, err->text);
	}
	arena_free(&arena);
	return rc;
}

/* Returns memory for the evidence that op.judge writes when it compares an output. Only the first comparison for this
 * set of input values writes evidence: returns NULL if the output was compared before. Also returns NULL if the family
 * does not judge both sets together. */
static double *next_evidence(struct trial *trial, struct round *round, int output)
{
	if (trial->op == NULL || trial->op->judge_both == NULL || round->evidence[output] != NULL)
		return NULL;
	round->evidence[output] = arena_array(&trial->arena, OP_EVIDENCE, sizeof(double));
	return round->evidence[output];
}

static int compare_output(struct trial *trial, struct round *round, int at, int output)
{
	struct output_verdict *out = next_output(trial, round);
	struct err err = {""};
	const char *miss;
	int judged = trial_compare_tensors(trial, round, output, round->first, round->truth[at],
					   trial_rule_for(trial, round, output, at, -1), trial->tried[at].name, out,
					   next_evidence(trial, round, output), &miss, &err);

	if (judged < 0 || (judged == 0 && look_for_truncation(trial, round, at, output, out, &miss, &err) != 0)) {
		trial_decide_error(trial, &err);
		return -1;
	}
	out->other_bits = have_other_bits(trial, out, &round->first[output], &round->truth[at][output]);
	round->output_count++;
	trial->verdict.elements += round->first[output].elements;
	if (miss != NULL) {
		begin_miss(trial, round, at);
		if (round->ungiven[output])
			buf_printf(&round->misses,
				   "autograd finds no path from the outputs to input '%s' (its gradient is None); ",
				   input_behind(trial, output));
		buf_text(&round->misses, miss);
	}
	return 0;
}

/* Returns 1 if an input that the reference may write to still has its original values, else 0. Returns -1 on error,
 * after setting the status of the case. */
static int was_kept(struct trial *trial, const struct round *round, int input)
{
	struct err err = {""};
	int64_t at = trial->device->calls->first_difference(
	    trial->device, round->in[input].data, round->left[input].data, job_tensor_bytes(&round->in[input]), &err);

	if (at == -2)
		trial_decide_error(trial, &err);
	return at == -2 ? -1 : at == -1;
}

/* Compares tensor `place` of ground truth `at` with an input that the reference wrote to. Returns -1 on error, after
 * setting the status of the case. */
static int compare_left(struct trial *trial, struct round *round, int at, int input, int place)
{
	const struct op_problem *problem = &trial->job->problem;
	bool own = place >= problem->output_count;
	const struct tensor *left = &round->left[input];
	struct rule rule = own ? trial->op->rule(&round->c, place) : trial_rule_for(trial, round, place, at, -1);
	struct output_verdict *out = next_output(trial, round);
	struct err err = {""};
	const char *miss;

	*out = new_verdict(problem->inputs[input].name, trial->tried[at].name, left, rule);
	if (compare_elements(trial, left, &round->truth[at][place], rule, &out->metrics, &err) != 0) {
		trial_decide_error(trial, &err);
		return -1;
	}
	round->of_input[round->output_count++] = true;
	trial->verdict.elements += left->elements;
	round->judged[input] = true;
	miss = end_verdict(trial, out, left->dtype, NULL);
	if (miss == NULL)
		return 0;
	int kept = was_kept(trial, round, input);

	if (kept < 0)
		return -1;
	begin_miss(trial, round, at);
	buf_printf(&round->misses,
	           kept > 0 ? "the reference left its input '%s' unchanged, but must write to it "
	                    : "the reference wrote to its input '%s', but the written values differ from ",
	           problem->inputs[input].name);
	if (own)
		buf_text(&round->misses, "the result of the operation: ");
	else
		buf_printf(&round->misses, "output '%s': ", problem->outputs[place].name);
	buf_text(&round->misses, miss);
	if (!own)
		out->reason = REASON_MUTATED_INPUT;
	return 0;
}

/* Checks an input that the reference may write to. After the run, such an input must have either the values of an
 * output or values that no output has. Every ground truth computes the values of the outputs. Values that no output has
 * are computed only by builtin. If builtin is not among the ground truths, the ground truths that are Python source
 * compute them. Returns -1 on error, after setting the status of the case. */
static int compare_input(struct trial *trial, struct round *round, int at, int input)
{
	struct op_in_place leave = trial_in_place(trial, round, input);
	int kept = leave.place != OP_KEPT && leave.may_keep ? was_kept(trial, round, input) : 0;

	if (leave.place == OP_KEPT || kept < 0)
		return kept;
	if (kept > 0)
		round->judged[input] = true;
	if (kept > 0 || round->truth[at][leave.place].data == NULL)
		return 0;
	return compare_left(trial, round, at, input, leave.place);
}

/* Returns the first input that the reference may write to and whose final values no ground truth has checked. Returns
 * -1 if there is none. */
int trial_unjudged_input(const struct trial *trial, const struct round *round)
{
	for (int i = 0; i < trial->job->problem.input_count; i++)
		if (!round->judged[i] && trial_in_place(trial, round, i).place != OP_KEPT)
			return i;
	return -1;
}

/* Compares the reference's outputs, and the inputs that it may write to, with ground truth `at`. */
int trial_compare_with(struct trial *trial, struct round *round, int at)
{
	enum judge_part before = judge_seconds_turn(&trial->context->clock, JUDGE_COMPARES);
	int rc = 0;

	for (int i = 0; rc == 0 && i < trial->job->problem.output_count; i++)
		rc = compare_output(trial, round, at, i);
	for (int i = 0; rc == 0 && i < trial->job->problem.input_count; i++)
		rc = compare_input(trial, round, at, i);
	judge_seconds_turn(&trial->context->clock, before);
	if (rc != 0)
		return -1;
	round->answered[at] = true;
	sum_up_outputs(round);
	return 0;
}

/* Returns the first comparison of an output for this set of input values, or NULL if the output was not compared. */
static struct output_verdict *first_verdict(struct trial *trial, struct round *round, int output)
{
	for (int i = 0; i < round->output_count; i++)
		if (!round->of_input[i] &&
		    strcmp(round->outputs[i].name, trial->job->problem.outputs[output].name) == 0)
			return &round->outputs[i];
	return NULL;
}

static void judge_output_of_both(struct trial *trial, int output)
{
	const struct op_case *c[CONTENTS_COUNT];
	const struct tensor *found[CONTENTS_COUNT];
	const double *evidence[CONTENTS_COUNT];
	struct output_verdict *verdict = NULL;
	struct arena arena = {0};
	struct err err = {""};
	bool whole = true;

	for (int r = 0; r < CONTENTS_COUNT && whole; r++) {
		struct round *round = &trial->round[r];

		verdict = first_verdict(trial, round, output);
		c[r] = &round->c;
		found[r] = readable(trial, &arena, &round->first[output], 1, &err);
		evidence[r] = round->evidence[output];
		whole = verdict != NULL && found[r] != NULL;
	}
	if (whole && trial->op->judge_both(c, output, found, evidence, &err) != 0) {
		verdict->status = STATUS_FAILED;
		verdict->reason = REASON_NUMERIC;
		trial_decide(trial, STATUS_FAILED, REASON_NUMERIC, arena_string(&trial->arena, err.text));
	} else if (verdict != NULL && !whole) {
		trial_decide_error(trial, &err);
	}
	arena_free(&arena);
}

/* Lets the op family check the outputs for both sets of input values together, after each set has passed. */
void trial_judge_both(struct trial *trial)
{
	if (trial->op == NULL || trial->op->judge_both == NULL || trial->rounds < CONTENTS_COUNT)
		return;
	for (int i = 0; i < trial->job->problem.output_count && !trial->decided; i++)
		judge_output_of_both(trial, i);
}

void trial_pass_over(struct trial *trial, struct round *round, int at, bool accident, const char *why)
{
	round->passed_over[at] = arena_string(&trial->arena, why);
	if (trial->tried[at].passed_over == NULL)
		trial->tried[at].passed_over = round->passed_over[at];
	trial->tried[at].accident |= accident;
}

/* Computes the ground truth on the host with the op family's oracle, and uploads the results to `to`. */
static int truth_on_host(struct trial *trial, const struct round *round, struct tensor *to, struct err *err)
{
	const struct op_problem *problem = &trial->job->problem;
	struct arena arena = {0};
	const struct tensor *in = readable(trial, &arena, round->in, problem->input_count, err);
	struct tensor *truth = trial_on_host(trial, &arena, to, problem->output_count, err);
	int rc = in == NULL || truth == NULL ? -1 : trial->op->oracle(&round->c, in, truth, err);

	for (int i = 0; rc == 0 && i < problem->output_count; i++)
		rc = trial->device->calls->upload(trial->device, to[i].data, truth[i].data, job_tensor_bytes(&to[i]), err);
	arena_free(&arena);
	return rc;
}

/* Computes the definition's chain of operations on the host. */
static int chain_on_host(struct trial *trial, const struct round *round, struct tensor *to, struct err *err)
{
	const struct op_problem *problem = &trial->job->problem;
	struct arena arena = {0};
	const struct chain_plan *plan =
	    chain_plan_make(trial->context->kernels->api, trial->job->chain, problem, &arena, err);
	const struct tensor *in = plan == NULL ? NULL : readable(trial, &arena, round->in, problem->input_count, err);
	struct tensor *truth = in == NULL ? NULL : trial_on_host(trial, &arena, to, problem->output_count, err);
	int rc = truth == NULL ? -1 : chain_plan_compute(plan, &round->c, in, truth, err);

	for (int i = 0; rc == 0 && i < problem->output_count; i++)
		rc = trial->device->calls->upload(trial->device, to[i].data, truth[i].data, job_tensor_bytes(&to[i]), err);
	arena_free(&arena);
	return rc;
}

void trial_ask_chain(struct trial *trial, struct round *round, int at)
{
	struct err err = {""};

	if (trial->job->chain != NULL && chain_on_host(trial, round, round->truth[at], &err) == 0)
		trial_compare_with(trial, round, at);
	else
		trial_pass_over(trial, round, at, false, err.text);
}

/* Computes the ground truth builtin for one set of input values, unless it was already computed while the reference
 * ran. */
static int make_truth(struct trial *trial, struct round *round, int at, struct err *err)
{
	enum judge_part before = judge_seconds_turn(&trial->context->clock, JUDGE_COMPUTES);
	struct tensor *to = round->truth[at];

	if (!round->computed && trial->op->on_host)
		round->computed = truth_on_host(trial, round, to, err) == 0;
	else if (!round->computed)
		round->computed = trial->device->calls->truth(trial->device, trial->op, &round->c, round->in, to, err) == 0;
	judge_seconds_turn(&trial->context->clock, before);
	return round->computed ? 0 : -1;
}

/* Computes the ground truth builtin and compares the outputs with it. If builtin fails, it is skipped. If builtin is
 * the only ground truth, its failure sets the status of the case. Builtin supports every case of its op families, so a
 * failure is transient; the usual cause is that memory was not available. */
void trial_ask_builtin(struct trial *trial, struct round *round, int at)
{
	struct err err = {""};
	double start = judge_seconds_now();
	int rc = make_truth(trial, round, at, &err);

	trial_note_seconds(trial, trial->truths.items[at].name, judge_seconds_now() - start);
	if (rc == 0)
		trial_compare_with(trial, round, at);
	else if (trial->truths.count == 1 || trial->device->calls->broken(trial->device))
		trial_decide_error(trial, &err);
	else
		trial_pass_over(trial, round, at, true, err.text);
}

/* Returns the index of builtin in the list of ground truths if it is certain that the outputs must be compared with
 * builtin: builtin is the first ground truth, or all ground truths were requested. Returns -1 if this is not certain,
 * or if the comparison for this set of input values has already been made. */
static int builtin_to_come(const struct trial *trial, const struct round *round)
{
	int at = trial->op == NULL ? -1 : trial_builtin_at(trial);

	return at >= 0 && !trial->decided && (at == 0 || trial->truths.all) && !round->answered[at] ? at : -1;
}

void trial_ask_builtin_early(struct trial *trial, struct round *round)
{
	int at = builtin_to_come(trial, round);

	if (at >= 0)
		trial_ask_builtin(trial, round, at);
}

/* While the judge computes, it reads no message. But if the reference fails, the judge must answer within BLAME_MS. For
 * a case of at most this size, the computation takes only a small part of BLAME_MS. */
enum { AHEAD_BYTES = 128 << 20 };

/* Computes the ground truth builtin for one set of input values before the reference has computed its outputs. If this
 * fails, the computation is repeated when the outputs exist. */
static void compute_ahead(struct trial *trial, struct round *round)
{
	int at = trial->input_bytes > AHEAD_BYTES ? -1 : builtin_to_come(trial, round);
	struct err err = {""};

	if (at >= 0 && make_truth(trial, round, at, &err) == 0)
		trace("judge", "%s %s: builtin is computed while the reference runs", trial->job->problem.name, trial->job->id);
}

void trial_think(struct trial *trial)
{
	struct round *previous = &trial->round[trial->run == RUN_AGAIN ? trial->rounds - 1 : 0];
	struct round *current = trial_round_of_run(trial, trial->run);

	if (trial->job->bench || trial->probing) /* while a run is measured, the judge must not disturb it */
		return;
	if (trial->run != RUN_FIRST && trial->held[previous->c.contents])
		trial_ask_builtin_early(trial, previous);
	if (trial->held[current->c.contents])
		compute_ahead(trial, current);
}
