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

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dataset/verdict.h"
#include "kernels/number.h"
#include "workers/given.h"
#include "workers/job.h"
#include "workers/layout.h"
#include "workers/say.h"

enum { CANARY = 0xA5, RUNS = 2, SHAPE_SHOWN = RANK_MAX };
static const unsigned char poison[RUNS] = {0xFF, 0xFE};

struct trial {
	struct court *court;
	struct device *device; /* the court's */
	struct arena arena;
	const struct job *job; /* NULL: it could not be read */
	const struct op_entry *entry; /* NULL: no family */
	const struct op *op;
	struct op_constant constants[OP_CONSTANTS];
	struct op_case c;             /* the case whose tensors are arranged: the probing one, then the real one */
	struct input_source scalar[OP_ARGS];
	struct tensor in[OP_ARGS];    /* private; data NULL: absent, or a Python scalar */
	struct tensor first[OP_ARGS]; /* private copies of the outputs after the first run */
	struct tensor left[OP_ARGS];	/* and of the inputs that may be written to; data NULL: of the others */
	struct tensor truth[OP_PLACES]; /* of outputs; from op_own_place on, of inputs that have one of their own */
	bool released;                /* the memory of `in` is given back; `data` tells only whether there is any */
	bool compared_all;            /* the ground truth is made and compared */
	unsigned char *spare;         /* LAYOUT_ALIGN bytes of private memory, to look at single elements */
	struct layout layout;         /* of the run under way: inputs, then outputs */
	int run;                      /* 0 or 1 */
	bool decided;                 /* `verdict` has status and reason already */
	struct verdict verdict;
	enum reason missed;           /* why the outputs fail against the ground truth; REASON_NONE: they do not */
	const char *missed_message;
	struct output_verdict outputs[OP_PLACES]; /* and of the inputs that were written to */
	int compared;				  /* how many of `outputs` there are */
};

/* Decides, unless it is decided already. */
static void decide(struct trial *trial, enum status status, enum reason reason, const char *message)
{
	if (trial->decided)
		return;
	trial->decided = true;
	trial->verdict.status = status;
	trial->verdict.reason = reason;
	trial->verdict.message = message;
}

static void decide_error(struct trial *trial, const struct err *err)
{
	decide(trial, STATUS_ERROR, REASON_GROUND_TRUTH, arena_string(&trial->arena, err->text));
}

static void add_finding(struct trial *trial, const char *sentence)
{
	struct verdict *verdict = &trial->verdict;
	const char **findings = arena_array(&trial->arena, (size_t)verdict->finding_count + 1, sizeof *findings);

	for (int i = 0; i < verdict->finding_count; i++)
		findings[i] = verdict->findings[i];
	findings[verdict->finding_count++] = sentence;
	verdict->findings = findings;
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
		decide_error(trial, &why);
		return -1;
	}
	trial->op = trial->entry->op;
	trial->c.variant = trial->op->match(&job->problem, &why);
	if (trial->c.variant < 0)
		decide_error(trial, &why);
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

/* ---- tensors and memory ---- */

static int tensor_count(const struct trial *trial)
{
	return trial->job->problem.input_count + trial->job->problem.output_count;
}

/* What the input has to hold after the reference ran. An output that is not like it cannot stand for it. */
static struct op_leaves leaves(const struct trial *trial, int input)
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

static bool has_own_truth(const struct trial *trial, int input)
{
	return leaves(trial, input).place >= trial->job->problem.output_count;
}

