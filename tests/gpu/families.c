/* families - compares the results of a GPU with those of the CPU for every op family, at shapes that no size preset
 * has.
 *
 *   families LIBRARY|cpu [ROOT [DRAWS [SECONDS [SEED [FAMILY|all [MOST]]]]]]
 *
 * LIBRARY: libreftest_kernels_cuda.so. "cpu" compares the CPU with itself. This also works on a machine without a GPU:
 * it shows which shapes are drawn, how much time the CPU needs, and that planted errors are found. ROOT: a dataset
 * (default: the working directory). Each definition of ROOT that a family recognises is tested with DRAWS shapes
 * (default 6), or fewer if SECONDS (default 15) have passed. FAMILY: only this family. MOST: the upper limit of each
 * var axis; with it, only the smallest definition of each variant of a family is tested. Use MOST under tools that make
 * a kernel a thousand times slower.
 *
 * - The length of every var axis is drawn between 1 and its largest size in the small and medium presets. Small values
 *   are as likely as large values. If constraints determine the length of an axis from other axes, the length is
 *   computed and not drawn. If the axes violate a constraint, or if the family rejects them (op.check), all axes are
 *   drawn again.
 * - Every input is generated on the CPU and on the GPU, and both must have the same bits. Even and
 *   odd shapes use different sets of input values.
 * - The outputs of the oracle and of the GPU are compared by the family's tolerance rule. If there is no rule and the
 *   bits differ, op.judge compares the outputs. The GPU computes the outputs twice, and both results must have the same
 *   bits.
 * - The final value of an input that the operation writes to (op.in_place) counts as an output.
 * - Once for each family, a byte of each input and an element of each output are changed. The comparison must find all
 *   these changes.
 *
 * Prints TAP, one test for each family, with the worst margin, where it occurred, and the time that the oracle and the
 * kernels took. */
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "dataset/constraint.h"
#include "dataset/dataset.h"
#include "dataset/definition_parse.h"
#include "kernels/core/device.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/kernels_library.h"
#include "kernels/core/random_inputs.h"
#include "tests/gpu/check_messages.h"
#include "workers/judge/case_inputs.h"
#include "workers/protocol/job.h"

enum { ATTEMPTS = 400, FAMILIES = 64 };

/* The results of one family so far. */
struct score {
	int definitions, draws, wrong;
	bool planted;
	double margin, cpu_seconds, gpu_seconds;
	char where[400]; /* the definition and axes of the worst margin */
};

struct contest {
	struct device *cpu, *gpu;
	int draws;
	double seconds;
	uint64_t seed;
	const char *family; /* NULL: all */
	int64_t most;       /* the largest allowed size of a var axis; INT64_MAX: no limit */
	struct score scores[FAMILIES]; /* indexed like op_table */
};

/* A definition that an op family recognises. All pointers are to memory in `arena`. */
struct subject {
	struct arena arena;
	const struct definition *definition;
	struct op_problem problem;
	const struct op_entry *entry;
	int variant;
	int64_t *most; /* the largest size of each axis in the small and medium presets */
	bool *derived; /* whether constraints determine the axis from other axes */
	const struct input_source *sources; /* all random */
};

/* A shape: one value for each axis. */
struct draw {
	const struct subject *subject;
	struct job job;
	struct op_case c;
	int64_t *axis;
	char text[400];
};

