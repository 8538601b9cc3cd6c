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
#include "kernels/gradient.h"
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
	struct truths truths;         /* those of the job, or builtin alone */
	struct witness witness[TRUTHS_MAX];
	struct tensor left[OP_ARGS];  /* and of the inputs that may be written to; data NULL: of the others */
	struct tensor truth[TRUTHS_MAX][OP_PLACES]; /* of outputs; builtin's from op_own_place on: of inputs with one of their own */
	bool released;                /* the memory of `in` is given back; `data` tells only whether there is any */
	const struct rule *coarse[TRUTHS_MAX]; /* by output: what a witness's arithmetic is good for; NULL: for the case's rules */
	bool answered[TRUTHS_MAX];    /* this one's truth is there, and the reference has been compared with it */
	int asked;                    /* witnesses [0, asked) have been gone through; the next is being asked */
	bool at_stand;                /* what is staged lies in the court's stand, for a provider */
	unsigned char *spare;         /* LAYOUT_ALIGN bytes of private memory, to look at single elements */
	struct layout layout;         /* of the run under way: inputs, then outputs */
	int run;                      /* 0 or 1 */
	bool decided;                 /* `verdict` has status and reason already */
	struct verdict verdict;
	enum reason missed;           /* why the outputs fail against the ground truth; REASON_NONE: they do not */
	const char *missed_message;
	struct output_verdict outputs[TRUTHS_MAX * OP_PLACES]; /* and of the inputs that were written to */
	bool of_input[TRUTHS_MAX * OP_PLACES]; /* this one of `outputs` is an input's */
	bool judged[OP_ARGS];         /* what the reference left in this input, which it may write to, is known to be right or wrong */
	struct buf misses; /* sentences on outputs that are not as a ground truth has them */
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

/* ---- ground truths ---- */

static bool is_builtin(const struct truth *truth)
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
		trial->witness[i] = (struct witness){.name = trial->truths.items[i].name,
		                                     .version = trial->truths.items[i].version, .margin = NAN};
}

/* Its place among the witnesses; -1: it is not among them. */
static int builtin_at(const struct trial *trial)
{
	for (int i = 0; i < trial->truths.count; i++)
		if (is_builtin(&trial->truths.items[i]))
			return i;
	return -1;
}

/* Memory that is being shared: with the runner, or with the provider. */
static struct shared *stage_of(struct trial *trial)
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
		decide_error(trial, &why);
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