/* Bytes of every tensor in the arena, inputs first; also shapes the private ones. */
static const int64_t *shape_tensors(struct trial *trial)
{
	const struct op_problem *problem = &trial->job->problem;
	int64_t *bytes = arena_array(&trial->arena, (size_t)tensor_count(trial), sizeof *bytes);

	for (int i = 0; i < problem->input_count; i++) {
		trial->in[i] = job_tensor(&problem->inputs[i], trial->c.axis);
		if (trial->job->inputs[i].kind != SOURCE_ABSENT)
			bytes[i] = job_tensor_bytes(&trial->in[i]);
	}
	for (int i = 0; i < problem->output_count; i++) {
		trial->first[i] = trial->truth[i] = job_tensor(&problem->outputs[i], trial->c.axis);
		if (trial->first[i].rank ==
		    OP_SCALAR) /* a number that run() returns lies in the arena as a 0-D tensor */
			trial->first[i].rank = trial->truth[i].rank = 0;
		bytes[problem->input_count + i] = job_tensor_bytes(&trial->first[i]);
	}
	for (int i = 0; i < problem->input_count; i++) {
		trial->left[i] = trial->in[i];
		trial->truth[op_own_place(problem, i)] = trial->in[i];
	}
	return bytes;
}

/* Private copies of a tensor of the arena, inputs as they were made aside: of an output what was found and what it should
 * be, of an input what was found if it may be written to, and what it should then be if that is no output. */
static int private_copies(const struct trial *trial, int tensor)
{
	if (tensor >= trial->job->problem.input_count)
		return 2;
	return (leaves(trial, tensor).place != OP_KEPT) + has_own_truth(trial, tensor);
}

/* Private memory: the copies of each tensor, and the spare octets. */
static int64_t private_bytes(const struct trial *trial, const int64_t *bytes)
{
	int64_t total = LAYOUT_ALIGN;

	for (int i = 0; i < tensor_count(trial); i++)
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

	for (int run = 0; run < RUNS; run++) {
		int64_t total = layout_make(bytes, tensor_count(trial), run, &trial->arena).total;

		most = total > most ? total : most;
	}
	return most;
}

/* Enough memory for this case, or the verdict that there is none. */
static int reserve(struct trial *trial, const int64_t *bytes)
{
	struct device *device = trial->device;
	struct arena *arena = &trial->arena;
	struct court_need need = {arena_bytes(trial, bytes), private_bytes(trial, bytes), input_bytes(trial, bytes), 0, 0, 0};
	struct err err = {""};
	enum court_answer answer;

	if (trial->op != NULL)
		need.scratch = device->calls->truth_scratch(device, trial->op, &trial->c);
	answer = court_reserve(trial->court, &need, &err);
	if (answer == COURT_ERROR)
		decide_error(trial, &err);
	else if (answer == COURT_NO_MEMORY)
		decide(trial, STATUS_SKIPPED, REASON_MEMORY,
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
		trial->truth[i].data = take_private(&at, bytes[problem->input_count + i]);
	}
	for (int i = 0; i < problem->input_count; i++) {
		if (leaves(trial, i).place != OP_KEPT)
			trial->left[i].data = take_private(&at, bytes[i]);
		if (has_own_truth(trial, i))
			trial->truth[op_own_place(problem, i)].data = take_private(&at, bytes[i]);
	}
}

/* Memory for the inputs, and what they hold: the same whenever it is asked. -1: decided. */
static int make_inputs(struct trial *trial)
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
	decide(trial, ruling.status, ruling.reason, arena_string(&trial->arena, ruling.why.text));
	return -1;
}

/* The case at these axis values: 0 when its inputs lie ready in private memory, -1 when it is decided. */
static int arrange(struct trial *trial, const int64_t *axis, int probe)
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
	if (make_inputs(trial) != 0)
		return -1;
	if (!valid_inputs ||
	    given_check(trial->device, job, trial->op, &trial->c, trial->in, &trial->arena, &ruling) == 0)
		return 0;
	decide(trial, ruling.status, ruling.reason, arena_string(&trial->arena, ruling.why.text));
	return -1;
}

/* ---- a run ---- */

static void write_shape(struct buf *out, const struct tensor *tensor)
{
	buf_text(out, "\"shape\":[");
	for (int d = 0; d < tensor->rank; d++)
		buf_printf(out, "%s%" PRId64, d > 0 ? "," : "", tensor->shape[d]);
	buf_text(out, "]");
}