/* The tensors of one side, CPU or GPU, for a shape. */
struct side {
	struct device *device;
	struct tensor in[OP_ARGS], out[OP_PLACES]; /* `out`: the outputs, then the final values of op.in_place inputs */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- definitions -------------------------------------------------------------------------------------------------- */

static void find_limits(struct subject *s)
{
	int axes = s->problem.axis_count;
	int64_t *rows = arena_array(&s->arena, (size_t)(16 * axes + 1), sizeof *rows);

	s->most = arena_array(&s->arena, (size_t)axes + 1, sizeof *s->most);
	for (enum op_size size = SIZE_SMALL; size <= SIZE_MEDIUM; size++)
		for (int r = 0, count = s->entry->op->sizes(&s->problem, s->variant, size, rows, 16); r < count; r++)
			for (int a = 0; a < axes; a++)
				if (rows[r * axes + a] > s->most[a])
					s->most[a] = rows[r * axes + a];
}

static void find_derived(struct subject *s)
{
	int axes = s->problem.axis_count;
	int64_t *axis = arena_array(&s->arena, (size_t)axes + 1, sizeof *axis);

	s->derived = arena_array(&s->arena, (size_t)axes + 1, sizeof *s->derived);
	for (int a = 0; a < axes; a++) {
		for (int b = 0; b < axes; b++)
			axis[b] = s->problem.axes[b].var ? s->most[b] : s->problem.axes[b].value;
		axis[a] = -1;
		constraint_solve(s->definition, axis);
		s->derived[a] = s->problem.axes[a].var && axis[a] >= 0;
	}
}

/* Reads a definition. Returns false if no family recognises the definition. */
static bool open_subject(struct subject *s, const struct dataset *dataset, const struct dataset_file *file)
{
	struct buf bytes = {0};
	struct err err = {""};

	memset(s, 0, sizeof *s);
	must(file_read(dataset->fd, file->path, DEFINITION_BYTES, &bytes, NULL, &err) == FILE_OK, &err);
	s->definition =
	    definition_parse(file->path, file->op_type, file->name, bytes.data, bytes.length, &s->arena, &err);
	buf_free(&bytes);
	must(s->definition != NULL, &err);
	s->problem = problem_of(s->definition, &s->arena);
	s->entry = op_find(&s->problem, &s->variant, &err);
	if (s->entry == NULL) {
		tell("%s: no ground truth: %s", file->name, err.text);
		return false;
	}
	s->sources = arena_array(&s->arena, (size_t)s->problem.input_count + 1, sizeof *s->sources);
	find_limits(s);
	find_derived(s);
	return true;
}

/* --- draws -------------------------------------------------------------------------------------------------------- */

/* Returns a value from 1 to `most`. Small values are as likely as large ones. */
static int64_t some_value(int64_t most, uint64_t key, int64_t index)
{
	double part = (double)philox_bits(key, index) / 0x1p32;
	int64_t value = (int64_t)exp(part * log((double)most + 1));

	return value < 1 ? 1 : value > most ? most : value;
}

static bool axes_hold(const struct subject *s, const int64_t *axis)
{
	for (int a = 0; a < s->problem.axis_count; a++)
		if (axis[a] < 0)
			return false;
	for (int i = 0; i < s->definition->constraint_count; i++) {
		enum constraint_answer answer =
		    constraint_evaluate(s->definition, s->definition->constraints[i], axis, NULL, NULL);

		if (answer != CONSTRAINT_HOLDS && answer != CONSTRAINT_UNKNOWN)
			return false;
	}
	return true;
}

static bool draw_axes(const struct subject *s, uint64_t key, int64_t *axis)
{
	for (int a = 0; a < s->problem.axis_count; a++)
		axis[a] = s->problem.axes[a].var ? -1 : s->problem.axes[a].value;
	constraint_solve(s->definition, axis);
	for (int pass = 0; pass < 2; pass++)
		for (int a = 0; a < s->problem.axis_count; a++)
			if (axis[a] < 0 && (pass == 1 || !s->derived[a])) {
				axis[a] = some_value(s->most[a], key, a);
				constraint_solve(s->definition, axis);
			}
	return axes_hold(s, axis);
}

static void describe(struct draw *d)
{
	const struct op_problem *problem = &d->subject->problem;
	int length = snprintf(d->text, sizeof d->text, "%s", problem->name);

	for (int a = 0; a < problem->axis_count; a++)
		if (problem->axes[a].var && length < (int)sizeof d->text)
			length += snprintf(d->text + length, sizeof d->text - (size_t)length, " %s=%lld",
			                   problem->axes[a].name, (long long)d->axis[a]);
}

static void make_case(struct draw *d, uint64_t seed, enum op_contents contents)
{
	const struct subject *s = d->subject;
	const struct op *op = s->entry->op;

	d->job = (struct job){.id = "draw", .problem = s->problem, .op = op->name, .axis = d->axis, .seed = seed,
	                      .inputs = s->sources, .root = "."};
	d->c = (struct op_case){.problem = &s->problem, .variant = s->variant, .axis = d->axis};
	op_case_set_contents(&d->c, seed, contents);
	if (op->constants != NULL)
		d->c.constant_count = op->constants(&s->problem, s->variant, d->c.constants);
	for (int i = 0; i < d->c.constant_count; i++)
		if (isnan(d->c.constants[i].value))
			d->c.constants[i].value = 1e-6;
	for (int i = 0; i < s->problem.input_count; i++)
		if (s->problem.inputs[i].rank == OP_SCALAR)
			case_inputs_set_scalar(&d->job, op, &d->c, i);
	describe(d);
}

/* Returns whether the family accepts the axes and both sides have enough memory. */
static bool is_possible(const struct contest *contest, const struct draw *d)
{
	const struct op *op = d->subject->entry->op;
	struct tensor nothing[OP_ARGS] = {0};
	struct err why;
	int64_t bytes = job_bytes(&d->job);

	for (int i = 0; i < d->job.problem.input_count; i++)
		nothing[i] = job_tensor(&d->job.problem.inputs[i], d->axis);
	if (op->check != NULL && op->check(&d->c, nothing, &why) != 0)
		return false;
	return bytes < contest->gpu->calls->memory_free(contest->gpu) &&
	       bytes < contest->cpu->calls->memory_free(contest->cpu);
}

/* Draws the axes of shape `number`, and builds their case. Returns false if none of the drawn axes are valid. */
static bool make_draw(const struct contest *contest, const struct subject *s, int number, struct draw *d)
{
	d->subject = s;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		uint64_t key = contest->seed * 1000003 + (uint64_t)(number * ATTEMPTS + attempt);

		if (!draw_axes(s, key, d->axis))
			continue;
		make_case(d, contest->seed + (uint64_t)number, number % 2 == 0 ? CONTENTS_FIRST : CONTENTS_SECOND);
		if (is_possible(contest, d))
			return true;
	}
	return false;
}

