/* extra_runs - the additional runs of a small case without ground truth, after its usual runs. Each extra run is for
 * one check (trial_checks.c).
 *
 * Each kind of extra run is a row of `kinds`, with functions that count its runs, prepare a run, and read the outputs
 * of a run. All runs of one kind are consecutive. After the last run of a kind, the result of its check is recorded. If
 * the reference raises in an extra run, the case does not fail, because the inputs of the run may be invalid for the
 * operation. Instead, the result of the check says that the check did not run.
 *
 * To add a kind, add a value to enum extra_kind (trial_internal.h), a row to `kinds`, and a purpose to enum
 * judge_purpose (judge_seconds.h). If the row uses the function finish_once, add the kind's check to the table in this
 * function. If the row has a new mode, add it to called_for_check in python/runner.py, which calls the reference, and
 * to python/tensors.py, which changes the arguments. If `--edge` must also run the check in cases with an op family,
 * set `beside` to the name of the check. A new name in `beside` changes the field case.checks of these cases
 * (engine/cases_subject.c), so they run again. Add the check to the list of the checks of --edge in docs/verify.md. */
#include "workers/judge/extra_runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kernels/core/described_effects.h"
#include "workers/judge/trial_internal.h"
#include "workers/judge/unit_distance.h"

/* A case above this size gets no extra runs. On a GPU the limit is larger, because the host reads only the outputs. */
static const int64_t EXTRA_BYTES = (int64_t)64 << 20, EXTRA_BYTES_ON_GPU = (int64_t)4 << 30;
enum { EXTRA_SHARE_OF_GPU = 32 };
/* A run with gradients takes as long as a few ordinary runs, so it is used only if the case has at least this many
 * float tensors. */
enum { GRADIENT_TENSORS = 5 };
/* Digits count as lost if an output and the float64 output of the same reference differ by more than UNSTABLE_UNITS
 * units of the declared dtype (unit_distance.h). If `moved` (see note_lost_digits) times SENSITIVE_TIMES is at least as
 * large as this difference, the operation counts as sensitive. */
static const double UNSTABLE_UNITS = 64, SENSITIVE_TIMES = 4;

static bool runs_on_cpu(const struct trial *trial)
{
	return strcmp(trial->device->calls->class_name(trial->device), "cpu") == 0;
}

/* ---- outputs of an extra run ---- */

/* Copies output `output` of the current extra run to host memory in `arena`. Returns NULL if that fails. */
static struct tensor *found_output(struct trial *trial, int output, struct arena *arena)
{
	struct tensor tensor = trial->extra.round.first[output];
	struct err err = {""};

	tensor.data = trial->extra.out[output].data;
	if (shared_memory_get(&trial->context->shared, tensor.data,
			      trial->layout.offset[trial->job->problem.input_count + output], job_tensor_bytes(&tensor),
			      &err) != 0)
		return NULL;
	return trial_on_host(trial, arena, &tensor, 1, &err);
}

/* Returns whether the bits of this output differ from those of the first run. */
static bool output_differs(struct trial *trial, int output)
{
	const struct tensor *first = &trial->round[CONTENTS_FIRST].first[output];
	struct err err = {""};

	return shared_memory_first_difference(&trial->context->shared,
					      trial->layout.offset[trial->job->problem.input_count + output], first->data,
					      job_tensor_bytes(first), &err) != -1;
}

/* Returns a copy of an output of the first run in host memory. The copy is freed with the trial. Returns NULL if the
 * copy fails. */
static const struct tensor *first_output(struct trial *trial, int output)
{
	const struct tensor **copy = &trial->extra.first[output];
	struct err err = {""};

	if (*copy == NULL)
		*copy = trial_on_host(trial, &trial->arena, &trial->round[CONTENTS_FIRST].first[output], 1, &err);
	return *copy;
}

double extra_output_distance(struct trial *trial, int output, const struct row_order *order)
{
	const struct tensor *first = &trial->round[CONTENTS_FIRST].first[output], *other = &trial->extra.round.first[output];
	struct arena arena = {0};

	/* first compares the bits on the device; if they are equal, the host need not compare the values, which takes
	 * longer */
	if (order == NULL && other->dtype == first->dtype && other->elements == first->elements && !output_differs(trial, output))
		return 0;
	const struct tensor *found = found_output(trial, output, &arena), *expected = first_output(trial, output);
	double distance =
	    found != NULL && expected != NULL ? unit_distance_largest(found, expected, first->dtype, order) : NAN;

	arena_free(&arena);
	return distance;
}