static void write_value(struct buf *out, const struct input_source *scalar)
{
	if (scalar->kind == SOURCE_ABSENT)
		buf_text(out, "null");
	else if (scalar->scalar_kind == SCALAR_FLOAT)
		buf_json_number(out, scalar->number);
	else if (scalar->scalar_kind == SCALAR_BOOL)
		buf_text(out, scalar->integer != 0 ? "true" : "false");
	else
		buf_printf(out, "%" PRId64, scalar->integer);
}

static void write_place(const struct trial *trial, struct buf *out, int index, const char *name,
                        const struct tensor *tensor)
{
	buf_printf(out, "%s{\"name\":", out->data[out->length - 1] == '[' ? "" : ",");
	buf_json_string(out, name);
	buf_printf(out, ",\"dtype\":\"%s\",", dtype_name(tensor->dtype));
	write_shape(out, tensor);
	buf_printf(out, ",\"offset\":%" PRId64, trial->layout.offset[index]);
}

/* {"run": {"seed", "arena", "inputs": [{"name", "dtype", "shape", "offset"} | {"name", "value"}],
 *          "outputs": [{"name", "dtype", "shape", "offset", "scalar"}]}} */
static void write_run(const struct trial *trial, struct buf *out)
{
	const struct op_problem *problem = &trial->job->problem;

	buf_printf(out, "{\"run\":{\"seed\":%" PRIu64 ",\"arena\":", trial->job->seed);
	shared_describe(&trial->court->shared, out);
	buf_text(out, ",\"inputs\":[");
	for (int i = 0; i < problem->input_count; i++) {
		if (trial->in[i].data != NULL) {
			write_place(trial, out, i, problem->inputs[i].name, &trial->in[i]);
		} else {
			const struct input_source absent = {.kind = SOURCE_ABSENT};

			buf_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
			buf_json_string(out, problem->inputs[i].name);
			buf_text(out, ",\"value\":");
			write_value(out, problem->inputs[i].rank == OP_SCALAR ? &trial->scalar[i] : &absent);
		}
		buf_text(out, "}");
	}
	buf_text(out, "],\"outputs\":[");
	for (int i = 0; i < problem->output_count; i++) {
		write_place(trial, out, problem->input_count + i, problem->outputs[i].name, &trial->first[i]);
		buf_text(out, problem->outputs[i].rank == OP_SCALAR ? ",\"scalar\":true}" : ",\"scalar\":false}");
	}
	buf_text(out, "]}}");
}

/* Canaries, inputs and poison into the arena, in the layout of run `run`. */
static int stage(struct trial *trial, int run)
{
	const struct op_problem *problem = &trial->job->problem;
	struct shared *shared = &trial->court->shared;
	int64_t *bytes = arena_array(&trial->arena, (size_t)tensor_count(trial), sizeof *bytes);
	struct err err = {""};
	int rc = 0;

	for (int i = 0; i < problem->input_count; i++)
		bytes[i] = trial->in[i].data == NULL ? 0 : job_tensor_bytes(&trial->in[i]);
	for (int i = 0; i < problem->output_count; i++)
		bytes[problem->input_count + i] = job_tensor_bytes(&trial->first[i]);
	trial->run = run;
	trial->layout = layout_make(bytes, tensor_count(trial), run, &trial->arena);
	for (int g = 0; rc == 0 && g < trial->layout.gap_count; g++) {
		const struct layout_gap *gap = &trial->layout.gaps[g];

		rc = shared_set(shared, gap->begin, CANARY, gap->end - gap->begin, &err);
	}
	for (int i = 0; rc == 0 && i < problem->input_count; i++)
		rc = shared_put(shared, trial->layout.offset[i], trial->in[i].data, bytes[i], &err);
	for (int i = problem->input_count; rc == 0 && i < tensor_count(trial); i++)
		rc = shared_set(shared, trial->layout.offset[i], poison[run], bytes[i], &err);
	if (rc != 0)
		decide_error(trial, &err);
	return rc;
}

/* ---- after a run ---- */

