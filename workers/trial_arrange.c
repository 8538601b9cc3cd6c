/* The tensors of a case: shapes, memory, and what the inputs hold. */
#include "workers/trial_parts.h"

#include <string.h>

#include "workers/given.h"
#include "workers/layout.h"
#include "workers/say.h"

int trial_tensor_count(const struct trial *trial)
{
	return trial->job->problem.input_count + trial->job->problem.output_count;
}

/* What the input has to hold after the reference ran. An output that is not like it cannot stand for it. */
struct op_leaves trial_leaves(const struct trial *trial, int input)
{
	const struct op_leaves kept = {OP_KEPT, true};
	const struct op_problem *problem = &trial->job->problem;
	const struct tensor *before = &trial->in[input];
	struct op_leaves out;

	if (trial->op == NULL || trial->op->leaves == NULL || before->rank == OP_SCALAR ||
	    trial->job->inputs[input].kind == SOURCE_ABSENT)
		return kept;
	out = trial->op->leaves(&trial->c, input);
	if (out.place >= 0 && out.place < problem->output_count &&
	    (trial->first[out.place].dtype != before->dtype || trial->first[out.place].elements != before->elements))
		return kept;
	return out;
}

/* Does builtin make a truth of this input's own? No other ground truth tells what an input has to hold. */
bool trial_has_own_truth(const struct trial *trial, int input)
{
	return trial_leaves(trial, input).place >= trial->job->problem.output_count && trial_builtin_at(trial) >= 0;
}

/* Bytes of every tensor in the arena, inputs first; also shapes the private ones. */
static const int64_t *shape_tensors(struct trial *trial)
{
	const struct op_problem *problem = &trial->job->problem;
	int64_t *bytes = arena_array(&trial->arena, (size_t)trial_tensor_count(trial), sizeof *bytes);

	for (int i = 0; i < problem->input_count; i++) {
		trial->in[i] = job_tensor(&problem->inputs[i], trial->c.axis);
		if (trial->job->inputs[i].kind != SOURCE_ABSENT)
			bytes[i] = job_tensor_bytes(&trial->in[i]);
	}
	for (int i = 0; i < problem->output_count; i++) {
		trial->first[i] = job_tensor(&problem->outputs[i], trial->c.axis);
		if (trial->first[i].rank ==
		    OP_SCALAR) /* a number that run() returns lies in the arena as a 0-D tensor */
			trial->first[i].rank = 0;
		for (int slot = 0; slot < trial->truths.count; slot++)
			trial->truth[slot][i] = trial->first[i];
		bytes[problem->input_count + i] = job_tensor_bytes(&trial->first[i]);
	}
	for (int i = 0; i < problem->input_count; i++) {
		trial->left[i] = trial->in[i];
		if (trial_builtin_at(trial) >= 0)
			trial->truth[trial_builtin_at(trial)][op_own_place(problem, i)] = trial->in[i];
	}
	return bytes;
}

/* Private copies of a tensor of the arena, inputs as they were made aside: of an output what was found and what each
 * witness makes it, of an input what was found if it may be written to, and what builtin then makes it if that is no
 * output. */
static int private_copies(const struct trial *trial, int tensor)
{
	if (tensor >= trial->job->problem.input_count)
		return 1 + trial->truths.count;
	return (trial_leaves(trial, tensor).place != OP_KEPT) + trial_has_own_truth(trial, tensor);
}

/* Private memory: the copies of each tensor, and the spare octets. */
static int64_t private_bytes(const struct trial *trial, const int64_t *bytes)
{
	int64_t total = LAYOUT_ALIGN;

	for (int i = 0; i < trial_tensor_count(trial); i++)
		for (int copies = private_copies(trial, i); copies > 0; copies--)
			total = layout_add(total, layout_round(bytes[i]));
	return total;
}

/* The inputs as they were made. */
static int64_t input_bytes(const struct trial *trial, const int64_t *bytes)
{
	int64_t total = 0;

	for (int i = 0; i < trial->job->problem.input_count; i++)
		total = layout_add(total, layout_round(bytes[i]));
	return total;
}

static int64_t arena_bytes(struct trial *trial, const int64_t *bytes)
{
	int64_t most = 0;

	for (int run = 0; run < TRIAL_RUNS; run++) {
		int64_t total = layout_make(bytes, trial_tensor_count(trial), run, &trial->arena).total;

		most = total > most ? total : most;
	}
	return most;
}