static const char *output_name(const struct trial *trial, int output)
{
	return trial->job->problem.outputs[output].name;
}

/* Returns whether the values of this output differ from those of the first run. */
static bool output_changes(struct trial *trial, int output)
{
	const struct tensor *first = &trial->round[CONTENTS_FIRST].first[output];
	enum trial_difference difference =
	    trial_first_difference(trial, trial->job->problem.input_count + output, first);
	struct arena arena = {0};
	bool changes;

	if (difference != DIFFERS_UNKNOWN)
		return difference == DIFFERS_IN_VALUE;
	const struct tensor *found = found_output(trial, output, &arena), *expected = first_output(trial, output);

	changes = found == NULL || expected == NULL || unit_distance_any(found, expected);
	arena_free(&arena);
	return changes;
}

/* ---- other seeds ---- */

/* An operation that draws random samples gets one run with another seed, because its ordinary runs on the first set of
 * input values all have the same seed. Other operations get none: their last ordinary run already had another seed than
 * the first run (generator_seed in trial_stage.c). */
static int once_if_it_samples(const struct trial *trial)
{
	return described_samples(&trial->job->problem) != NULL ? 1 : 0;
}

static int once_unless_contiguous(const struct trial *trial)
{
	return trial->job->contiguous ? 0 : 1;
}

static bool prepare_nothing(struct trial *trial, int item)
{
	(void)trial;
	(void)item;
	return true;
}

static void read_seeds(struct trial *trial, int item)
{
	(void)item;
	for (int i = 0; i < trial->job->problem.output_count; i++) {
		if (!output_differs(trial, i))
			continue;
		trial_note_check(trial, TRIAL_CHECK_SEEDS, CHECK_PROPERTY,
				 arena_printf(&trial->arena,
					      "output '%s' differs with another seed for the random number "
					      "generators of torch, NumPy and Python; "
					      "the definition says that the operation draws random numbers ('%s')",
					      output_name(trial, i), described_samples(&trial->job->problem)));
		return;
	}
	trial_note_check(trial, TRIAL_CHECK_SEEDS, CHECK_HOLDS, TRIAL_SEEDS_HOLD);
}

static void finish_seeds(struct trial *trial)
{
	if (trial->checks[TRIAL_CHECK_SEEDS].name == NULL && trial->extra.failures > 0)
		trial_note_check(trial, TRIAL_CHECK_SEEDS, CHECK_NOT_RUN, trial->extra.failure);
}

/* ---- the effect of each input ---- */

static int count_inputs(const struct trial *trial)
{
	return trial->rounds > 1 && !trial->one_set ? trial->job->problem.input_count : 0;
}

/* Returns 1 if a run that computes gradients is useful, else 0. A single run with gradients can show for several inputs
 * that they affect the outputs. For each of the remaining inputs, there is a separate run. */
static int count_gradients(const struct trial *trial)
{
	const struct op_problem *problem = &trial->job->problem;
	int tensors = 0;

	for (int i = 0; i < problem->input_count; i++)
		tensors += problem->inputs[i].rank != OP_SCALAR && dtype_is_float(problem->inputs[i].dtype);
	return count_inputs(trial) > 0 && tensors >= GRADIENT_TENSORS ? 1 : 0;
}

/* Records the outputs whose values change with the second set of input values. */
static void note_changed_outputs(struct trial *trial)
{
	for (int i = 0; i < trial->job->problem.output_count; i++) {
		struct arena arena = {0};
		struct err err = {""};
		const struct tensor *first = first_output(trial, i);
		struct tensor *second = trial_on_host(trial, &arena, &trial->round[CONTENTS_SECOND].first[i], 1, &err);

		if (first != NULL && second != NULL && unit_distance_any(second, first))
			trial->extra.changed_outputs |= UINT64_C(1) << i;
		arena_free(&arena);
	}
}

