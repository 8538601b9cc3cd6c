/* checks_after_run - checks the shared arena (memory that judge and runner share) after a run. Canaries and inputs must
 * be unchanged, outputs must have the declared shapes and dtypes, and the outputs of two runs must be equal bit for
 * bit. */
#include "workers/judge/trial_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "kernels/core/described_effects.h"
#include "kernels/core/dtype_convert.h"
#include "workers/judge/message_text.h"

enum { CANARY = TRIAL_CANARY };

static const char *tensor_named(struct trial *trial, int index)
{
	const struct op_problem *problem = &trial->job->problem;

	if (index < problem->input_count)
		return arena_printf(&trial->arena, "input '%s'", problem->inputs[index].name);
	return arena_printf(&trial->arena, "output '%s'", problem->outputs[index - problem->input_count].name);
}

/* Returns a message such as "wrote outside its tensors: the first byte that it changed is 4 bytes past the end of input
 * 'x', 252 bytes before output 'y'". */
static const char *overwritten_place(struct trial *trial, const struct layout_gap *gap, int64_t at)
{
	const char *text;
	struct buf place = {0};

	if (gap->before >= 0)
		buf_printf(&place, "%" PRId64 " bytes past the end of %s", at, tensor_named(trial, gap->before));
	if (gap->after >= 0)
		buf_printf(&place, "%s%" PRId64 " bytes before %s", gap->before >= 0 ? ", " : "",
			   gap->end - gap->begin - at, tensor_named(trial, gap->after));
	text = arena_printf(&trial->arena, "wrote outside its tensors: the first byte that it changed is %s",
			    place.data);
	buf_free(&place);
	return text;
}

/* Returns a message if a canary was overwritten, or NULL if no canary has changed. On error, sets `rc` to -1 and
 * returns the message of the error. */
const char *trial_overwritten_canary(struct trial *trial, struct err *err, int *rc)
{
	struct shared_part *parts = arena_array(&trial->arena, (size_t)trial->layout.gap_count + 1, sizeof *parts);
	int equal = shared_memory_parts_equal(trial_stage_of(trial), parts, trial_canary_parts(trial, parts), err);

	*rc = equal < 0 ? -1 : 0;
	if (equal != 0)
		return equal < 0 ? err->text : NULL;
	for (int g = 0; g < trial->layout.gap_count; g++) {
		const struct layout_gap *gap = &trial->layout.gaps[g];
		int64_t at =
		    shared_memory_first_other(trial_stage_of(trial), gap->begin, CANARY, gap->end - gap->begin, err);

		if (at == -2)
			*rc = -1;
		if (at != -1)
			return at == -2 ? err->text : overwritten_place(trial, gap, at);
	}
	return "wrote outside its tensors, and restored the bytes during the check";
}

void trial_check_canaries(struct trial *trial)
{
	struct err err = {""};
	int rc;
	const char *hurt = trial->decided ? NULL : trial_overwritten_canary(trial, &err, &rc);

	if (hurt != NULL && rc < 0)
		trial_decide_error(trial, &err);
	else if (hurt != NULL)
		trial_decide(trial, STATUS_ERROR, REASON_OUT_OF_BOUNDS,
			     arena_printf(&trial->arena, "the reference %s", hurt));
}

/* Returns element `index` of a tensor. `memory` is the address of this element on the device. (A byte may have two
 * 4-bit elements; `index` then chooses one of them.) */
static double element(struct trial *trial, const unsigned char *memory, enum dtype dtype, int64_t index)
{
	unsigned char bytes[8] = {0};

	if (trial->device->calls->download(trial->device, bytes, memory, dtype_bytes(dtype, 1), NULL) != 0)
		return NAN;
	return dtype_load(bytes, dtype, dtype_bits(dtype) < 8 ? index % 2 : 0);
}

/* Returns element `index` of tensor `tensor_index` in the shared arena. */
static double element_found(struct trial *trial, int tensor_index, enum dtype dtype, int64_t index)
{
	int64_t begin = dtype_bits(dtype) * index / 8;

	if (shared_memory_get(trial_stage_of(trial), trial->spare, trial->layout.offset[tensor_index] + begin,
			      dtype_bytes(dtype, 1), NULL) != 0)
		return NAN;
	return element(trial, trial->spare, dtype, index);
}

/* The first element whose bits in the shared arena differ from those in the private copy of the tensor. */
struct first_difference {
	int64_t at;
	double then, now; /* the value of the element in the private copy, and its value in the shared arena */
};