static const char *tensor_named(struct trial *trial, int index)
{
	const struct op_problem *problem = &trial->job->problem;

	if (index < problem->input_count)
		return arena_printf(&trial->arena, "input '%s'", problem->inputs[index].name);
	return arena_printf(&trial->arena, "output '%s'", problem->outputs[index - problem->input_count].name);
}

/* "the first of them 4 bytes past the end of input 'x', 252 before output 'y'" */
static void decide_out_of_bounds(struct trial *trial, const struct layout_gap *gap, int64_t at)
{
	struct buf place = {0};

	if (gap->before >= 0)
		buf_printf(&place, "%" PRId64 " bytes past the end of %s", at, tensor_named(trial, gap->before));
	if (gap->after >= 0)
		buf_printf(&place, "%s%" PRId64 " bytes before %s", gap->before >= 0 ? ", " : "",
			   gap->end - gap->begin - at, tensor_named(trial, gap->after));
	decide(trial, STATUS_ERROR, REASON_OUT_OF_BOUNDS,
	       arena_printf(&trial->arena, "the reference wrote outside its tensors: the first such byte lies %s",
	                    place.data));
	buf_free(&place);
}

static void check_canaries(struct trial *trial)
{
	for (int g = 0; g < trial->layout.gap_count && !trial->decided; g++) {
		const struct layout_gap *gap = &trial->layout.gaps[g];
		struct err err = {""};
		int64_t at = shared_first_other(&trial->court->shared, gap->begin, CANARY, gap->end - gap->begin, &err);

		if (at == -2)
			decide_error(trial, &err);
		else if (at >= 0)
			decide_out_of_bounds(trial, gap, at);
	}
}

/* Element `index` of a tensor, once its octets lie at `memory` on the device. */
static double element(struct trial *trial, const unsigned char *memory, enum dtype dtype, int64_t index)
{
	unsigned char bytes[8] = {0};

	if (trial->device->calls->download(trial->device, bytes, memory, dtype_bytes(dtype, 1), NULL) != 0)
		return NAN;
	return number_get(bytes, dtype, dtype_bits(dtype) < 8 ? index % 2 : 0);
}

/* Element `index` of tensor `tensor_index` as it stands in the arena. */
static double element_found(struct trial *trial, int tensor_index, enum dtype dtype, int64_t index)
{
	int64_t begin = dtype_bits(dtype) * index / 8;

	if (shared_get(&trial->court->shared, trial->spare, trial->layout.offset[tensor_index] + begin,
	               dtype_bytes(dtype, 1), NULL) != 0)
		return NAN;
	return element(trial, trial->spare, dtype, index);
}

/* Where the arena differs from a private copy: "[0, 3]: 1.5, then 2". NULL: nowhere, or decided by an error. */
static const char *difference(struct trial *trial, int tensor_index, const struct tensor *copy)
{
	struct arena *arena = &trial->arena;
	int bits = dtype_bits(copy->dtype);
	struct err err = {""};
	int64_t at = shared_first_difference(&trial->court->shared, trial->layout.offset[tensor_index], copy->data,
	                                     job_tensor_bytes(copy), &err);
	const unsigned char *octets = copy->data;
	double then, now;

	if (at == -2)
		decide_error(trial, &err);
	if (at < 0)
		return NULL;
	octets += at * 8 / bits * bits / 8; /* of the element, not of the first byte in it that differs */
	at = at * 8 / bits;
	then = element(trial, octets, copy->dtype, at);
	now = element_found(trial, tensor_index, copy->dtype, at);
	if (bits < 8 && then == now) { /* it is the other one of the two in this octet */
		at++;
		then = element(trial, octets, copy->dtype, at);
		now = element_found(trial, tensor_index, copy->dtype, at);
	}
	return arena_printf(arena, "%s: %s, then %s", say_index(arena, at, copy->rank, copy->shape),
	                    say_value(arena, then, copy->dtype), say_value(arena, now, copy->dtype));
}

/* A family says which inputs a reference may write to: what it left there is compared later. Where there is none, a
 * change is a finding: some operations do update a buffer in place. */
