/* trial_checks - the checks of a case without ground truth, and the status that follows from them.
 *
 * A check compares runs of the reference with each other, or examines the outputs of one run. All checks together show
 * much less than a ground truth, because a reference that computes the wrong function can still pass every check.
 * Therefore the status is `checked`, and never `passed`. The checks that need extra runs are in extra_runs.c.
 *
 * To add a check, add a value to enum trial_check_kind and a row to `kinds`. If the check needs a run of its own, the
 * head of extra_runs.c says what else to add. The code of reports and of `explain` need not change. docs/verify.md
 * lists the checks, and docs/ground-truths.md counts how many planted mistakes they find. */
#include "workers/judge/trial_internal.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/core/described_effects.h"

/* All checks. `reason` is the reason of the verdict if the check fails on inputs that are known to be valid; the status
 * is then `failed`. A check with REASON_NONE never makes a case fail, because what it finds may be intended. */
static const struct {
	const char *name;
	enum reason reason;
} kinds[TRIAL_CHECKS] = {
    [TRIAL_CHECK_OUTPUTS] = {"outputs", REASON_SHAPE},
    [TRIAL_CHECK_REPEAT] = {"repeat", REASON_NONDETERMINISTIC},
    [TRIAL_CHECK_SEEDS] = {"seeds", REASON_NONDETERMINISTIC},
    [TRIAL_CHECK_INPUTS_KEPT] = {"inputs_kept", REASON_MUTATED_INPUT},
    [TRIAL_CHECK_FINITE] = {"finite", REASON_NONFINITE},
    [TRIAL_CHECK_NOT_CONSTANT] = {"not_constant", REASON_NONE},
    [TRIAL_CHECK_STRIDED] = {"strided", REASON_NONE},
    [TRIAL_CHECK_ROWS] = {"rows", REASON_NONE},
    [TRIAL_CHECK_NUMERICS] = {"numerics", REASON_NONE},
    [TRIAL_CHECK_DEVICES] = {"devices", REASON_NONE},
};

bool trial_is_checked(const struct trial *trial)
{
	return trial->job != NULL && trial->job->op == NULL && trial->job->asks == JOB_OUTPUTS;
}

bool trial_has_checks_beside(const struct trial *trial)
{
	return trial->job != NULL && trial->job->checks && trial->op != NULL && trial->job->asks == JOB_OUTPUTS;
}

void trial_note_check(struct trial *trial, enum trial_check_kind kind, enum check_result result, const char *evidence)
{
	struct check *check = &trial->checks[kind];

	if (check->name != NULL && check->result == CHECK_FAILS)
		return;
	*check = (struct check){.name = kinds[kind].name, .result = result, .evidence = evidence};
}

/* ---- checks that need no run of their own ---- */

void trial_note_written_input(struct trial *trial, int input, const char *sentence)
{
	bool declared = described_written(&trial->job->problem, input);

	trial_note_check(trial, TRIAL_CHECK_INPUTS_KEPT, declared ? CHECK_PROPERTY : CHECK_FAILS,
			 arena_printf(&trial->arena, "%s; %s", sentence,
				      declared ? "the definition says that the operation writes to it"
					       : "nothing in the definition says that the operation writes to it"));
}

/* Counts the NaN, infinite and nonzero elements of a tensor. To do this, compares the tensor with itself on the
 * device. */
static int examine(struct trial *trial, const struct tensor *tensor, struct metrics *out, struct err *err)
{
	const struct rule exact = {0, 0, 1};

	return trial->device->calls->compare(trial->device, tensor->data, tensor->data, tensor->dtype, tensor->elements, exact, out,
					     err);
}

/* Returns whether the inputs have only finite elements, or -1 on error. */
static int inputs_are_finite(struct trial *trial, const struct tensor *in, struct err *err)
{
	struct metrics found;

	for (int i = 0; i < trial->job->problem.input_count; i++) {
		if (in[i].data == NULL || in[i].rank == OP_SCALAR || !dtype_is_float(in[i].dtype))
			continue;
		if (examine(trial, &in[i], &found, err) != 0)
			return -1;
		if (found.nan_reference + found.inf_reference > 0)
			return 0;
	}
	return 1;
}