/* Finds the first difference. Returns false if the tensors are equal. Also returns false on error, after setting the
 * status of the case. */
static bool find_difference(struct trial *trial, int tensor_index, const struct tensor *copy, struct first_difference *out)
{
	int bits = dtype_bits(copy->dtype);
	struct err err = {""};
	int64_t at = shared_memory_first_difference(trial_stage_of(trial), trial->layout.offset[tensor_index],
						    copy->data, job_tensor_bytes(copy), &err);
	const unsigned char *memory = copy->data;

	if (at == -2)
		trial_decide_error(trial, &err);
	if (at < 0)
		return false;
	memory += at * 8 / bits * bits / 8; /* the address of the element that contains byte `at` */
	out->at = at * 8 / bits;
	out->then = element(trial, memory, copy->dtype, out->at);
	out->now = element_found(trial, tensor_index, copy->dtype, out->at);
	if (bits < 8 && out->then == out->now) { /* byte `at` has two 4-bit elements; if the first one is equal, the
						  * second one differs */
		out->at++;
		out->then = element(trial, memory, copy->dtype, out->at);
		out->now = element_found(trial, tensor_index, copy->dtype, out->at);
	}
	return true;
}

/* Describes the first difference between a tensor in the shared arena and its private copy, for example as "[0, 3]:
 * 1.5, then 2". Returns NULL if the tensor and its copy are equal. Also returns NULL on error, after setting the status
 * of the case. */
static const char *difference(struct trial *trial, int tensor_index, const struct tensor *copy)
{
	struct arena *arena = &trial->arena;
	struct first_difference found;

	if (!find_difference(trial, tensor_index, copy, &found))
		return NULL;
	return arena_printf(arena, "%s: %s, then %s", format_index(arena, found.at, copy->rank, copy->shape),
			    format_value(arena, found.then, copy->dtype), format_value(arena, found.now, copy->dtype));
}

/* Returns a pair: the part of the shared arena that contains the tensor, and the private copy of the tensor. */
static struct shared_part part_of(const struct trial *trial, int tensor_index, const struct tensor *copy)
{
	return (struct shared_part){.offset = trial->layout.offset[tensor_index],
				    .memory = copy->data,
				    .length = job_tensor_bytes(copy)};
}

enum trial_difference trial_first_difference(struct trial *trial, int tensor_index, const struct tensor *copy)
{
	struct first_difference found;

	if (!find_difference(trial, tensor_index, copy, &found))
		return trial->decided ? DIFFERS_UNKNOWN : DIFFERS_NOT;
	if (isnan(found.then) || isnan(found.now) || found.then == found.now)
		return DIFFERS_UNKNOWN;
	return DIFFERS_IN_VALUE;
}

/* Checks with a single call whether all inputs that the reference may not write to still equal their private copies.
 * Returns false if an input differs, or on error. The caller then compares each input separately, to find the one that
 * differs. */
static bool kept_inputs_equal(struct trial *trial, const struct round *round)
{
	int inputs = trial->job->problem.input_count, count = 0;
	struct shared_part *parts = arena_array(&trial->arena, (size_t)inputs + 1, sizeof *parts);

	for (int i = 0; i < inputs; i++)
		if (round->in[i].data != NULL && trial_in_place(trial, round, i).place == OP_KEPT)
			parts[count++] = part_of(trial, i, &round->in[i]);
	return shared_memory_parts_equal(trial_stage_of(trial), parts, count, NULL) == 1;
}

/* Checks that the reference changed no input. If the op family allows a reference to write to an input, this input is
 * not checked here, but compared with the ground truth later. In a case without an op family, this function does not
 * set the status, because some operations update a buffer in place. Instead, it adds a finding, and records the result
 * for the check `inputs_kept`. */
void trial_check_inputs(struct trial *trial, const struct round *round)
{
	const struct op *op = trial->op;

	if (kept_inputs_equal(trial, round))
		return;
	for (int i = 0; i < trial->job->problem.input_count && !trial->decided; i++) {
		const char *where, *sentence;

		if (round->in[i].data == NULL || trial_in_place(trial, round, i).place != OP_KEPT ||
		    (op == NULL && trial->run != RUN_FIRST))
			continue;
		where = difference(trial, i, &round->in[i]);
		if (where == NULL)
			continue;
		sentence = arena_printf(&trial->arena, "the reference changed its input '%s', first at %s",
					trial->job->problem.inputs[i].name, where);
		if (op == NULL) {
			trial_add_finding(trial, sentence);
			trial_note_written_input(trial, i, sentence);
		} else {
			trial_decide(trial, STATUS_FAILED, REASON_MUTATED_INPUT, sentence);
		}
	}
}