static void check_inputs(struct trial *trial)
{
	const struct op *op = trial->op;

	for (int i = 0; i < trial->job->problem.input_count && !trial->decided; i++) {
		const char *where, *sentence;

		if (trial->in[i].data == NULL || leaves(trial, i).place != OP_KEPT || (op == NULL && trial->run == 1))
			continue;
		where = difference(trial, i, &trial->in[i]);
		if (where == NULL)
			continue;
		sentence = arena_printf(&trial->arena, "the reference changed its input '%s', first at %s",
		                        trial->job->problem.inputs[i].name, where);
		if (op == NULL)
			add_finding(trial, sentence);
		else
			decide(trial, STATUS_FAILED, REASON_MUTATED_INPUT, sentence);
	}
}

/* "(8, 4096) float32" from what the runner says of an output; NULL: it says nothing that can be understood. */
static const char *said_tensor(struct trial *trial, const cJSON *said, int64_t shape[SHAPE_SHOWN], int *rank)
{
	const cJSON *dims = json_member(said, "shape"), *dim;
	const char *dtype = json_text_of(said, "dtype");

	*rank = 0;
	if (!cJSON_IsArray(dims) || dtype == NULL)
		return NULL;
	cJSON_ArrayForEach(
	    dim, dims) if (*rank == SHAPE_SHOWN ||
			   !json_integer(dim, &shape[(*rank)++])) return arena_printf(&trial->arena,
										      "a tensor of %d dimensions",
										      cJSON_GetArraySize(dims));
	return say_tensor(&trial->arena, *rank, shape, err_show(dtype).text);
}

static void check_form(struct trial *trial, int output, const cJSON *said)
{
	struct tensor *wanted = &trial->first[output];
	const char *declared = say_tensor(&trial->arena, wanted->rank, wanted->shape, dtype_name(wanted->dtype));
	int64_t shape[SHAPE_SHOWN] = {0};
	int rank;
	const char *returned = said_tensor(trial, said, shape, &rank);
	bool same_shape = returned != NULL && rank == wanted->rank;

	for (int d = 0; same_shape && d < rank; d++)
		same_shape = shape[d] == wanted->shape[d];
	if (same_shape && strcmp(returned, declared) == 0)
		return;
	decide(trial, STATUS_FAILED, same_shape ? REASON_DTYPE : REASON_SHAPE,
	       arena_printf(&trial->arena, "output '%s': returned %s, declared %s",
			    trial->job->problem.outputs[output].name,
	                    returned == NULL ? "nothing that can be understood" : returned, declared));
}

static void check_forms(struct trial *trial, const cJSON *ran)
{
	const cJSON *said = json_member(ran, "ran"), *item;
	int output = 0;

	if (!cJSON_IsArray(said) || cJSON_GetArraySize(said) != trial->job->problem.output_count) {
		decide(trial, STATUS_ERROR, REASON_CRASHED, "the runner's answer cannot be understood");
		return;
	}
	cJSON_ArrayForEach(item, said) check_form(trial, output++, item);
}

/* The copy that the first run left of a tensor of the arena; NULL: none was taken, for nothing may write to it. */
static const struct tensor *copy_of(const struct trial *trial, int tensor)
{
	int inputs = trial->job->problem.input_count;
	const struct tensor *copy = tensor < inputs ? &trial->left[tensor] : &trial->first[tensor - inputs];

	return copy->data != NULL ? copy : NULL;
}

static void check_deterministic(struct trial *trial)
{
	int count = tensor_count(trial), inputs = trial->job->problem.input_count;

	for (int k = 0; k < count && !trial->decided; k++) {
		int i = (k + inputs) % count; /* outputs first */
		const struct tensor *copy = copy_of(trial, i);
		const char *where = copy != NULL ? difference(trial, i, copy) : NULL;

		if (where != NULL)
			decide(trial, STATUS_FAILED, REASON_NONDETERMINISTIC,
			       arena_printf(&trial->arena,
					    "%s differs between two runs on the same inputs, first at %s",
					    tensor_named(trial, i), where));
	}
}