/* Records NaN and infinite elements of an output. Infinities may be intended: a masked score is -inf. */
static void note_nonfinite(struct trial *trial, int output, const struct metrics *found)
{
	int64_t nan = found->nan_reference, infinite = found->inf_reference;

	if (nan + infinite > 0)
		trial_note_check(trial, TRIAL_CHECK_FINITE, nan > 0 ? CHECK_FAILS : CHECK_PROPERTY,
				 arena_printf(&trial->arena, "output '%s' has %" PRId64 " %s elements",
					      trial->job->problem.outputs[output].name, nan > 0 ? nan : infinite,
					      nan > 0 ? "NaN" : "infinite"));
}

/* Checks that the outputs for one set of input values have no NaN. Returns a bit set: bit i is set if output i has only
 * zeros. */
static uint64_t check_values(struct trial *trial, const struct round *round)
{
	struct err err = {""};
	int finite = inputs_are_finite(trial, round->in, &err);
	uint64_t zeros = 0;

	if (finite == 0)
		trial_note_check(trial, TRIAL_CHECK_FINITE, CHECK_NOT_RUN, "an input has NaN or infinite elements");
	for (int i = 0; finite >= 0 && i < trial->job->problem.output_count; i++) {
		struct metrics found;

		if (round->first[i].elements == 0)
			continue;
		if (examine(trial, &round->first[i], &found, &err) != 0) {
			finite = -1;
			break;
		}
		if (finite > 0)
			note_nonfinite(trial, i, &found);
		zeros |= (uint64_t)found.zeros_would_pass << i;
	}
	if (finite < 0)
		trial_note_check(trial, TRIAL_CHECK_FINITE, CHECK_NOT_RUN, arena_string(&trial->arena, err.text));
	return zeros;
}

/* Records an output that has only zeros for all sets of input values. For these inputs, zeros may be correct. */
static void note_zeros(struct trial *trial, uint64_t zeros)
{
	const struct op_problem *problem = &trial->job->problem;

	for (int i = 0; i < problem->output_count; i++)
		if (zeros >> i & 1) {
			trial_note_check(trial, TRIAL_CHECK_NOT_CONSTANT, CHECK_PROPERTY,
					 arena_printf(&trial->arena, "all elements of output '%s' are 0", problem->outputs[i].name));
			return;
		}
}

/* Records the result of the run with another seed, if there was one. */
static void note_seeds(struct trial *trial)
{
	if (trial->seed_matters != NULL)
		trial_note_check(trial, TRIAL_CHECK_SEEDS, CHECK_FAILS,
				 arena_printf(&trial->arena,
					      "%s differs with another seed for the random number generators of "
					      "torch, NumPy and Python, and "
					      "nothing in the definition says that the operation draws random numbers",
					      trial->seed_matters));
	else if (trial->seed_changed)
		trial_note_check(trial, TRIAL_CHECK_SEEDS, CHECK_HOLDS, TRIAL_SEEDS_HOLD);
}

void trial_make_checks(struct trial *trial)
{
	int outputs = trial->job->problem.output_count;
	uint64_t zeros = UINT64_MAX;

	trial_note_check(trial, TRIAL_CHECK_OUTPUTS, CHECK_HOLDS,
			 arena_printf(&trial->arena, "%d output%s the declared shape%s and dtype%s", outputs,
				      outputs == 1 ? " has" : "s have", outputs == 1 ? "" : "s", outputs == 1 ? "" : "s"));
	trial_note_check(trial, TRIAL_CHECK_REPEAT, CHECK_HOLDS, "two runs with the tensors at different addresses give the same bits");
	if (trial->checks[TRIAL_CHECK_INPUTS_KEPT].name == NULL)
		trial_note_check(trial, TRIAL_CHECK_INPUTS_KEPT, CHECK_HOLDS, "the reference changed no input");
	trial_note_check(trial, TRIAL_CHECK_FINITE, CHECK_HOLDS, "no element of an output is NaN or infinite");
	note_seeds(trial);
	for (int r = 0; r < trial->rounds; r++)
		if (trial_hold_inputs(trial, &trial->round[r]) == 0)
			zeros &= check_values(trial, &trial->round[r]);
	note_zeros(trial, zeros);
}