const char *trial_changed_by_truth(struct trial *trial, const struct round *round)
{
	for (int i = 0; i < trial->job->problem.input_count; i++) {
		const char *where = round->in[i].data == NULL || trial_in_place(trial, round, i).place != OP_KEPT
					? NULL
					: difference(trial, i, &round->in[i]);

		if (where != NULL)
			return arena_printf(&trial->arena, "it changed its input '%s', first at %s",
					    trial->job->problem.inputs[i].name, where);
	}
	return NULL;
}

/* Returns whether the reference may, but need not, overwrite this input with one of its outputs. */
static bool may_be_replaced(const struct trial *trial, const struct round *round, int input)
{
	struct op_in_place leave = trial_in_place(trial, round, input);

	return round->in[input].data != NULL && leave.may_keep && leave.place != OP_KEPT &&
	       leave.place < trial->job->problem.output_count;
}

void trial_check_replaced(struct trial *trial, const struct round *round)
{
	const struct op_problem *problem = &trial->job->problem;
	int count = 0, kept = -1, written = -1;

	for (int i = 0; i < problem->input_count; i++)
		count += may_be_replaced(trial, round, i);
	for (int i = 0; i < problem->input_count && count > 1 && !trial->decided; i++) {
		if (!may_be_replaced(trial, round, i))
			continue;
		if (difference(trial, i, &round->in[i]) != NULL)
			written = i;
		else if (difference(trial, problem->input_count + trial_in_place(trial, round, i).place, &round->in[i]) != NULL)
			kept = i;
	}
	if (kept >= 0 && written >= 0 && !trial->decided)
		trial_decide(trial, STATUS_FAILED, REASON_MUTATED_INPUT,
			     arena_printf(&trial->arena,
					  "the reference wrote to its input '%s' but left its input '%s' unchanged; it must "
					  "write to both, or return new tensors for both",
					  problem->inputs[written].name, problem->inputs[kept].name));
}

static bool is_listed(const cJSON *names, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, names)
		if (cJSON_IsString(item) && strcmp(item->valuestring, name) == 0)
			return true;
	return false;
}

/* Adds findings about outputs that are correct but may surprise a caller. */
static void add_findings(struct trial *trial, const struct round *round, const cJSON *ran)
{
	const struct op_problem *problem = &trial->job->problem;
	const cJSON *item;
	int output = 0;

	if (cJSON_IsTrue(json_member(ran, "list")))
		trial_add_finding(trial, "the reference returns its outputs in a list; the schema requires a tuple");
	cJSON_ArrayForEach(item, json_member(ran, "ran"))
	{
		if (cJSON_IsTrue(json_member(item, "grad")))
			trial_add_finding(trial, arena_printf(&trial->arena,
							      "output '%s' requires a gradient, so callers keep its graph in "
							      "memory; compute it under torch.no_grad() or detach it",
							      problem->outputs[output].name));
		output++;
	}
	for (int i = 0; i < problem->input_count; i++)
		if (is_listed(json_member(ran, "touched"), problem->inputs[i].name) && round->in[i].data != NULL &&
		    trial_in_place(trial, round, i).place == OP_KEPT && difference(trial, i, &round->in[i]) == NULL)
			trial_add_finding(trial, arena_printf(&trial->arena,
							      "the reference writes to its input '%s' and restores it "
							      "afterwards: another thread or stream may read the "
							      "changed input in between",
							      problem->inputs[i].name));
}

void trial_check_forms(struct trial *trial, struct round *round, const cJSON *ran)
{
	const cJSON *said = json_member(ran, "ran"), *item;
	int output = 0;

	if (!cJSON_IsArray(said) || cJSON_GetArraySize(said) != trial->job->problem.output_count) {
		trial_decide(trial, STATUS_ERROR, REASON_CRASHED, "the runner's answer is invalid");
		return;
	}
	cJSON_ArrayForEach(item, said)
	{
		round->ungiven[output] = trial->job->asks == JOB_GRADIENTS && cJSON_IsTrue(json_member(item, "none"));
		trial_check_shape(trial, round, output++, item);
	}
	if (!trial->decided && trial->run == RUN_FIRST && trial->job->asks == JOB_OUTPUTS)
		add_findings(trial, round, ran);
}

/* Returns the private copy of a tensor, which was made after the first run. Returns NULL for an input that the
 * reference may not write to, because such inputs are not copied. */