static int copy_what_was_written(struct trial *trial)
{
	struct err err = {""};

	for (int i = 0; i < tensor_count(trial); i++) {
		const struct tensor *copy = copy_of(trial, i);

		if (copy != NULL && shared_get(&trial->court->shared, copy->data, trial->layout.offset[i],
					       job_tensor_bytes(copy), &err) != 0) {
			decide_error(trial, &err);
			return -1;
		}
	}
	return 0;
}

/* ---- ground truth ---- */

/* A copy on the host, in the trial's arena. NULL: decided by an error. */
static struct tensor *on_host(struct trial *trial, const struct tensor *tensors, int count)
{
	struct tensor *out = arena_array(&trial->arena, (size_t)count, sizeof *out);
	struct err err = {""};

	for (int i = 0; i < count; i++) {
		int64_t bytes = job_tensor_bytes(&tensors[i]);

		out[i] = tensors[i];
		if (tensors[i].data == NULL)
			continue;
		out[i].data = arena_alloc(&trial->arena, (size_t)bytes);
		if (bytes > 0 &&
		    trial->device->calls->download(trial->device, out[i].data, tensors[i].data, bytes, &err) != 0) {
			decide_error(trial, &err);
			return NULL;
		}
	}
	return out;
}

/* What the family itself says of an output: 1 it judged, 0 the element rule is to decide, -1 decided by an error. */
static int judge_by_family(struct trial *trial, int output, struct metrics *metrics, struct err *why)
{
	const struct op_problem *problem = &trial->job->problem;
	struct tensor *in, *reference, *truth;
	int rc;

	if (trial->op->judge == NULL)
		return 0;
	in = on_host(trial, trial->in, problem->input_count);
	reference = on_host(trial, trial->first, problem->output_count);
	truth = on_host(trial, trial->truth, problem->output_count);
	if (in == NULL || reference == NULL || truth == NULL)
		return -1;
	rc = trial->op->judge(&trial->c, output, in, &reference[output], &truth[output], metrics, why);
	if (rc < 0)
		decide_error(trial, why);
	return rc;
}

static bool nonfinite(const struct metrics *metrics)
{
	return metrics->worst_count > 0 &&
	       (!isfinite(metrics->worst[0].reference) || !isfinite(metrics->worst[0].ground_truth));
}

/* What was found in a tensor, and what should be there. */
struct finding {
	const char *name;
	const struct tensor *found, *truth;
	struct rule rule;
	int output; /* for op.judge; -1: the element rule decides */
};

/* Adds its verdict to those of the outputs; appends a sentence to `message` when it fails. */
static int compare(struct trial *trial, const struct finding *finding, struct buf *message)
{
	struct output_verdict *out = &trial->outputs[trial->compared++];
	const struct tensor *found = finding->found;
	struct rule rule = finding->rule;
	struct err err = {""};
	int judged;

	*out = (struct output_verdict){.name = finding->name,
				       .ground_truth = "builtin",
				       .status = STATUS_PASSED,
				       .atol = rule.atol,
				       .rtol = rule.rtol,
				       .hit_ratio = rule.hit_ratio,
				       .rank = found->rank};
	memcpy(out->shape, found->shape, sizeof out->shape);
	judged = finding->output >= 0 ? judge_by_family(trial, finding->output, &out->metrics, &err) : 0;
	if (judged < 0)
		return -1;
	if (judged == 0 && trial->device->calls->compare(trial->device, found->data, finding->truth->data, found->dtype,
							 found->elements, rule, &out->metrics, &err) != 0) {
		decide_error(trial, &err);
		return -1;
	}
	trial->verdict.elements += found->elements;
	if (out->metrics.passed)
		return 0;
	out->status = STATUS_FAILED;
	out->reason = nonfinite(&out->metrics) ? REASON_NONFINITE : REASON_NUMERIC;
	buf_printf(message, "%s%s", message->length > 0 ? "\n" : "",
		   judged > 0 ? err.text : say_miss(&trial->arena, out, found->dtype));
	return 0;
}