static void read_gradients(struct trial *trial, int item)
{
	const cJSON *said = json_member(trial->extra.answer, "effects"), *effect;
	int input = 0;

	(void)item;
	if (!cJSON_IsArray(said) || cJSON_GetArraySize(said) != trial->job->problem.input_count)
		return;
	cJSON_ArrayForEach(effect, said)
	{
		if (cJSON_IsTrue(effect))
			trial->extra.by_gradient |= UINT64_C(1) << input;
		input++;
	}
	note_changed_outputs(trial);
}

static void finish_gradients(struct trial *trial)
{
	(void)trial;
}

static bool output_is_constant(const struct trial *trial, int output)
{
	return (trial->extra.changed_outputs >> output & 1) == 0 && trial->round[CONTENTS_FIRST].first[output].elements > 0;
}

/* Returns whether an input needs no separate run with its second set of values, because its gradient already shows that
 * it affects the outputs. Returns false if some output was the same in all runs so far, because the separate run may
 * change this output. */
static bool is_shown_by_gradient(const struct trial *trial, int input)
{
	if ((trial->extra.by_gradient >> input & 1) == 0)
		return false;
	for (int i = 0; i < trial->job->problem.output_count; i++)
		if (output_is_constant(trial, i))
			return false;
	return true;
}

/* Prepares the run in which only this input has its second set of values. Returns false if there is no such run: the
 * input is a Python scalar, its tensor is empty, its gradient shows that it affects the outputs, or its two sets of
 * values are equal. */
static bool prepare_input(struct trial *trial, int item)
{
	struct tensor *in = &trial->extra.round.in[item];
	const struct tensor *second = &trial->round[CONTENTS_SECOND].in[item];
	bool all = trial->extra.all_examined;
	struct err err = {""};

	if (in->data != NULL && in->elements == 0)
		return false;
	if (is_shown_by_gradient(trial, item)) {
		trial->extra.examined++;
		trial->extra.gradients++;
		return false;
	}
	trial->extra.all_examined = false;
	if (in->data == NULL)
		return false;
	if (trial_hold_inputs(trial, &trial->round[CONTENTS_SECOND]) != 0)
		return false;
	if (trial->device->calls->first_difference(trial->device, in->data, second->data, job_tensor_bytes(in), &err) == -1) {
		trial->extra.tensor_left_out = true;
		return false;
	}
	in->data = second->data;
	trial->extra.all_examined = all;
	return true;
}

static bool is_written(const struct trial *trial, int input)
{
	return described_written(&trial->job->problem, input);
}

static void read_input(struct trial *trial, int item)
{
	struct extra *extra = &trial->extra;
	bool any = false;

	for (int i = 0; i < trial->job->problem.output_count; i++)
		if (output_changes(trial, i)) {
			extra->changed_outputs |= UINT64_C(1) << i;
			any = true;
		}
	/* Only one input without effect is reported. An input that the operation writes to is reported only if there is
	 * no other, because it may be just a buffer for an output. */
	if (!any && (extra->without_effect < 0 || is_written(trial, extra->without_effect)))
		extra->without_effect = item;
	extra->examined++;
}

static const char *inputs_matter(struct trial *trial)
{
	const struct extra *extra = &trial->extra;

	if (extra->gradients > 0)
		return arena_printf(&trial->arena, "each of %d inputs influences an output (gradients show this for %d inputs, a "
						   "second set of values for %d)",
				    extra->examined, extra->gradients, extra->examined - extra->gradients);
	if (extra->examined == 1)
		return "a second set of values was tried for 1 input, and this set changes an output";
	return arena_printf(&trial->arena, "a second set of values was tried for each of %d inputs, and each of "
					   "these sets changes an output", extra->examined);
}

/* Records that the values of an input affect no output. This may be correct, because the operation may write to the
 * input without reading it. */
static void note_without_effect(struct trial *trial, int input)
{
	bool left_out = trial->extra.tensor_left_out, written = is_written(trial, input);

	trial_note_check(trial, TRIAL_CHECK_NOT_CONSTANT, left_out || written ? CHECK_PROPERTY : CHECK_FAILS,
			 arena_printf(&trial->arena, "no output depends on the values of input '%s'%s%s",
				      trial->job->problem.inputs[input].name,
				      left_out ? "; at least one other input has the same values in all runs" : "",
				      written ? "; the definition says that the operation writes to it" : ""));
}