/* Enough memory for this case, or the verdict that there is none. */
static int reserve(struct trial *trial, const int64_t *bytes)
{
	struct device *device = trial->device;
	struct arena *arena = &trial->arena;
	struct court_need need = {
	    arena_bytes(trial, bytes), private_bytes(trial, bytes), input_bytes(trial, bytes), 0, 0, 0};
	struct err err = {""};
	enum court_answer answer;

	if (trial->op != NULL)
		need.scratch = device->calls->truth_scratch(device, trial->op, &trial->c);
	answer = court_reserve(trial->court, &need, &err);
	if (answer == COURT_ERROR)
		trial_decide_error(trial, &err);
	else if (answer == COURT_NO_MEMORY)
		trial_decide(trial, STATUS_SKIPPED, REASON_MEMORY,
			     arena_printf(arena, "the case needs %s on %s, %s are free", say_bytes(arena, need.need),
					  trial->court->device_name, say_bytes(arena, need.available)));
	return answer == COURT_OK ? 0 : -1;
}

static unsigned char *take_private(unsigned char **at, int64_t bytes)
{
	unsigned char *memory = *at;

	*at += layout_round(bytes);
	return memory;
}

static void place_tensors(struct trial *trial, const int64_t *bytes)
{
	const struct op_problem *problem = &trial->job->problem;
	unsigned char *at = trial->court->private;

	trial->spare = take_private(&at, LAYOUT_ALIGN);
	for (int i = 0; i < problem->output_count; i++) {
		trial->first[i].data = take_private(&at, bytes[problem->input_count + i]);
		for (int slot = 0; slot < trial->truths.count; slot++)
			trial->truth[slot][i].data = take_private(&at, bytes[problem->input_count + i]);
	}
	for (int i = 0; i < problem->input_count; i++) {
		if (trial_leaves(trial, i).place != OP_KEPT)
			trial->left[i].data = take_private(&at, bytes[i]);
		if (trial_has_own_truth(trial, i))
			trial->truth[trial_builtin_at(trial)][op_own_place(problem, i)].data =
			    take_private(&at, bytes[i]);
	}
}

/* Memory for the inputs, and what they hold: the same whenever it is asked. -1: decided. */
int trial_make_inputs(struct trial *trial)
{
	const struct op_problem *problem = &trial->job->problem;
	struct ruling ruling = {STATUS_SKIPPED, REASON_MEMORY, {""}}; /* unless given_fill says otherwise */
	int64_t *bytes = arena_array(&trial->arena, (size_t)problem->input_count, sizeof *bytes);
	unsigned char *at;

	for (int i = 0; i < problem->input_count; i++)
		if (trial->job->inputs[i].kind != SOURCE_ABSENT)
			bytes[i] = job_tensor_bytes(&trial->in[i]);
	at = court_take_inputs(trial->court, input_bytes(trial, bytes), &ruling.why);
	for (int i = 0; at != NULL && i < problem->input_count; i++)
		if (trial->in[i].rank != OP_SCALAR && trial->job->inputs[i].kind != SOURCE_ABSENT)
			trial->in[i].data = take_private(&at, bytes[i]);
	trial->released = false;
	if (at != NULL && given_fill(trial->device, trial->job, trial->op, &trial->c, trial->in, &ruling) == 0)
		return 0;
	trial_decide(trial, ruling.status, ruling.reason, arena_string(&trial->arena, ruling.why.text));
	return -1;
}

/* The case at these axis values: 0 when its inputs lie ready in private memory, -1 when it is decided. */
int trial_arrange(struct trial *trial, const int64_t *axis, int probe)
{
	const struct job *job = trial->job;
	struct ruling ruling = {.why = {""}};
	const int64_t *bytes;
	bool valid_inputs = trial->op != NULL && !probe;

	trial->c.problem = &job->problem;
	trial->c.axis = axis;
	trial->c.seed = job->seed;
	trial->c.probe = probe;
	trial->c.edge = probe ? 0 : job->edge;
	trial->c.given = probe ? 0 : given_inputs(job);
	trial->c.constant_count = job->constant_count;
	memcpy(trial->c.constants, trial->constants, sizeof trial->c.constants);
	for (int i = 0; i < job->problem.input_count; i++)
		if (job->problem.inputs[i].rank == OP_SCALAR) {
			trial->scalar[i] = given_scalar(job, trial->op, &trial->c, i);
			trial->c.scalar[i] = trial->scalar[i].number;
		}
	bytes = shape_tensors(trial);
	if (reserve(trial, bytes) != 0)
		return -1;
	place_tensors(trial, bytes);
	if (trial_make_inputs(trial) != 0)
		return -1;
	if (!valid_inputs ||
	    given_check(trial->device, job, trial->op, &trial->c, trial->in, &trial->arena, &ruling) == 0)
		return 0;
	trial_decide(trial, ruling.status, ruling.reason, arena_string(&trial->arena, ruling.why.text));
	return -1;
}