static int compare_output(struct trial *trial, int output, struct buf *message)
{
	struct finding finding = {trial->job->problem.outputs[output].name, &trial->first[output],
				  &trial->truth[output], trial->job->rules[output], output};

	return compare(trial, &finding, message);
}

/* Does it hold what it held before? -1: decided by an error. */
static int was_kept(struct trial *trial, int input)
{
	struct err err = {""};
	int64_t at = trial->device->calls->first_difference(
	    trial->device, trial->in[input].data, trial->left[input].data, job_tensor_bytes(&trial->in[input]), &err);

	if (at == -2)
		decide_error(trial, &err);
	return at == -2 ? -1 : at == -1;
}

/* An input that the reference may write to. What it should hold is an output's truth, or its own. */
static int compare_input(struct trial *trial, int input, struct buf *message)
{
	const struct op_problem *problem = &trial->job->problem;
	struct op_leaves leave = leaves(trial, input);
	bool own = leave.place >= problem->output_count;
	struct buf miss = {0};
	struct finding finding = {problem->inputs[input].name, &trial->left[input], NULL, {0, 0, 1}, -1};
	int kept = leave.place != OP_KEPT && leave.may_keep ? was_kept(trial, input) : 0;

	if (leave.place == OP_KEPT || kept != 0)
		return kept < 0 ? -1 : 0;
	finding.truth = &trial->truth[leave.place];
	finding.rule = own ? trial->op->rule(&trial->c, leave.place) : trial->job->rules[leave.place];
	if (compare(trial, &finding, &miss) != 0)
		return -1;
	if (miss.length > 0) {
		buf_printf(message, "%sthe reference wrote to its input '%s', but not what ",
			   message->length > 0 ? "\n" : "", problem->inputs[input].name);
		if (own)
			buf_text(message, "the operation leaves there: ");
		else
			buf_printf(message, "output '%s' is: ", problem->outputs[leave.place].name);
		buf_add(message, miss.data, miss.length);
		if (!own)
			trial->outputs[trial->compared - 1].reason = REASON_MUTATED_INPUT;
	}
	buf_free(&miss);
	return 0;
}

/* A miss decides only if the second run shows nothing worse. Zeros in every output are no evidence, whatever inputs are
 * to hold. */
static void sum_up_outputs(struct trial *trial, const struct buf *message)
{
	struct verdict *verdict = &trial->verdict;
	enum reason reason = REASON_NONE;
	bool weak = true;

	verdict->outputs = trial->outputs;
	verdict->output_count = trial->compared;
	for (int i = 0; i < verdict->output_count; i++) {
		if (i < trial->job->problem.output_count)
		weak = weak && trial->outputs[i].metrics.zeros_would_pass;
		if (trial->outputs[i].status == STATUS_FAILED && reason != REASON_NONFINITE &&
		    (reason == REASON_NONE || trial->outputs[i].reason != REASON_MUTATED_INPUT))
			reason = trial->outputs[i].reason;
	}
	verdict->weak = weak;
	trial->missed = reason;
	trial->missed_message =
	    reason == REASON_NONE ? NULL : arena_copy(&trial->arena, message->data, message->length);
}

void trial_think(struct trial *trial)
{
	struct buf message = {0};
	struct err err = {""};
	int rc = 0;

	if (trial->decided || trial->op == NULL || trial->run == 0 || trial->released || trial->compared_all)
		return;
	trial->compared_all = true;
	if (trial->device->calls->truth(trial->device, trial->op, &trial->c, trial->in, trial->truth, &err) != 0) {
		decide_error(trial, &err);
		return;
	}
	for (int i = 0; rc == 0 && i < trial->job->problem.output_count; i++)
		rc = compare_output(trial, i, &message);
	for (int i = 0; rc == 0 && i < trial->job->problem.input_count; i++)
		rc = compare_input(trial, i, &message);
	if (rc == 0)
		sum_up_outputs(trial, &message);
	buf_free(&message);
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
			add_finding(trial, constant->conflict);
		if (isnan(trial->job->constants[i].value))
			add_finding(trial, arena_printf(&trial->arena,
							"%s is attested nowhere; probing the reference shows %g",
			                                constant->name, constant->value));
	}
	trial->verdict.constants = values;
}