static void finish_inputs(struct trial *trial)
{
	const struct op_problem *problem = &trial->job->problem;
	const struct extra *extra = &trial->extra;

	if (extra->examined == 0) {
		trial_note_check(trial, TRIAL_CHECK_NOT_CONSTANT, CHECK_NOT_RUN,
				 "no input has a second set of values that the reference accepts");
		return;
	}
	if (extra->without_effect >= 0)
		note_without_effect(trial, extra->without_effect);
	for (int i = 0; i < problem->output_count && extra->failures == 0 && extra->all_examined; i++)
		if (output_is_constant(trial, i))
			trial_note_check(trial, TRIAL_CHECK_NOT_CONSTANT, CHECK_FAILS,
					 arena_printf(&trial->arena, "output '%s' depends on no input", output_name(trial, i)));
	if (extra->without_effect >= 0)
		return;
	trial_note_check(trial, TRIAL_CHECK_NOT_CONSTANT, CHECK_HOLDS,
			 arena_printf(&trial->arena, "%s%s", inputs_matter(trial),
				      extra->failures == 0 && extra->all_examined ? ", and no output is constant" : ""));
}

/* ---- strided inputs ---- */

/* Compares each output of this run with the output of the first run. Returns the largest distance, and sets `worst` to
 * the output with this distance. */
static double all_distances(struct trial *trial, int *worst)
{
	double largest = 0;

	*worst = 0;
	for (int i = 0; i < trial->job->problem.output_count; i++) {
		double distance = extra_output_distance(trial, i, NULL);

		if (!(distance <= largest)) {
			largest = distance;
			*worst = i;
		}
	}
	return largest;
}

static void read_strided(struct trial *trial, int item)
{
	int worst;
	double distance = all_distances(trial, &worst);

	(void)item;
	if (distance <= EXTRA_SAME_UNITS)
		trial_note_check(trial, TRIAL_CHECK_STRIDED, CHECK_HOLDS, "inputs that are not contiguous give the same outputs");
	else
		trial_note_check(trial, TRIAL_CHECK_STRIDED, CHECK_FAILS,
				 arena_printf(&trial->arena, "output '%s' has other values if the inputs are not contiguous",
					      output_name(trial, worst)));
}

/* ---- float64 ---- */

static int once_and_nudged(const struct trial *trial)
{
	(void)trial;
	return 2;
}

static bool prepare_float64(struct trial *trial, int item)
{
	struct round *round = &trial->extra.round;
	bool any = false;

	if (item == 1 && trial->extra.wide == NULL)
		return false;
	for (int i = 0; i < trial->job->problem.output_count; i++)
		if (dtype_bits(round->first[i].dtype) >= 16 && dtype_is_float(round->first[i].dtype)) {
			any = any || round->first[i].dtype != DTYPE_FLOAT64;
			round->first[i].dtype = DTYPE_FLOAT64;
		}
	return any;
}

/* Records that the reference loses digits. `moved` is the distance, in units, by which the output changes if the inputs
 * change by half a unit (rounding changes an input by at most half a unit); NaN: unknown. If `moved` is about as large
 * as the distance between the output and its float64 result, the operation is sensitive: another order of steps in the
 * reference would lose as many digits. Otherwise the reference is unstable. */
static void note_lost_digits(struct trial *trial, double moved)
{
	const struct extra *extra = &trial->extra;
	const char *dtype = dtype_name(trial->round[CONTENTS_FIRST].first[extra->lost_output].dtype);
	bool sensitive = SENSITIVE_TIMES * moved >= extra->lost_units;

	trial->extra.unstable = !sensitive;
	trial_note_check(trial, TRIAL_CHECK_NUMERICS, CHECK_PROPERTY,
			 arena_printf(&trial->arena, "%s: output '%s' differs by %.3g units of %s from the output "
						     "of the same reference in float64%s",
				      sensitive ? "sensitive" : "unstable", output_name(trial, extra->lost_output),
				      extra->lost_units, dtype,
				      isnan(moved) ? ""
						   : arena_printf(&trial->arena, ", and changes by %.3g if the inputs change by half a unit",
								  moved)));
}

/* Compares the outputs with those of the same reference in float64. Skips integer outputs, and float outputs of fewer
 * than 16 bits: a small difference before the rounding can change the rounded value by a whole step. If digits are
 * lost, keeps the float64 output, so that read_wide can compare it with that of the second run. */