/* --- both sides --------------------------------------------------------------------------------------------------- */

/* Allocates a tensor with the shape of `arg`. Sets the bytes of the tensor to a fill value, so that elements that are
 * never written are noticed. */
static struct tensor allocate(struct device *device, const struct op_arg *arg, const int64_t *axis)
{
	struct tensor tensor = job_tensor(arg, axis);
	int64_t bytes = job_tensor_bytes(&tensor);
	struct err err;

	if (tensor.rank == OP_SCALAR)
		return tensor;
	tensor.data = device->calls->allocate(device, bytes, &err);
	must(tensor.data != NULL && device->calls->set(device, tensor.data, 0xff, bytes, &err) == 0, &err);
	return tensor;
}

/* Returns the argument whose values are in `out[place]`: an output, or an input that the operation writes to
 * (op.in_place). Returns NULL if the place is unused. */
static const struct op_arg *arg_at(const struct draw *d, int place)
{
	const struct op_problem *problem = &d->job.problem;
	const struct op *op = d->subject->entry->op;
	int input = place - problem->output_count;

	if (input < 0)
		return &problem->outputs[place];
	if (input >= problem->input_count || op->in_place == NULL || op->in_place(&d->c, input).place != place)
		return NULL;
	return &problem->inputs[input];
}