/* Does builtin make a truth of this input's own? No other ground truth tells what an input has to hold. */
static bool has_own_truth(const struct trial *trial, int input)
{
	return leaves(trial, input).place >= trial->job->problem.output_count && builtin_at(trial) >= 0;
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
		trial->first[i] = job_tensor(&problem->outputs[i], trial->c.axis);
		if (trial->first[i].rank == OP_SCALAR) /* a number that run() returns lies in the arena as a 0-D tensor */
			trial->first[i].rank = 0;
		for (int slot = 0; slot < trial->truths.count; slot++)
			trial->truth[slot][i] = trial->first[i];
		bytes[problem->input_count + i] = job_tensor_bytes(&trial->first[i]);
	}
	for (int i = 0; i < problem->input_count; i++) {
		trial->left[i] = trial->in[i];
		if (builtin_at(trial) >= 0)
			trial->truth[builtin_at(trial)][op_own_place(problem, i)] = trial->in[i];
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
		for (int slot = 0; slot < trial->truths.count; slot++)
			trial->truth[slot][i].data = take_private(&at, bytes[problem->input_count + i]);
	}
	for (int i = 0; i < problem->input_count; i++) {
		if (leaves(trial, i).place != OP_KEPT)
			trial->left[i].data = take_private(&at, bytes[i]);
		if (has_own_truth(trial, i))
			trial->truth[builtin_at(trial)][op_own_place(problem, i)].data = take_private(&at, bytes[i]);
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

static void write_tensors(struct trial *trial, struct buf *out)
{
	const struct op_problem *problem = &trial->job->problem;

	buf_printf(out, "\"gradients\":%s,\"seed\":%" PRIu64 ",\"arena\":",
	           trial->job->asks == JOB_GRADIENTS ? "true" : "false", trial->job->seed);
	shared_describe(stage_of(trial), out);
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
	buf_text(out, "]");
}

/* {"run": {"gradients", "seed", "arena", "inputs": [{"name", "dtype", "shape", "offset"} | {"name", "value"}],
 *          "outputs": [{"name", "dtype", "shape", "offset", "scalar"}]}} */
static void write_run(struct trial *trial, struct buf *out)
{
	buf_text(out, "{\"run\":{");
	write_tensors(trial, out);
	buf_text(out, "}}");
}

/* {"provide": {"provider", "family", "variant", "name", "op_type", "class", "tags": [text], "axes": {name: value},
 *              "constants": {name: value}, and what a run has}} */
static void write_provide(struct trial *trial, const char *provider, struct buf *out)
{
	const struct op_problem *problem = &trial->job->problem;
	const char *comma = "";

	buf_text(out, "{\"provide\":{\"provider\":");
	buf_json_string(out, provider);
	buf_text(out, ",\"family\":");
	buf_json_string(out, trial->entry->op->name);
	buf_printf(out, ",\"variant\":%d,\"name\":", trial->c.variant);
	buf_json_string(out, problem->name);
	buf_text(out, ",\"op_type\":");
	buf_json_string(out, problem->op_type);
	buf_text(out, ",\"class\":");
	buf_json_string(out, trial->device->calls->class_name(trial->device));
	buf_text(out, ",\"tags\":[");
	for (int i = 0; i < problem->tag_count; i++, comma = ",") {
		buf_text(out, comma);
		buf_json_string(out, problem->tags[i]);
	}
	buf_text(out, "],\"axes\":{");
	comma = "";
	for (int i = 0; i < problem->axis_count; i++, comma = ",") {
		buf_text(out, comma);
		buf_json_string(out, problem->axes[i].name);
		buf_printf(out, ":%" PRId64, trial->c.axis[i]);
	}
	buf_text(out, "},\"constants\":{");
	comma = "";
	for (int i = 0; i < trial->c.constant_count; i++, comma = ",") {
		buf_text(out, comma);
		buf_json_string(out, trial->c.constants[i].name);
		buf_text(out, ":");
		buf_json_number(out, trial->c.constants[i].value);
	}
	buf_text(out, "},");
	write_tensors(trial, out);
	buf_text(out, "}}");
}

/* Canaries, inputs and poison into the arena, in the layout of run `run`. */
static int stage(struct trial *trial, int run, struct err *err)
{
	const struct op_problem *problem = &trial->job->problem;
	struct shared *shared = stage_of(trial);
	int64_t *bytes = arena_array(&trial->arena, (size_t)tensor_count(trial), sizeof *bytes);
	int rc = 0;

	for (int i = 0; i < problem->input_count; i++)
		bytes[i] = trial->in[i].data == NULL ? 0 : job_tensor_bytes(&trial->in[i]);
	for (int i = 0; i < problem->output_count; i++)
		bytes[problem->input_count + i] = job_tensor_bytes(&trial->first[i]);
	trial->layout = layout_make(bytes, tensor_count(trial), run, &trial->arena);
	for (int g = 0; rc == 0 && g < trial->layout.gap_count; g++) {
		const struct layout_gap *gap = &trial->layout.gaps[g];

		rc = shared_set(shared, gap->begin, CANARY, gap->end - gap->begin, err);
	}
	for (int i = 0; rc == 0 && i < problem->input_count; i++)
		rc = shared_put(shared, trial->layout.offset[i], trial->in[i].data, bytes[i], err);
	for (int i = problem->input_count; rc == 0 && i < tensor_count(trial); i++)
		rc = shared_set(shared, trial->layout.offset[i], poison[run], bytes[i], err);
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
static const char *hurt_place(struct trial *trial, const struct layout_gap *gap, int64_t at)
{
	const char *text;
	struct buf place = {0};

	if (gap->before >= 0)
		buf_printf(&place, "%" PRId64 " bytes past the end of %s", at, tensor_named(trial, gap->before));
	if (gap->after >= 0)
		buf_printf(&place, "%s%" PRId64 " bytes before %s", gap->before >= 0 ? ", " : "", gap->end - gap->begin - at,
		           tensor_named(trial, gap->after));
	text = arena_printf(&trial->arena, "wrote outside its tensors: the first such byte lies %s", place.data);
	buf_free(&place);
	return text;
}

/* NULL: no canary is hurt; or what was done. -1 in `rc`: it could not be looked at. */
static const char *hurt_canary(struct trial *trial, struct err *err, int *rc)
{
	*rc = 0;
	for (int g = 0; g < trial->layout.gap_count; g++) {
		const struct layout_gap *gap = &trial->layout.gaps[g];
		int64_t at = shared_first_other(stage_of(trial), gap->begin, CANARY, gap->end - gap->begin, err);

		if (at == -2)
			*rc = -1;
		if (at != -1)
			return at == -2 ? err->text : hurt_place(trial, gap, at);
	}
	return NULL;
}

static void check_canaries(struct trial *trial)
{
	struct err err = {""};
	int rc;
	const char *hurt = trial->decided ? NULL : hurt_canary(trial, &err, &rc);

	if (hurt != NULL && rc < 0)
		decide_error(trial, &err);
	else if (hurt != NULL)
		decide(trial, STATUS_ERROR, REASON_OUT_OF_BOUNDS, arena_printf(&trial->arena, "the reference %s", hurt));
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
	cJSON_ArrayForEach (dim, dims)
		if (*rank == SHAPE_SHOWN || !json_integer(dim, &shape[(*rank)++]))
			return arena_printf(&trial->arena, "a tensor of %d dimensions", cJSON_GetArraySize(dims));
	return say_tensor(&trial->arena, *rank, shape, err_show(dtype).text);
}

/* NULL: output `output` has been returned as it is declared; else how it was, and in `reason` what is wrong. */
static const char *wrong_form(struct trial *trial, int output, const cJSON *said, enum reason *reason)
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
		return NULL;
	*reason = same_shape ? REASON_DTYPE : REASON_SHAPE;
	return arena_printf(&trial->arena, "output '%s': returned %s, declared %s",
	                    trial->job->problem.outputs[output].name,
	                    returned == NULL ? "nothing that can be understood" : returned, declared);
}

static void check_form(struct trial *trial, int output, const cJSON *said)
{
	enum reason reason = REASON_NONE;
	const char *wrong = wrong_form(trial, output, said, &reason);

	if (wrong != NULL)
		decide(trial, STATUS_FAILED, reason, wrong);
}

static void check_forms(struct trial *trial, const cJSON *ran)
{
	const cJSON *said = json_member(ran, "ran"), *item;
	int output = 0;

	if (!cJSON_IsArray(said) || cJSON_GetArraySize(said) != trial->job->problem.output_count) {
		decide(trial, STATUS_ERROR, REASON_CRASHED, "the runner's answer cannot be understood");
		return;
	}
	cJSON_ArrayForEach (item, said)
		check_form(trial, output++, item);
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
			       arena_printf(&trial->arena, "%s differs between two runs on the same inputs, first at %s",
			                    tensor_named(trial, i), where));
	}
}