static const struct tensor *copy_of(const struct trial *trial, const struct round *round, int tensor)
{
	int inputs = trial->job->problem.input_count;
	const struct tensor *copy = tensor < inputs ? &round->left[tensor] : &round->first[tensor - inputs];

	return copy->data != NULL ? copy : NULL;
}

/* Returns the parts of the shared arena that have private copies (copy_of). The returned list is allocated in the
 * trial's arena, and `count` is set to its length. */
static struct shared_part *parts_with_copies(struct trial *trial, const struct round *round, int *count)
{
	int tensors = trial_tensor_count(trial);
	struct shared_part *parts = arena_array(&trial->arena, (size_t)tensors + 1, sizeof *parts);

	*count = 0;
	for (int i = 0; i < tensors; i++) {
		const struct tensor *copy = copy_of(trial, round, i);

		if (copy != NULL)
			parts[(*count)++] = part_of(trial, i, copy);
	}
	return parts;
}

bool trial_changes_seed(const struct trial *trial)
{
	return trial_is_checked(trial) && trial->seed_matters == NULL && described_samples(&trial->job->problem) == NULL;
}

/* Returns the first tensor whose values differ between this run and the first run, or -1 if there is none. Outputs are
 * compared before inputs. */
static int first_differing(struct trial *trial, const struct round *round, const char **where)
{
	int count = trial_tensor_count(trial), inputs = trial->job->problem.input_count, copies;
	struct shared_part *parts = parts_with_copies(trial, round, &copies);

	if (shared_memory_parts_equal(trial_stage_of(trial), parts, copies, NULL) == 1)
		return -1;
	for (int k = 0; k < count && !trial->decided; k++) {
		int i = (k + inputs) % count;
		const struct tensor *copy = copy_of(trial, round, i);

		*where = copy != NULL ? difference(trial, i, copy) : NULL;
		if (*where != NULL)
			return i;
	}
	return -1;
}

bool trial_needs_first_seed(struct trial *trial, const struct round *round)
{
	const char *where;
	int differs;

	if (trial->decided || !trial_changes_seed(trial))
		return false;
	trial->seed_changed = true;
	differs = first_differing(trial, round, &where);
	if (differs >= 0)
		trial->seed_matters = tensor_named(trial, differs);
	return differs >= 0;
}

void trial_check_deterministic(struct trial *trial, const struct round *round)
{
	const char *where;
	int differs = first_differing(trial, round, &where);

	if (differs >= 0)
		trial_decide(trial, STATUS_FAILED, REASON_NONDETERMINISTIC,
			     arena_printf(&trial->arena, "%s differs between two runs on the same inputs, first at %s",
					  tensor_named(trial, differs), where));
}

/* Copies the outputs of the first run, and the inputs that the reference may write to, from the shared arena to
 * private memory. */
int trial_copy_what_was_written(struct trial *trial, const struct round *round, struct err *err)
{
	int count;
	struct shared_part *parts = parts_with_copies(trial, round, &count);

	return shared_memory_read_parts(&trial->context->shared, parts, count, err);
}

/* For a ground truth that is Python source: copies the values that the ground truth wrote to its inputs. Skips an input
 * that the ground truth did not change. Also skips an input whose new values are the values of an output, because all
 * outputs are copied anyway. */
static int copy_written_inputs(struct trial *trial, const struct round *round, struct tensor *to, struct err *err)
{
	const struct op_problem *problem = &trial->job->problem;

	for (int i = 0; i < problem->input_count; i++) {
		struct tensor *left = &to[op_own_place(problem, i)];

		if (left->data == NULL)
			continue;
		if (difference(trial, i, &round->in[i]) == NULL)
			left->data = NULL;
		else if (shared_memory_get(trial_stage_of(trial), left->data, trial->layout.offset[i], job_tensor_bytes(left), err) != 0)
			return -1;
	}
	return 0;
}

int trial_copy_provided(struct trial *trial, const struct round *round, struct tensor *to, struct err *err)
{
	const struct op_problem *problem = &trial->job->problem;
	struct shared_part *parts = arena_array(&trial->arena, (size_t)problem->output_count + 1, sizeof *parts);

	for (int i = 0; i < problem->output_count; i++)
		parts[i] = part_of(trial, problem->input_count + i, &to[i]);
	if (shared_memory_read_parts(trial_stage_of(trial), parts, problem->output_count, err) != 0)
		return -1;
	return copy_written_inputs(trial, round, to, err);
}