static void open_side(struct side *side, struct device *device, const struct draw *d)
{
	memset(side, 0, sizeof *side);
	side->device = device;
	for (int i = 0; i < d->job.problem.input_count; i++)
		side->in[i] = allocate(device, &d->job.problem.inputs[i], d->axis);
	for (int i = 0; i < OP_PLACES; i++)
		if (arg_at(d, i) != NULL)
			side->out[i] = allocate(device, arg_at(d, i), d->axis);
}

static void close_side(struct side *side)
{
	for (int i = 0; i < OP_PLACES; i++) {
		if (i < OP_ARGS && side->in[i].data != NULL)
			side->device->calls->release(side->device, side->in[i].data);
		if (side->out[i].data != NULL)
			side->device->calls->release(side->device, side->out[i].data);
	}
}

/* Copies the tensor to the host, into memory from malloc. */
static struct tensor on_host(struct device *device, const struct tensor *tensor)
{
	struct tensor copy = *tensor;
	int64_t bytes = job_tensor_bytes(tensor);
	struct err err;

	if (tensor->data == NULL)
		return copy;
	copy.data = malloc((size_t)bytes + 1);
	if (copy.data == NULL)
		die_no_memory();
	must(device->calls->download(device, copy.data, tensor->data, bytes, &err) == 0, &err);
	return copy;
}