static enum trial_answer give_verdict(struct trial *trial, struct buf *out)
{
	struct verdict *verdict = &trial->verdict;
	const struct device_calls *calls = trial->device->calls;

	if (!trial->decided && trial->op == NULL)
		decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, trial->job->no_truth);
	if (trial->missed != REASON_NONE)
		decide(trial, STATUS_FAILED, trial->missed, trial->missed_message);
	decide(trial, STATUS_PASSED, REASON_NONE, NULL);
	verdict->device = trial->court->device_name;
	verdict->device_class = calls->class_name(trial->device);
	if (trial->entry != NULL) {
		verdict->ground_truth = "builtin";
		verdict->ground_truth_version = trial->entry->truth_digest;
	}
	if (trial->job != NULL)
		list_constants(trial);
	verdict_write(verdict, out);
	return TRIAL_VERDICT;
}

/* Stages a run of the case that is arranged and writes the message. */
static enum trial_answer ask(struct trial *trial, int run, struct buf *out)
{
	if (stage(trial, run) != 0)
		return give_verdict(trial, out);
	write_run(trial, out);
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
		decide(trial, STATUS_INVALID, REASON_NONE, arena_string(&trial->arena, err.text));
	else if (find_family(trial) == 0)
		take_constants(trial);
	return trial;
}

static enum trial_answer begin_case(struct trial *trial, struct buf *out)
{
	const struct op_constant *unknown = unknown_constant(trial);

	if (unknown != NULL)
		decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
		       arena_printf(&trial->arena, "%s is attested nowhere, and probing the reference does not show it",
		                    unknown->name));
	if (trial->decided || arrange(trial, trial->job->axis, 0) != 0)
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
	if (arrange(trial, axis, 1) != 0)
		return give_verdict(trial, out);
	return ask(trial, 0, out);
}

/* What the probing case shows of the constants; then the case itself begins. */
static enum trial_answer recover(struct trial *trial, struct buf *out)
{
	struct court *court = trial->court;
	const struct op_problem *problem = &trial->job->problem;
	struct tensor *in = on_host(trial, trial->in, problem->input_count);
	struct tensor *first = on_host(trial, trial->first, problem->output_count);
	struct err err = {""};

	if (in == NULL || first == NULL)
		return give_verdict(trial, out);
	if (trial->op->probe(&trial->c, in, first, trial->constants, &err) != 0) {
		decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, arena_string(&trial->arena, err.text));
		return give_verdict(trial, out);
	}
	memcpy(court->recovered, trial->constants, sizeof court->recovered);
	court->recovered_count = trial->job->constant_count;
	return begin_case(trial, out);
}

enum trial_answer trial_ran(struct trial *trial, const cJSON *ran, struct buf *out)
{
	check_canaries(trial);
	if (trial->released && !trial->decided)
		make_inputs(trial);
	check_inputs(trial);
	check_forms(trial, ran);
	if (trial->run == 1)
		check_deterministic(trial);
	trial_think(trial); /* if it could not while the reference ran */
	if (trial->decided || trial->run == 1 || copy_what_was_written(trial) != 0)
		return give_verdict(trial, out);
	return trial->c.probe ? recover(trial, out) : ask(trial, 1, out);
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
		decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
		       arena_printf(&trial->arena, "%s\nOn generic inputs, which no rule makes valid, %s",
		                    trial->job->no_truth == NULL ? "" : trial->job->no_truth, message));
	decide(trial, STATUS_ERROR, reason, message);
	give_verdict(trial, out);
}

void trial_close(struct trial *trial)
{
	if (trial == NULL)
		return;
	arena_free(&trial->arena);
	free(trial);
}