static void read_float64(struct trial *trial)
{
	struct extra *extra = &trial->extra;
	double largest = 0;
	int worst = 0;

	for (int i = 0; i < trial->job->problem.output_count; i++) {
		double distance = extra->round.first[i].dtype == DTYPE_FLOAT64 ? extra_output_distance(trial, i, NULL) : 0;

		if (!(distance <= largest)) {
			largest = distance;
			worst = i;
		}
	}
	extra->lost_output = worst;
	extra->lost_units = largest;
	extra->wide = largest <= UNSTABLE_UNITS || !isfinite(largest) ? NULL : found_output(trial, worst, &trial->arena);
	if (largest <= UNSTABLE_UNITS)
		trial_note_check(trial, TRIAL_CHECK_NUMERICS, CHECK_HOLDS,
				 arena_printf(&trial->arena, "output '%s' differs by %.3g units of %s from the "
							     "output of the same reference in float64",
					      output_name(trial, worst), largest,
					      dtype_name(trial->round[CONTENTS_FIRST].first[worst].dtype)));
	else if (extra->wide == NULL)
		note_lost_digits(trial, NAN);
}

/* Reads the result of a run in float64. The first run has the inputs of the case. In the second run, the inputs differ
 * from the inputs of the case by half a unit. */
static void read_wide(struct trial *trial, int item)
{
	struct extra *extra = &trial->extra;
	struct arena arena = {0};

	if (item == 0) {
		read_float64(trial);
		return;
	}
	const struct tensor *found = found_output(trial, extra->lost_output, &arena);

	note_lost_digits(trial, found == NULL ? NAN
					      : unit_distance_largest(found, extra->wide,
								      trial->round[CONTENTS_FIRST].first[extra->lost_output].dtype, NULL));
	arena_free(&arena);
}

/* ---- the CPU ---- */

static int once_on_gpu(const struct trial *trial)
{
	return runs_on_cpu(trial) || described_samples(&trial->job->problem) != NULL ? 0 : 1;
}

/* Compares the outputs with those of the same reference on the CPU. If the check `numerics` found that the reference
 * loses digits, a large difference does not fail the check `devices`: devices compute sums in different orders, and
 * then different digits are lost. */
static void read_on_cpu(struct trial *trial, int item)
{
	bool unstable = trial->checks[TRIAL_CHECK_NUMERICS].result == CHECK_PROPERTY;
	int worst;
	double distance = all_distances(trial, &worst);

	(void)item;
	trial_note_check(trial, TRIAL_CHECK_DEVICES,
			 distance <= UNSTABLE_UNITS ? CHECK_HOLDS : unstable ? CHECK_PROPERTY : CHECK_FAILS,
			 arena_printf(&trial->arena, "output '%s' differs by %.3g units of %s from the output of "
						     "the same reference on the CPU",
				      output_name(trial, worst), distance,
				      dtype_name(trial->round[CONTENTS_FIRST].first[worst].dtype)));
}

static void finish_on_cpu(struct trial *trial)
{
	if (trial->checks[TRIAL_CHECK_DEVICES].name == NULL)
		trial_note_check(trial, TRIAL_CHECK_DEVICES, CHECK_NOT_RUN,
				 trial->extra.failures > 0 ? trial->extra.failure
				 : runs_on_cpu(trial)      ? "the case runs only on the CPU"
							   : "the operation draws random numbers, and devices have different random number generators");
}

/* ---- the order of the runs ---- */

/* Ends the runs of a kind whose check has a single result. If none of these runs has recorded a result, records why
 * there is no result. */
static void finish_once(struct trial *trial)
{
	struct extra *extra = &trial->extra;
	static const enum trial_check_kind check[EXTRA_KINDS] = {[EXTRA_STRIDED] = TRIAL_CHECK_STRIDED,
								 [EXTRA_FLOAT64] = TRIAL_CHECK_NUMERICS};

	if (trial->checks[check[extra->kind]].name == NULL && extra->kind == EXTRA_FLOAT64 && extra->wide != NULL)
		note_lost_digits(trial, NAN); /* the float64 run with changed inputs failed, so it is not known how far
					       * the output moves */
	else if (trial->checks[check[extra->kind]].name == NULL)
		trial_note_check(trial, check[extra->kind], CHECK_NOT_RUN,
				 extra->failures > 0 ? extra->failure : "no output has a float dtype with fewer bits than float64");
}