/* Returns the offset of the first byte in which the GPU's tensor differs from the tensor on the host, or -1. */
static int64_t first_difference(const struct contest *contest, const struct tensor *gpu, const void *host)
{
	int64_t bytes = job_tensor_bytes(gpu);
	struct err err;
	void *copy = contest->gpu->calls->allocate(contest->gpu, bytes, &err);

	must(copy != NULL && contest->gpu->calls->upload(contest->gpu, copy, host, bytes, &err) == 0, &err);
	int64_t at = contest->gpu->calls->first_difference(contest->gpu, gpu->data, copy, bytes, &err);

	contest->gpu->calls->release(contest->gpu, copy);
	must(at != -2, &err);
	return at;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static int fill(struct side *side, const struct draw *d)
{
	struct rejection rejection = {.why = {""}};

	if (case_inputs_fill(side->device, NULL, &d->job, d->subject->entry->op, &d->c, side->in, &rejection) == 0)
		return 0;
	return tell("%s: %s: %s", d->text, side->device->calls->class_name(side->device), rejection.why.text);
}

/* Changes a byte in the middle of an input, and checks that the comparison finds it. */
static int plant_in_input(const struct contest *contest, const struct draw *d, const struct tensor *cpu,
                          const struct tensor *gpu)
{
	int64_t at = job_tensor_bytes(cpu) / 2;
	unsigned char *byte = (unsigned char *)cpu->data + at;

	*byte ^= 1;
	int64_t found = first_difference(contest, gpu, cpu->data);

	*byte ^= 1;
	return found == at ? 0
	                   : tell("%s: the byte changed at %lld was found at %lld", d->text, (long long)at,
	                          (long long)found);
}

static int same_inputs(const struct contest *contest, struct score *score, const struct draw *d, struct side *cpu,
                       struct side *gpu)
{
	int wrong = 0;

	if (fill(cpu, d) + fill(gpu, d) > 0)
		return 1;
	for (int i = 0; i < d->job.problem.input_count; i++) {
		if (cpu->in[i].data == NULL || job_tensor_bytes(&cpu->in[i]) == 0)
			continue;
		int64_t at = first_difference(contest, &gpu->in[i], cpu->in[i].data);

		if (at >= 0)
			wrong += tell("%s: input %s differs at byte %lld", d->text, d->job.problem.inputs[i].name,
			              (long long)at);
		else if (!score->planted)
			wrong += plant_in_input(contest, d, &cpu->in[i], &gpu->in[i]);
	}
	return wrong;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* The results of both sides for one output, in host memory. */
struct answers {
	const struct side *cpu; /* the CPU's side, whose tensors are in host memory */
	struct tensor oracle, gpu;
	int output;
};

/* Compares the results by the tolerance rule. If there is no rule and the bits differ, the family's op.judge
 * decides. */
static struct metrics compare(const struct contest *contest, const struct draw *d, const struct answers *a,
                              struct err *why)
{
	const struct op *op = d->subject->entry->op;
	int64_t bytes = job_tensor_bytes(&a->oracle);
	struct metrics metrics = {0};
	int judged = 0;

	if (op->judge != NULL && a->output < d->job.problem.output_count &&
	    memcmp(a->oracle.data, a->gpu.data, (size_t)bytes) != 0)
		judged = op->judge(&d->c, a->output, a->cpu->in, &a->gpu, &a->oracle, &metrics, NULL, why);
	must(judged >= 0, why);
	if (judged == 0)
		must(contest->cpu->calls->compare(contest->cpu, a->gpu.data, a->oracle.data, a->oracle.dtype,
		                                  a->oracle.elements, op->rule(&d->c, a->output), &metrics, why) == 0,
		     why);
	return metrics;
}

/* Returns a wrong value for an element whose correct value is `value`. The tolerance rule must reject this wrong
 * value. */
static double wrong_value(const struct tensor *tensor, struct rule rule, double value)
{
	double step = 8 * (rule.atol + rule.rtol * fabs(value)) + fabs(value) / 16 + 0x1p-10;

	if (dtype_is_float(tensor->dtype))
		return !isfinite(value) ? 0 : value > 0 ? value - step : value + step;
	if (tensor->dtype == DTYPE_BOOL || tensor->dtype == DTYPE_UINT8 || tensor->dtype == DTYPE_UINT32)
		return value == 0;
	return -7; /* an index that is never valid */
}

/* Changes an element in the middle of the GPU's output, or all elements if the rule tolerates some misses. Checks that
 * the comparison finds the change. */
static int plant_in_output(const struct contest *contest, const struct draw *d, const struct answers *a)
{
	struct rule rule = d->subject->entry->op->rule(&d->c, a->output);
	int64_t elements = a->gpu.elements, from = rule.hit_ratio < 1 ? 0 : elements / 2;
	struct err why = {""};

	for (int64_t i = from; i < (rule.hit_ratio < 1 ? elements : from + 1); i++)
		dtype_store(a->gpu.data, a->gpu.dtype, i,
		            wrong_value(&a->gpu, rule, dtype_load(a->oracle.data, a->oracle.dtype, i)));
	return !compare(contest, d, a, &why).passed
	           ? 0
	           : tell("%s: output %s passes with a wrong element", d->text, arg_at(d, a->output)->name);
}

static int same_output(const struct contest *contest, struct score *score, const struct draw *d,
                       const struct side *cpu, const struct side *gpu, int output)
{
	struct answers a = {cpu, cpu->out[output], on_host(gpu->device, &gpu->out[output]), output};
	const char *name = arg_at(d, output)->name;
	struct err why = {""};
	struct metrics metrics = compare(contest, d, &a, &why);
	int wrong = 0;

	if (!metrics.passed)
		wrong += tell("%s: output %s is not the oracle's: margin %g, [%lld] is %.9g for %.9g %s", d->text, name,
		              metrics.margin, (long long)metrics.worst[0].index, metrics.worst[0].reference,
		              metrics.worst[0].ground_truth, why.text);
	if (metrics.margin > score->margin || score->where[0] == '\0') {
		score->margin = metrics.margin;
		snprintf(score->where, sizeof score->where, "%.350s, %.40s", d->text, name);
	}
	if (!score->planted && a.oracle.elements > 0)
		wrong += plant_in_output(contest, d, &a);
	free(a.gpu.data);
	return wrong;
}

/* Computes the outputs of one side, and returns the seconds that this took. */
static double answer(struct side *side, const struct draw *d)
{
	struct err err;
	double start = now();

	must(side->device->calls->truth(side->device, d->subject->entry->op, &d->c, side->in, side->out, &err) == 0,
	     &err);
	return now() - start;
}

static int same_answers(const struct contest *contest, struct score *score, const struct draw *d, struct side *cpu,
                        struct side *gpu)
{
	struct tensor first[OP_PLACES];
	int wrong = 0;

	score->cpu_seconds += answer(cpu, d);
	answer(gpu, d);
	for (int o = 0; o < OP_PLACES; o++)
		first[o] = on_host(gpu->device, &gpu->out[o]);
	score->gpu_seconds += answer(gpu, d); /* the first call, which also loads the code, is not timed */
	for (int o = 0; o < OP_PLACES; o++) {
		if (gpu->out[o].data == NULL)
			continue;
		if (job_tensor_bytes(&gpu->out[o]) > 0 &&
		    first_difference(contest, &gpu->out[o], first[o].data) >= 0)
			wrong +=
			    tell("%s: output %s differs from run to run", d->text, arg_at(d, o)->name);
		free(first[o].data);
		wrong += same_output(contest, score, d, cpu, gpu, o);
	}
	return wrong;
}

/* --- the whole test ----------------------------------------------------------------------------------------------- */

static void hold(const struct contest *contest, struct score *score, const struct draw *d)
{
	struct side cpu, gpu;
	int wrong;

	open_side(&cpu, contest->cpu, d);
	open_side(&gpu, contest->gpu, d);
	wrong = same_inputs(contest, score, d, &cpu, &gpu);
	if (wrong == 0) {
		wrong = same_answers(contest, score, d, &cpu, &gpu);
		score->planted = true;
	}
	score->wrong += wrong;
	score->draws++;
	close_side(&cpu);
	close_side(&gpu);
}

static void hold_all(struct contest *contest, struct subject *s)
{
	struct score *score = &contest->scores[s->entry - op_table];
	struct draw d = {.axis = arena_array(&s->arena, (size_t)s->problem.axis_count + 1, sizeof *d.axis)};
	double start = now();

	score->definitions++;
	for (int n = 0; n < contest->draws && now() - start < contest->seconds; n++)
		if (make_draw(contest, s, n, &d))
			hold(contest, score, &d);
		else
			score->wrong += tell("%s: no axes were found in %d attempts", s->problem.name, ATTEMPTS);
}

static void limit_axes(struct subject *s, int64_t most)
{
	for (int a = 0; a < s->problem.axis_count; a++)
		if (s->problem.axes[a].var && s->most[a] > most)
			s->most[a] = most;
}

/* Returns the size in bytes of all tensors if every var axis has its largest allowed size. */
static int64_t largest_bytes(struct subject *s)
{
	int64_t *axis = arena_array(&s->arena, (size_t)s->problem.axis_count + 1, sizeof *axis);
	struct job job = {.problem = s->problem, .axis = axis};

	for (int a = 0; a < s->problem.axis_count; a++)
		axis[a] = s->problem.axes[a].var ? s->most[a] : s->problem.axes[a].value;
	return job_bytes(&job);
}

/* The facts about a definition that determine whether it is the smallest of its family and variant. */
struct entrant {
	const struct op_entry *entry; /* NULL if no family of this test recognises the definition */
	int variant;
	int64_t bytes;
};

static struct entrant enter(const struct contest *contest, const struct dataset *dataset, int index)
{
	struct entrant entrant = {NULL, 0, 0};
	struct subject s;

	if (open_subject(&s, dataset, &dataset->definitions[index]) &&
	    (contest->family == NULL || strcmp(contest->family, s.entry->op->name) == 0)) {
		limit_axes(&s, contest->most);
		entrant = (struct entrant){s.entry, s.variant, largest_bytes(&s)};
	}
	arena_free(&s.arena);
	return entrant;
}

/* Returns true if this definition is the smallest of its family and variant. If several are equally small, returns true
 * only for the first. */
static bool is_smallest(const struct entrant *entrants, int count, int index)
{
	const struct entrant *it = &entrants[index];

	for (int i = 0; i < count; i++)
		if (entrants[i].entry == it->entry && entrants[i].variant == it->variant &&
		    (entrants[i].bytes < it->bytes || (entrants[i].bytes == it->bytes && i < index)))
			return false;
	return true;
}

/* Tests every definition of the dataset, or with MOST only the smallest definition of each variant of a family, and
 * adds the results to the families' scores. */
static void hold_dataset(struct contest *contest, const char *root)
{
	struct arena arena = {0};
	struct dataset dataset;
	struct err err;

	must(dataset_scan(root, &arena, &dataset, &err) == 0, &err);
	struct entrant *entrants = arena_array(&arena, (size_t)dataset.definition_count + 1, sizeof *entrants);

	for (int i = 0; i < dataset.definition_count; i++)
		entrants[i] = enter(contest, &dataset, i);
	for (int i = 0; i < dataset.definition_count; i++) {
		struct subject subject;

		if (entrants[i].entry == NULL ||
		    (contest->most < INT64_MAX && !is_smallest(entrants, dataset.definition_count, i)))
			continue;
		must(open_subject(&subject, &dataset, &dataset.definitions[i]), &err);
		limit_axes(&subject, contest->most);
		hold_all(contest, &subject);
		arena_free(&subject.arena);
	}
	dataset_close(&dataset);
	arena_free(&arena);
}

static int report(const struct contest *contest)
{
	int failed = 0, number = 0;

	for (int f = 0; f < op_count; f++) {
		const struct score *score = &contest->scores[f];
		bool fine = score->wrong == 0 && score->planted;

		if (score->definitions == 0)
			continue;
		printf("%s %d - %s: inputs bit for bit, truth by its rule, at %d random shapes of %d definitions\n",
		       fine ? "ok" : "not ok", ++number, op_table[f].op->name, score->draws, score->definitions);
		tell("%s: worst margin %.3f (%s); oracle %.2f s, GPU %.4f s", op_table[f].op->name, score->margin,
		     score->where, score->cpu_seconds, score->gpu_seconds);
		failed += !fine;
	}
	printf("1..%d\n", number);
	return failed != 0 || number == 0;
}

static struct device *open_gpu(const char *library)
{
	const struct kernels_cuda_api *api;
	void *handle;
	struct err err;

	if (strcmp(library, "cpu") == 0)
		return device_open_cpu(&err);
	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	api = handle != NULL ? dlsym(handle, "reftest_kernels_cuda") : NULL;
	if (api == NULL) {
		printf("Bail out! %s\n", dlerror());
		exit(1);
	}
	struct device *device = api->open(0, &err);

	must(device != NULL, &err);
	return device;
}

int main(int argc, char **argv)
{
	struct contest contest = {.draws = argc > 3 ? atoi(argv[3]) : 6,
	                          .seconds = argc > 4 ? atof(argv[4]) : 15,
	                          .seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 1,
	                          .family = argc > 6 && strcmp(argv[6], "all") != 0 ? argv[6] : NULL,
	                          .most = argc > 7 ? strtoll(argv[7], NULL, 10) : INT64_MAX};
	struct err err;

	if (argc < 2 || op_count > FAMILIES || contest.draws < 1) {
		printf("Bail out! usage: families libreftest_kernels_cuda.so|cpu [ROOT [DRAWS [SECONDS [SEED [FAMILY|all "
		       "[MOST]]]]]]\n");
		return 1;
	}
	contest.cpu = device_open_cpu(&err);
	must(contest.cpu != NULL, &err);
	contest.gpu = open_gpu(argv[1]);
	tell("%s, %s", contest.gpu->calls->product(contest.gpu), contest.gpu->calls->class_name(contest.gpu));
	hold_dataset(&contest, argc > 2 ? argv[2] : ".");
	contest.gpu->calls->close(contest.gpu);
	contest.cpu->calls->close(contest.cpu);
	return report(&contest);
}