/* What the first run left in the arena's outputs, and in the inputs that it may write to, into private memory. */
static int copy_what_was_written(struct trial *trial, struct err *err)
{
	for (int i = 0; i < tensor_count(trial); i++) {
		const struct tensor *copy = copy_of(trial, i);

		if (copy != NULL && shared_get(&trial->court->shared, copy->data, trial->layout.offset[i],
		                               job_tensor_bytes(copy), err) != 0)
			return -1;
	}
	return 0;
}

/* What the provider left in the stand's outputs, into private memory. */
static int copy_provided(struct trial *trial, struct tensor *to, struct err *err)
{
	const struct op_problem *problem = &trial->job->problem;

	for (int i = 0; i < problem->output_count; i++)
		if (shared_get(&trial->court->stand, to[i].data, trial->layout.offset[problem->input_count + i],
		               job_tensor_bytes(&to[i]), err) != 0)
			return -1;
	return 0;
}

/* ---- ground truth ---- */

/* A copy on the host, in the trial's arena, of these and as many more without data as an oracle looks at. NULL: an
 * error. */
static struct tensor *on_host(struct trial *trial, const struct tensor *tensors, int count, struct err *err)
{
	struct tensor *out = arena_array(&trial->arena, OP_PLACES, sizeof *out);

	for (int i = 0; i < count; i++) {
		int64_t bytes = job_tensor_bytes(&tensors[i]);

		out[i] = tensors[i];
		if (tensors[i].data == NULL)
			continue;
		out[i].data = arena_alloc(&trial->arena, (size_t)bytes);
		if (bytes > 0 && trial->device->calls->download(trial->device, out[i].data, tensors[i].data, bytes, err) != 0)
			return NULL;
	}
	return out;
}

/* What the family itself says of an output: 1 it judged, 0 the element rule is to decide, -1 an error. */
static int judge_by_family(struct trial *trial, int output, const struct tensor *found, const struct tensor *wanted,
                           struct metrics *metrics, struct err *why)
{
	const struct op_problem *problem = &trial->job->problem;
	struct tensor *in, *reference, *truth;

	if (trial->op->judge == NULL)
		return 0;
	in = on_host(trial, trial->in, problem->input_count, why);
	reference = on_host(trial, found, problem->output_count, why);
	truth = on_host(trial, wanted, problem->output_count, why);
	if (in == NULL || reference == NULL || truth == NULL)
		return -1;
	return trial->op->judge(&trial->c, output, in, &reference[output], &truth[output], metrics, why);
}

/* By a rule that is not each element's. 0, or -1 on error. */
static int weigh_by_family(struct trial *trial, int output, const struct tensor *found, const struct tensor *wanted,
                           struct rule rule, struct metrics *metrics, struct err *why)
{
	struct tensor *reference = on_host(trial, &found[output], 1, why), *truth = on_host(trial, &wanted[output], 1, why);

	if (reference == NULL || truth == NULL)
		return -1;
	trial->op->weigh(&trial->c, output, rule, reference, truth, metrics, why);
	return 0;
}

static bool nonfinite(const struct metrics *metrics)
{
	return metrics->worst_count > 0 &&
	       (!isfinite(metrics->worst[0].reference) || !isfinite(metrics->worst[0].ground_truth));
}

/* The case's rule for an output, as wide as the arithmetic of these two witnesses (-1: none) makes it. */
static struct rule rule_for(const struct trial *trial, int output, int a, int b)
{
	struct rule rule = trial->job->rules[output];
	const int witnesses[] = {a, b};

	for (int i = 0; i < 2; i++) {
		const struct rule *coarse = witnesses[i] < 0 ? NULL : trial->coarse[witnesses[i]];

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
	struct output_verdict out = {.name = name, .ground_truth = truth_name, .status = STATUS_PASSED, .atol = rule.atol,
	                             .rtol = rule.rtol, .hit_ratio = rule.hit_ratio, .rank = tensor->rank};

	memcpy(out.shape, tensor->shape, sizeof out.shape);
	return out;
}

/* From its metrics: NULL, or the sentence that says how it is missed; `words` are the family's, NULL: the rule's. */
static const char *end_verdict(struct trial *trial, struct output_verdict *out, enum dtype dtype, const char *words)
{
	if (out->metrics.passed)
		return NULL;
	out->status = STATUS_FAILED;
	out->reason = nonfinite(&out->metrics) ? REASON_NONFINITE : REASON_NUMERIC;
	return words != NULL ? arena_string(&trial->arena, words) : say_miss(&trial->arena, out, dtype);
}

static int compare_elements(struct trial *trial, const struct tensor *found, const struct tensor *wanted,
                            struct rule rule, struct metrics *metrics, struct err *err)
{
	return trial->device->calls->compare(trial->device, found->data, wanted->data, found->dtype, found->elements, rule,
	                                     metrics, err);
}

/* One output of `found` against `wanted`, by this rule, into `out`. The sentence when it is missed, in `miss`.
 * -1: an error. 1: the family judged `found` alone. */
static int compare_tensors(struct trial *trial, int output, const struct tensor *found, const struct tensor *wanted,
                           struct rule rule, const char *truth_name, struct output_verdict *out, const char **miss,
                           struct err *err)
{
	const struct tensor *tensor = &found[output];
	int judged;