static void finish_strided(struct trial *trial)
{
	if (trial->job->contiguous)
		trial_note_check(trial, TRIAL_CHECK_STRIDED, CHECK_NOT_RUN, "a solution gets contiguous inputs");
	else
		finish_once(trial);
}

/* The kinds of extra runs. `mode` is the field "extra" of the message to the runner. */
static const struct {
	const char *mode, *later_mode; /* mode: the mode of the first run; later_mode: the mode of later runs, or NULL
				        * if they have the same mode */
	int (*count)(const struct trial *trial);
	bool (*prepare)(struct trial *trial, int item); /* prepares a run; returns false if this run must be skipped */
	void (*read)(struct trial *trial, int item);
	void (*finish)(struct trial *trial);
	enum judge_purpose purpose;
	/* If `--edge` adds these runs to cases with an op family: the name of the check. Otherwise NULL, because the
	 * comparison with the ground truth finds the mistakes that this check would find. */
	const char *beside;
} kinds[EXTRA_KINDS] = {
    [EXTRA_SEEDS] = {"plain", NULL, once_if_it_samples, prepare_nothing, read_seeds, finish_seeds, JUDGE_SEEDS, NULL},
    [EXTRA_GRADIENTS] = {"gradients", NULL, count_gradients, prepare_nothing, read_gradients, finish_gradients, JUDGE_GRADIENTS, NULL},
    [EXTRA_INPUTS] = {"plain", NULL, count_inputs, prepare_input, read_input, finish_inputs, JUDGE_EFFECTS, NULL},
    [EXTRA_STRIDED] = {"strided", NULL, once_unless_contiguous, prepare_nothing, read_strided, finish_strided, JUDGE_STRIDED, "strided"},
    [EXTRA_ROWS] = {"plain", NULL, extra_rows_count, extra_rows_prepare, extra_rows_read, extra_rows_finish, JUDGE_ROWS, "rows"},
    [EXTRA_FLOAT64] = {"float64", "nudged", once_and_nudged, prepare_float64, read_wide, finish_once, JUDGE_FLOAT64, "numerics"},
    [EXTRA_ON_CPU] = {"cpu", NULL, once_on_gpu, prepare_nothing, read_on_cpu, finish_on_cpu, JUDGE_ON_CPU, NULL},
};

const char *extra_run_mode(const struct trial *trial)
{
	const struct extra *extra = &trial->extra;

	if (trial->run != RUN_EXTRA)
		return NULL;
	return extra->item > 0 && kinds[extra->kind].later_mode != NULL ? kinds[extra->kind].later_mode : kinds[extra->kind].mode;
}

bool extra_runs_fit(const struct trial *trial, int64_t bytes)
{
	const struct device_calls *calls = trial->device->calls;
	int64_t limit = EXTRA_BYTES, outputs = 0;

	if (!trial_is_checked(trial) && !trial_has_checks_beside(trial))
		return false;
	for (int i = 0; i < trial->job->problem.output_count; i++)
		outputs = layout_add(outputs, job_tensor_bytes(&trial->round[CONTENTS_FIRST].first[i]));
	if (!runs_on_cpu(trial)) {
		limit = calls->memory_total(trial->device) / EXTRA_SHARE_OF_GPU;
		limit = limit < EXTRA_BYTES ? EXTRA_BYTES : limit > EXTRA_BYTES_ON_GPU ? EXTRA_BYTES_ON_GPU : limit;
	}
	return bytes <= limit && outputs <= EXTRA_BYTES;
}

int64_t extra_runs_bytes(const struct tensor *output)
{
	return dtype_is_float(output->dtype) ? layout_round(output->elements * 8) : layout_round(job_tensor_bytes(output));
}

/* Sets the state of the extra runs to the first run of the kind `kind`. */
static void begin_kind(struct trial *trial, int kind)
{
	struct extra *extra = &trial->extra;

	extra->kind = (enum extra_kind)kind;
	extra->item = extra->runs = extra->failures = 0;
	extra->failure = NULL;
	extra->without_effect = -1;
	extra->all_examined = true;
	extra->tensor_left_out = false;
	extra->wide = NULL;
}