/* ---- the status ---- */

static void decide_by_check(struct trial *trial, enum trial_check_kind kind)
{
	const struct check *check = &trial->checks[kind];
	const char *no_truth = trial->job->no_truth == NULL ? "" : trial->job->no_truth;

	if (job_inputs_are_known(trial->job) && kinds[kind].reason != REASON_NONE)
		trial_decide(trial, STATUS_FAILED, kinds[kind].reason, check->evidence);
	else
		trial_decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
			     arena_printf(&trial->arena, "%s\nThe check %s fails: %s%s", no_truth, check->name, check->evidence,
					  job_inputs_are_known(trial->job) ? ""
								  : ". The inputs are generic and may be invalid for this "
								    "operation"));
}

void trial_decide_by_checks(struct trial *trial, bool alone, const char *why)
{
	for (int kind = 0; kind < TRIAL_CHECKS; kind++) {
		/* NaN in the outputs is correct if a ground truth also has it, and if the inputs are known to be
		 * valid */
		bool agreed = !alone && kind == TRIAL_CHECK_FINITE && job_inputs_are_known(trial->job);

		if (trial->checks[kind].name != NULL && trial->checks[kind].result == CHECK_FAILS && !agreed)
			decide_by_check(trial, (enum trial_check_kind)kind);
	}
	if (alone)
		trial_decide(trial, STATUS_CHECKED, REASON_NO_GROUND_TRUTH, why);
}

/* Returns the check that sets the reason `reason` when it fails, or -1 if there is no such check. */
static int check_of_reason(enum reason reason)
{
	for (int kind = 0; kind < TRIAL_CHECKS; kind++)
		if (kinds[kind].reason == (reason == REASON_DTYPE ? REASON_SHAPE : reason) && reason != REASON_NONE)
			return kind;
	return -1;
}

/* Lists the checks of a case with an op family. Adds a finding for each check whose result a caller may want to
 * know. */
static void list_beside(struct trial *trial)
{
	struct verdict *verdict = &trial->verdict;
	struct check *list = arena_array(&trial->arena, TRIAL_CHECKS, sizeof *list);

	for (int kind = 0; kind < TRIAL_CHECKS; kind++) {
		const struct check *check = &trial->checks[kind];

		if (check->name == NULL)
			continue;
		list[verdict->check_count++] = *check;
		if (check->result == CHECK_FAILS || (kind == TRIAL_CHECK_NUMERICS && trial->extra.unstable))
			trial_add_finding(trial, arena_printf(&trial->arena, "%s: %s", check->name, check->evidence));
	}
	verdict->checks = list;
}

static void list_all(struct trial *trial)
{
	struct verdict *verdict = &trial->verdict;
	struct check *list = arena_array(&trial->arena, TRIAL_CHECKS, sizeof *list);
	int failed = verdict->status == STATUS_FAILED ? check_of_reason(verdict->reason) : -1;

	if (failed >= 0 && trial->checks[failed].name == NULL)
		trial_note_check(trial, (enum trial_check_kind)failed, CHECK_FAILS, verdict->message);
	for (int kind = 0; kind < TRIAL_CHECKS; kind++) {
		list[kind] = trial->checks[kind];
		if (list[kind].name == NULL)
			list[kind] = (struct check){.name = kinds[kind].name,
						    .result = CHECK_NOT_RUN,
						    .evidence = verdict->status == STATUS_CHECKED
								    ? "the case is too large for the additional runs of the checks"
								    : "the case already had a verdict"};
	}
	verdict->checks = list;
	verdict->check_count = TRIAL_CHECKS;
}

void trial_list_checks(struct trial *trial)
{
	if (trial_is_checked(trial))
		list_all(trial);
	else if (trial_has_checks_beside(trial))
		list_beside(trial);
}