	*miss = NULL;
	*out = new_verdict(trial->job->problem.outputs[output].name, truth_name, tensor, rule);
	judged = judge_by_family(trial, output, found, wanted, &out->metrics, err);
	if (judged < 0)
		return -1;
	if (judged == 0 && trial->op->weigh != NULL) {
		if (weigh_by_family(trial, output, found, wanted, rule, &out->metrics, err) != 0)
			return -1;
		*miss = end_verdict(trial, out, tensor->dtype, err->text);
		return 0;
	}
	if (judged == 0 && compare_elements(trial, tensor, &wanted[output], rule, &out->metrics, err) != 0)
		return -1;
	*miss = end_verdict(trial, out, tensor->dtype, judged > 0 ? err->text : NULL);
	return judged;
}

/* What was found first of all that is wrong with the outputs decides once the second run has shown nothing worse. Zeros
 * in every output are no evidence, whatever inputs are to hold. */
static void sum_up_outputs(struct trial *trial)
{
	struct verdict *verdict = &trial->verdict;
	enum reason reason = REASON_NONE;
	bool weak = true;

	verdict->outputs = trial->outputs;
	for (int i = 0; i < verdict->output_count; i++) {
		if (!trial->of_input[i])
			weak = weak && trial->outputs[i].metrics.zeros_would_pass;
		if (trial->outputs[i].status == STATUS_FAILED && reason != REASON_NONFINITE &&
		    (reason == REASON_NONE || trial->outputs[i].reason != REASON_MUTATED_INPUT))
			reason = trial->outputs[i].reason;
	}
	verdict->weak = weak;
	trial->missed = reason;
	trial->missed_message = reason == REASON_NONE
	                            ? NULL
	                            : arena_copy(&trial->arena, trial->misses.data, trial->misses.length);
}

/* Begins a sentence on what is not as this witness has it. */
static void begin_miss(struct trial *trial, int at)
{
	buf_text(&trial->misses, trial->misses.length > 0 ? "\n" : "");
	if (trial->truths.count > 1)
		buf_printf(&trial->misses, "against %s: ", trial->witness[at].name);
}

static int compare_output(struct trial *trial, int at, int output)
{
	struct verdict *verdict = &trial->verdict;
	struct err err = {""};
	const char *miss;

	if (compare_tensors(trial, output, trial->first, trial->truth[at], rule_for(trial, output, at, -1),
	                    trial->witness[at].name, &trial->outputs[verdict->output_count], &miss, &err) < 0) {
		decide_error(trial, &err);
		return -1;
	}
	verdict->output_count++;
	verdict->elements += trial->first[output].elements;
	if (miss != NULL) {
		begin_miss(trial, at);
		buf_text(&trial->misses, miss);
	}
	return 0;
}

/* Does it hold what it held before? -1: decided by an error. */
static int was_kept(struct trial *trial, int input)
{
	struct err err = {""};
	int64_t at = trial->device->calls->first_difference(trial->device, trial->in[input].data, trial->left[input].data,
	                                                    job_tensor_bytes(&trial->in[input]), &err);

	if (at == -2)
		decide_error(trial, &err);
	return at == -2 ? -1 : at == -1;
}

/* An input that was written to, against the witness's truth of a place. -1: decided by an error. */
static int compare_left(struct trial *trial, int at, int input, int place)
{
	const struct op_problem *problem = &trial->job->problem;
	bool own = place >= problem->output_count;
	const struct tensor *left = &trial->left[input];
	struct rule rule = own ? trial->op->rule(&trial->c, place) : rule_for(trial, place, at, -1);
	struct verdict *verdict = &trial->verdict;
	struct output_verdict *out = &trial->outputs[verdict->output_count];
	struct err err = {""};
	const char *miss;

	*out = new_verdict(problem->inputs[input].name, trial->witness[at].name, left, rule);
	if (compare_elements(trial, left, &trial->truth[at][place], rule, &out->metrics, &err) != 0) {
		decide_error(trial, &err);
		return -1;
	}
	trial->of_input[verdict->output_count++] = true;
	verdict->elements += left->elements;
	trial->judged[input] = true;
	miss = end_verdict(trial, out, left->dtype, NULL);
	if (miss == NULL)
		return 0;
	begin_miss(trial, at);
	buf_printf(&trial->misses, "the reference wrote to its input '%s', but not what ", problem->inputs[input].name);
	if (own)
		buf_text(&trial->misses, "the operation leaves there: ");
	else
		buf_printf(&trial->misses, "output '%s' is: ", problem->outputs[place].name);
	buf_text(&trial->misses, miss);
	if (!own)
		out->reason = REASON_MUTATED_INPUT;
	return 0;
}

/* An input that the reference may write to. What it should hold is an output's truth, which any witness has, or one of
 * its own, which only builtin has. -1: decided by an error. */
static int compare_input(struct trial *trial, int at, int input)
{
	struct op_leaves leave = leaves(trial, input);
	int kept = leave.place != OP_KEPT && leave.may_keep ? was_kept(trial, input) : 0;

	if (leave.place == OP_KEPT || kept < 0)
		return kept;
	if (kept > 0)
		trial->judged[input] = true;
	if (kept > 0 || trial->truth[at][leave.place].data == NULL)
		return 0;
	return compare_left(trial, at, input, leave.place);
}

/* The first input that may have been written to and that nobody has judged. -1: there is none. */
static int unjudged_input(const struct trial *trial)
{
	for (int i = 0; i < trial->job->problem.input_count; i++)
		if (!trial->judged[i] && leaves(trial, i).place != OP_KEPT)
			return i;
	return -1;
}

/* What the reference left, outputs and inputs, against one witness's outputs, which lie in its place. */
static int compare_with(struct trial *trial, int at)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < trial->job->problem.output_count; i++)
		rc = compare_output(trial, at, i);
	for (int i = 0; rc == 0 && i < trial->job->problem.input_count; i++)
		rc = compare_input(trial, at, i);
	if (rc != 0)
		return -1;
	trial->answered[at] = true;
	sum_up_outputs(trial);
	return 0;
}