const char *extra_runs_beside(struct arena *arena)
{
	const char *names = "";

	for (int kind = 0; kind < EXTRA_KINDS; kind++)
		if (kinds[kind].beside != NULL)
			names = arena_printf(arena, "%s%s%s", names, names[0] != '\0' ? ", " : "", kinds[kind].beside);
	return names;
}

/* Returns how many runs the current kind has. */
static int count_runs(const struct trial *trial)
{
	const bool left_out = trial->op != NULL && kinds[trial->extra.kind].beside == NULL;

	return left_out ? 0 : kinds[trial->extra.kind].count(trial);
}

/* Finishes the current kind. */
static void finish_kind(struct trial *trial)
{
	if (trial->op == NULL || kinds[trial->extra.kind].beside != NULL)
		kinds[trial->extra.kind].finish(trial);
}

/* Prepares the next run. Returns false if there is none. */
static bool prepare_next(struct trial *trial)
{
	struct extra *extra = &trial->extra;

	for (; extra->kind < EXTRA_KINDS; begin_kind(trial, (int)extra->kind + 1)) {
		for (; extra->item < count_runs(trial); extra->item++) {
			const struct round *first = &trial->round[CONTENTS_FIRST];

			if (trial_hold_inputs(trial, &trial->round[CONTENTS_FIRST]) != 0)
				return false;
			extra->round.c = first->c;
			memcpy(extra->round.scalar, first->scalar, sizeof first->scalar);
			memcpy(extra->round.in, first->in, sizeof first->in);
			memcpy(extra->round.first, first->first, sizeof first->first);
			extra->rows_axis = -1;
			if (kinds[extra->kind].prepare(trial, extra->item))
				return true;
		}
		finish_kind(trial);
		if (extra->kind + 1 == EXTRA_KINDS)
			return false;
	}
	return false;
}

bool extra_runs_next(struct trial *trial, struct buf *out)
{
	struct extra *extra = &trial->extra;
	struct err err = {""};

	if (trial->run != RUN_EXTRA)
		begin_kind(trial, 0);
	else
		extra->item++;
	trial->run = RUN_EXTRA;
	if (!prepare_next(trial))
		return false;
	judge_seconds_count_run(&trial->context->clock, kinds[extra->kind].purpose);
	if (trial_stage(trial, &extra->round, RUN_EXTRA, &err) != 0 ||
	    (extra->rows_axis >= 0 && extra_rows_stage(trial, &err) != 0)) {
		trial_decide_error(trial, &err);
		return false;
	}
	extra->runs++;
	trial_write_run(trial, &extra->round, out);
	return true;
}

/* Returns NULL if all outputs have the shapes and dtypes that are expected in this run, else a message. */
static const char *wrong_form(struct trial *trial, const cJSON *said)
{
	enum reason reason = REASON_NONE;
	const char *wrong = NULL;
	const cJSON *item;
	int output = 0;

	if (!cJSON_IsArray(said) || cJSON_GetArraySize(said) != trial->job->problem.output_count)
		return "the runner's answer is invalid";
	cJSON_ArrayForEach(item, said)
	{
		const char *text = trial_wrong_form(trial, &trial->extra.round, output++, item, &reason);

		wrong = wrong != NULL ? wrong : text;
	}
	return wrong;
}

static void run_failed(struct trial *trial, const char *message)
{
	trial->extra.failures++;
	if (trial->extra.failure == NULL)
		trial->extra.failure = arena_copy(&trial->arena, message, strcspn(message, "\n"));
}

void extra_runs_read(struct trial *trial, const cJSON *ran)
{
	const char *raised = json_text_of(ran, "raised");
	const char *wrong = raised != NULL ? raised : wrong_form(trial, json_member(ran, "ran"));

	if (wrong != NULL) {
		run_failed(trial, wrong);
	} else {
		trial->extra.answer = ran;
		kinds[trial->extra.kind].read(trial, trial->extra.item);
		trial->extra.answer = NULL;
	}
}

void extra_runs_end(struct trial *trial, const char *message)
{
	for (int kind = (int)trial->extra.kind;;) {
		run_failed(trial, message);
		finish_kind(trial);
		if (++kind == EXTRA_KINDS)
			return;
		begin_kind(trial, kind);
	}
}