static void pass_over(struct trial *trial, int at, bool accident, const char *why)
{
	trial->witness[at].passed_over = arena_string(&trial->arena, why);
	trial->witness[at].accident = accident;
}

/* By the oracle, wherever the tensors lie. */
static int truth_on_host(struct trial *trial, struct tensor *to, struct err *err)
{
	const struct op_problem *problem = &trial->job->problem;
	struct tensor *in = on_host(trial, trial->in, problem->input_count, err);
	struct tensor *truth = on_host(trial, to, problem->output_count, err);

	if (in == NULL || truth == NULL || trial->op->oracle(&trial->c, in, truth, err) != 0)
		return -1;
	for (int i = 0; i < problem->output_count; i++)
		if (trial->device->calls->upload(trial->device, to[i].data, truth[i].data, job_tensor_bytes(&to[i]), err) != 0)
			return -1;
	return 0;
}

static int make_truth(struct trial *trial, struct tensor *to, struct err *err)
{
	if (trial->op->on_host)
		return truth_on_host(trial, to, err);
	return trial->device->calls->truth(trial->device, trial->op, &trial->c, trial->in, to, err);
}

/* Alone, builtin's failure is the case's; beside others it is passed over like one of them. */
static void ask_builtin(struct trial *trial, int at)
{
	struct err err = {""};

	if (make_truth(trial, trial->truth[at], &err) == 0)
		compare_with(trial, at);
	else if (trial->truths.count == 1 || trial->device->calls->broken(trial->device))
		decide_error(trial, &err);
	else
		pass_over(trial, at, false, err.text);
}

/* While the runner works on its second run: builtin, if it is to be asked whatever the others say. */
void trial_think(struct trial *trial)
{
	if (trial->decided || trial->op == NULL || trial->run == 0 || trial->released)
		return;
	for (int i = 0; i < trial->truths.count; i++)
		if (is_builtin(&trial->truths.items[i]) && (i == 0 || trial->truths.all))
			ask_builtin(trial, i);
}

/* ---- providers ---- */

/* Enough of the stand for this case: memory that the judge shares with the provider alone. */
static int reserve_stand(struct trial *trial, struct err *err)
{
	enum { SMALL_CASE = 64 << 20 };
	struct shared *stand = &trial->court->stand;
	int64_t *bytes = arena_array(&trial->arena, (size_t)tensor_count(trial), sizeof *bytes), need, available;

	for (int i = 0; i < tensor_count(trial); i++)
		bytes[i] = i < trial->job->problem.input_count
		               ? trial->in[i].data == NULL ? 0 : job_tensor_bytes(&trial->in[i])
		               : job_tensor_bytes(&trial->first[i - trial->job->problem.input_count]);
	need = layout_make(bytes, tensor_count(trial), 0, &trial->arena).total;
	if (stand->blocks != NULL && shared_room(stand) < need)
		shared_renew(stand); /* nobody has it mapped between two requests */
	available = need > SMALL_CASE ? layout_add(trial->device->calls->memory_free(trial->device), shared_used(stand)) : need;
	if (need > available)
		return err_set(err, "a copy of the case takes %s on %s, %s are free", say_bytes(&trial->arena, need),
		               trial->court->device_name, say_bytes(&trial->arena, available));
	return shared_reserve(stand, need, 0, err) < 0 ? -1 : 0;
}

static bool ask_provider(struct trial *trial, int at, struct buf *out)
{
	struct err err = {""};
	bool ready = reserve_stand(trial, &err) == 0;

	trial->at_stand = ready;
	ready = ready && stage(trial, 0, &err) == 0;
	if (ready)
		write_provide(trial, trial->truths.items[at].name, out);
	else
		pass_over(trial, at, true, err.text);
	return ready;
}

static double amount_of(const cJSON *message, const char *key)
{
	const cJSON *value = json_member(message, key);

	return cJSON_IsNumber(value) && value->valuedouble >= 0 ? value->valuedouble : 0;
}

/* What a provider says its arithmetic is good for. NULL: for the case's rules, or nothing that can be understood. */
static const struct rule *read_coarse(struct trial *trial, const cJSON *message)
{
	const cJSON *list = json_member(message, "coarse"), *item;
	int count = trial->job->problem.output_count, output = 0;
	struct rule *rules = arena_array(&trial->arena, (size_t)count, sizeof *rules);

	if (!cJSON_IsArray(list))
		return NULL;
	cJSON_ArrayForEach (item, list)
		if (output < count)
			rules[output++] = (struct rule){.atol = amount_of(item, "atol"), .rtol = amount_of(item, "rtol")};
	return rules;
}

/* The outputs of a provider as they were found, if they are what was asked for. */
static void take_provided(struct trial *trial, int at, const cJSON *message)
{
	const cJSON *said = json_member(message, "provided"), *item;
	struct witness *witness = &trial->witness[at];
	struct err err = {""};
	enum reason reason;
	int rc, output = 0;
	const char *wrong = hurt_canary(trial, &err, &rc);

	witness->seconds = amount_of(message, "seconds");
	witness->prepared = amount_of(message, "prepared");
	trial->coarse[at] = read_coarse(trial, message);
	witness->coarse = trial->coarse[at] != NULL;
	if (wrong == NULL && cJSON_GetArraySize(said) != trial->job->problem.output_count)
		wrong = "answered with another number of outputs";
	cJSON_ArrayForEach (item, said)
		if (wrong == NULL)
			wrong = wrong_form(trial, output++, item, &reason);
	if (wrong == NULL && copy_provided(trial, trial->truth[at], &err) != 0)
		wrong = err.text;
	if (wrong != NULL)
		pass_over(trial, at, rc < 0 || err.text[0] != '\0', wrong);
	else
		compare_with(trial, at);
}

/* ---- do they agree? ---- */

/* Do the outputs of two witnesses meet the rule? What the family judges, it judges one by one. The first sentence why not
 * in `miss`. -1: an error. */
static int pair_agrees(struct trial *trial, int a, int b, const char **miss, struct err *err)
{
	const struct tensor *found = trial->truth[a], *wanted = trial->truth[b];
	double margin = 0;
	int agrees = 1;

	*miss = NULL;
	for (int i = 0; i < trial->job->problem.output_count; i++) {
		struct rule rule = rule_for(trial, i, a, b);
		struct output_verdict out;
		const char *why = NULL;
		int judged = compare_tensors(trial, i, found, wanted, rule, trial->witness[b].name, &out, &why, err);

		if (judged == 1 && why == NULL && !is_builtin(&trial->truths.items[b]))
			judged = compare_tensors(trial, i, wanted, found, rule, trial->witness[a].name, &out, &why, err);
		if (judged < 0)
			return -1;
		margin = out.metrics.margin > margin || isnan(out.metrics.margin) ? out.metrics.margin : margin;
		if (why != NULL && *miss == NULL)
			*miss = why;
		agrees &= why == NULL;
	}
	if (is_builtin(&trial->truths.items[b]))
		trial->witness[a].margin = margin;
	return agrees;
}

struct agreement {
	bool differ[TRUTHS_MAX][TRUTHS_MAX];
	int differences, first, second; /* pairs that differ, and the first of them */
	const char *miss;               /* of that pair */
};

static int find_agreement(struct trial *trial, struct agreement *out, struct err *err)
{
	*out = (struct agreement){0};
	for (int a = 0; a < trial->truths.count; a++)
		for (int b = a + 1; b < trial->truths.count; b++) {
			const char *miss;
			int agrees = 1;

			if (trial->answered[a] && trial->answered[b])
				agrees = pair_agrees(trial, a, b, &miss, err);
			if (agrees < 0)
				return -1;
			if (agrees)
				continue;
			out->differ[a][b] = out->differ[b][a] = true;
			if (out->differences++ == 0) {
				out->first = a;
				out->second = b;
				out->miss = miss;
			}
		}
	return 0;
}

/* Who differs from all others while those agree among themselves. -1: nobody, or there are only two. */
static int who_stands_alone(const struct trial *trial, const struct agreement *agreement)
{
	int answered = 0;

	for (int i = 0; i < trial->truths.count; i++)
		answered += trial->answered[i];
	for (int k = 0; k < trial->truths.count && answered > 2; k++) {
		int own = 0;

		for (int i = 0; i < trial->truths.count; i++)
			own += agreement->differ[k][i];
		if (own == answered - 1 && own == agreement->differences)
			return k;
	}
	return -1;
}

/* One output on the host against the oracle's. */
static int oracle_compares(struct trial *trial, int output, int at, const struct tensor *in, const struct tensor *found,
                           const struct tensor *truth, struct metrics *metrics)
{
	struct err err = {""};
	int judged = trial->op->judge == NULL
	                 ? 0
	                 : trial->op->judge(&trial->c, output, in, &found[output], &truth[output], metrics, &err);
	struct device *cpu;
	int rc = judged;

	if (judged != 0)
		return judged < 0 ? -1 : 0;
	if (trial->op->weigh != NULL) {
		trial->op->weigh(&trial->c, output, rule_for(trial, output, at, -1), &found[output], &truth[output], metrics,
		                 &err);
		return 0;
	}
	cpu = trial->court->kernels->face->open_cpu(&err);
	if (cpu == NULL)
		return -1;
	rc = cpu->calls->compare(cpu, found[output].data, truth[output].data, found[output].dtype, found[output].elements,
	                         rule_for(trial, output, at, -1), metrics, &err);
	cpu->calls->close(cpu);
	return rc;
}

/* The CPU oracle's vote on two witnesses, where the case is small enough for it: the one that differs from it, -1: both
 * do, neither does, or it could not be asked. On the CPU builtin is the oracle. */
static int oracle_against(struct trial *trial, const struct agreement *agreement)
{
	enum { ORACLE_BYTES = 256 << 20 };
	const struct op_problem *problem = &trial->job->problem;
	struct err err = {""};
	struct tensor *in, *truth, *host[2];
	bool differs[2] = {false, false};
	const int pair[2] = {agreement->first, agreement->second};

	if (strcmp(trial->device->calls->class_name(trial->device), "cpu") == 0)
		return is_builtin(&trial->truths.items[pair[1]]) ? pair[0] : -1;
	if (job_bytes(trial->job) > ORACLE_BYTES)
		return -1;
	in = on_host(trial, trial->in, problem->input_count, &err);
	truth = on_host(trial, trial->truth[pair[0]], problem->output_count, &err);
	if (in == NULL || truth == NULL || trial->op->oracle(&trial->c, in, truth, &err) != 0)
		return -1;
	for (int k = 0; k < 2; k++) {
		host[k] = on_host(trial, trial->truth[pair[k]], problem->output_count, &err);
		for (int i = 0; host[k] != NULL && i < problem->output_count; i++) {
			struct metrics metrics = {0};

			if (oracle_compares(trial, i, pair[k], in, host[k], truth, &metrics) < 0)
				return -1;
			differs[k] = differs[k] || !metrics.passed;
		}
	}
	return host[0] == NULL || host[1] == NULL || differs[0] == differs[1] ? -1 : pair[differs[0] ? 0 : 1];
}

/* "; the reference agrees with builtin and torch" */
static void append_reference(const struct trial *trial, struct buf *out)
{
	int count = trial->job->problem.output_count, at = 0, said = 0;

	for (int i = 0; i < trial->truths.count; i++) {
		bool passed = true;

		if (!trial->answered[i])
			continue;
		for (int k = 0; k < trial->verdict.output_count; k++)
			if (strcmp(trial->outputs[k].ground_truth, trial->witness[i].name) == 0)
				passed = passed && trial->outputs[k].status == STATUS_PASSED;
		at += count;
		if (passed)
			buf_printf(out, "%s%s", said++ == 0 ? "; the reference agrees with " : " and ", trial->witness[i].name);
	}
	if (said == 0)
		buf_text(out, "; the reference agrees with none of them");
}

static void decide_disagreement(struct trial *trial, const struct agreement *agreement)
{
	int alone = who_stands_alone(trial, agreement);
	bool by_oracle = alone < 0 && agreement->differences == 1;
	const char *first = trial->witness[agreement->first].name, *second = trial->witness[agreement->second].name;
	struct buf text = {0};

	if (by_oracle)
		alone = oracle_against(trial, agreement);
	if (alone >= 0)
		buf_printf(&text, "%s stands alone%s", trial->witness[alone].name,
		           by_oracle ? " against the oracle on the CPU" : "");
	else
		buf_printf(&text, "%d pairs of ground truths differ and no single one stands alone", agreement->differences);
	append_reference(trial, &text);
	buf_printf(&text, "\n%s against %s: %s", first, second, agreement->miss);
	if (trial->misses.length > 0)
		buf_printf(&text, "\nthe reference %s", trial->misses.data);
	decide(trial, STATUS_FAILED, REASON_GROUND_TRUTHS_DISAGREE, arena_copy(&trial->arena, text.data, text.length));
	buf_free(&text);
}

static void check_agreement(struct trial *trial)
{
	struct agreement agreement;
	struct err err = {""};

	if (find_agreement(trial, &agreement, &err) != 0)
		decide_error(trial, &err);
	else if (agreement.differences > 0)
		decide_disagreement(trial, &agreement);
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
		values[trial->verdict.constant_count++] = (struct named_value){constant->name, constant->source, constant->value};
		if (constant->conflict[0] != '\0')
			add_finding(trial, constant->conflict);
		if (isnan(trial->job->constants[i].value))
			add_finding(trial, arena_printf(&trial->arena, "%s is attested nowhere; probing the reference shows %g",
			                                constant->name, constant->value));
	}
	trial->verdict.constants = values;
}

/* Who decided, and who was passed over. A case that was decided before anybody was asked belongs to those who would have
 * been: the first, or all. Builtin alone is told by name and version as it is. */
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
	if (truths->count == 1 && is_builtin(&truths->items[0]))
		return;
	for (int i = 0; all && i < truths->count; i++)
		if (!trial->answered[i] && trial->witness[i].passed_over == NULL)
			pass_over(trial, i, false, "it was not asked: the case was decided before");
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
	decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, arena_copy(&trial->arena, text.data, text.length));
	buf_free(&text);
}

/* Somebody vouches for the outputs, but nobody for an input that was written to. */
static void decide_unjudged(struct trial *trial)
{
	int input = unjudged_input(trial);

	if (input < 0)
		return;
	decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH,
	       arena_printf(&trial->arena,
	                    "what the reference left in its input '%s' was compared with nothing: of the ground truths only "
	                    "builtin tells what it has to hold, and it %s",
	                    trial->job->problem.inputs[input].name,
	                    builtin_at(trial) < 0 ? "was not asked; name it too, after --ground-truth" : "gave no answer"));
}

static enum trial_answer give_verdict(struct trial *trial, struct buf *out)
{
	struct verdict *verdict = &trial->verdict;
	const struct device_calls *calls = trial->device->calls;

	if (!trial->decided && trial->op != NULL)
		decide_nobody(trial);
	if (!trial->decided && trial->op == NULL)
		decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, trial->job->no_truth);
	if (trial->missed != REASON_NONE)
		decide(trial, STATUS_FAILED, trial->missed, trial->missed_message);
	if (!trial->decided && trial->op != NULL)
		decide_unjudged(trial);
	decide(trial, STATUS_PASSED, REASON_NONE, NULL);
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
	if (stage(trial, run, &err) != 0) {
		decide_error(trial, &err);
		return give_verdict(trial, out);
	}
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
	if (trial->job != NULL)
		find_truths(trial);
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
	struct err err = {""};
	struct tensor *in = on_host(trial, trial->in, problem->input_count, &err);
	struct tensor *first = on_host(trial, trial->first, problem->output_count, &err);

	if (in == NULL || first == NULL) {
		decide_error(trial, &err);
		return give_verdict(trial, out);
	}
	if (trial->op->probe(&trial->c, in, first, trial->constants, &err) != 0) {
		decide(trial, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, arena_string(&trial->arena, err.text));
		return give_verdict(trial, out);
	}
	memcpy(court->recovered, trial->constants, sizeof court->recovered);
	court->recovered_count = trial->job->constant_count;
	return begin_case(trial, out);
}

/* Is its answer enough? One that is coarser than the case's rules is heard, and the next is asked as well; so it is where
 * an input was written to of which this one cannot tell what it has to hold. */
static bool decides(const struct trial *trial, int at)
{
	return !trial->truths.all && trial->answered[at] && trial->coarse[at] == NULL && unjudged_input(trial) < 0;
}

/* On to the next witness that is to be asked, or to the verdict. */
static enum trial_answer next_witness(struct trial *trial, struct buf *out)
{
	const struct truths *truths = &trial->truths;
	bool enough = false;

	for (; trial->op != NULL && !trial->decided && !enough && trial->asked < truths->count; trial->asked++) {
		int at = trial->asked;

		if (!is_builtin(&truths->items[at])) {
			if (ask_provider(trial, at, out))
				return TRIAL_PROVIDE;
		} else if (!trial->answered[at] && trial->witness[at].passed_over == NULL) {
			ask_builtin(trial, at);
		}
		enough = decides(trial, at);
	}
	if (trial->op != NULL && !trial->decided)
		check_agreement(trial);
	return give_verdict(trial, out);
}

/* Whatever the provider had to say, it was asked and is done; one that gave the outputs is enough, unless all are asked. */
enum trial_answer trial_provided(struct trial *trial, const cJSON *message, struct buf *out)
{
	const char *declined = json_text_of(message, "unavailable"), *failed = json_text_of(message, "failed");
	const char *unmapped = json_text_of(message, "unmapped");
	int at = trial->asked;

	if (!trial->at_stand)
		return give_verdict(trial, out);
	if (unmapped != NULL && trial->court->stand.kind == SHARED_CUDA) {
		shared_renew(&trial->court->stand);
		trial->court->stand.kind = SHARED_STAGED;
		return next_witness(trial, out);
	}
	if (cJSON_IsArray(json_member(message, "provided")))
		take_provided(trial, at, message);
	else if (declined != NULL)
		pass_over(trial, at, false, declined);
	else
		pass_over(trial, at, cJSON_IsTrue(json_member(message, "accident")) || failed == NULL,
		          failed != NULL ? failed : "it sent what nobody understands");
	if (decides(trial, at))
		trial->truths.count = at + 1; /* nobody else is asked */
	trial->asked++;
	return next_witness(trial, out);
}

enum trial_answer trial_ran(struct trial *trial, const cJSON *ran, struct buf *out)
{
	struct err err = {""};

	check_canaries(trial);
	if (trial->released && !trial->decided)
		make_inputs(trial);
	check_inputs(trial);
	check_forms(trial, ran);
	if (trial->run == 1)
		check_deterministic(trial);
	if (!trial->decided && trial->run == 1)
		return next_witness(trial, out);
	if (!trial->decided && copy_what_was_written(trial, &err) != 0)
		decide_error(trial, &err);
	if (trial->decided)
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
	buf_free(&trial->misses);
	arena_free(&trial->arena);
	free(trial);
}
