/* problems - builds problems of op families for the checks, with inputs and ground truths on CPU and GPU. */
#ifndef REFTEST_TESTS_GPU_PROBLEMS_H
#define REFTEST_TESTS_GPU_PROBLEMS_H

#include <math.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/random_inputs.h"
#include "tests/gpu/check.h"

/* The problem of an op family (struct op_problem), and the axis values of one case. The struct must not be moved,
 * because `problem` points into it. */
struct made {
	char text[160];
	struct op_axis axes[3];
	struct op_arg in[4], out[2];
	struct op_problem problem;
	int64_t axis[3];
	uint64_t seed;
};

static inline struct op_arg argument(const char *name, enum dtype dtype, int rank, int first, int second)
{
	return (struct op_arg){.name = name, .dtype = dtype, .rank = rank, .axis = {first, second}};
}

static inline void finish_problem(struct made *m, const char *op_type, int axes, int inputs, int outputs)
{
	m->problem = (struct op_problem){.name = "made",
					 .op_type = op_type,
					 .description = "Epsilon is fixed at 1e-6.",
					 .axes = m->axes,
					 .axis_count = axes,
					 .inputs = m->in,
					 .input_count = inputs,
					 .outputs = m->out,
					 .output_count = outputs};
	m->seed = 42;
}

/* variants of rmsnorm: plain; with a residual; with a residual that is also returned after the update */
enum { PLAIN, FUSED, UPDATED };

static inline void make_rmsnorm(struct made *m, enum dtype dtype, int form, int64_t rows, int64_t columns)
{
	snprintf(m->text, sizeof m->text, "rmsnorm form %d %s %lld x %lld", form, dtype_name(dtype), (long long)rows,
		 (long long)columns);
	m->axes[0] = (struct op_axis){"batch_size", true, 0};
	m->axes[1] = (struct op_axis){"hidden_size", false, columns};
	m->axis[0] = rows;
	m->axis[1] = columns;
	m->in[0] = argument("hidden_states", dtype, 2, 0, 1);
	m->in[1] = argument(form == PLAIN ? "weight" : "residual", dtype, form == PLAIN ? 1 : 2, form == PLAIN, 1);
	m->in[2] = argument("weight", dtype, 1, 1, 0);
	m->out[0] = argument("output", dtype, 2, 0, 1);
	m->out[1] = argument("residual_out", dtype, 2, 0, 1);
	finish_problem(m, "rmsnorm", 2, form == PLAIN ? 2 : 3, form == UPDATED ? 2 : 1);
}

static inline void make_gemm(struct made *m, enum dtype dtype, bool nn, int64_t rows, int64_t columns, int64_t inner)
{
	snprintf(m->text, sizeof m->text, "gemm %s %s %lld x %lld x %lld", nn ? "nn" : "nt", dtype_name(dtype),
		 (long long)rows, (long long)columns, (long long)inner);
	m->axes[0] = (struct op_axis){"M", true, 0};
	m->axes[1] = (struct op_axis){"N", false, columns};
	m->axes[2] = (struct op_axis){"K", false, inner};
	m->axis[0] = rows;
	m->axis[1] = columns;
	m->axis[2] = inner;
	m->in[0] = argument("A", dtype, 2, 0, 2);
	m->in[1] = argument("B", dtype, 2, nn ? 2 : 1, nn ? 1 : 2);
	m->out[0] = argument("C", dtype, 2, 0, 1);
	finish_problem(m, "gemm", 3, 2, 1);
}

static inline struct tensor tensor_of(const struct op_arg *arg, const int64_t *axis, void *data)
{
	struct tensor tensor = {.data = data, .dtype = arg->dtype, .rank = arg->rank, .elements = 1};

	for (int d = 0; d < arg->rank; d++) {
		tensor.shape[d] = axis[arg->axis[d]];
		tensor.elements *= tensor.shape[d];
	}
	return tensor;
}

static inline int64_t bytes_of(const struct tensor *tensor)
{
	return dtype_bytes(tensor->dtype, tensor->elements);
}

/* The tensors of a case on one device, the CPU or the GPU. */
struct side {
	struct device *device;
	struct tensor in[4], out[2];
};

/* Allocates the tensors, and fills them with a fixed byte, so that elements that are never written are noticed. */
static inline void allocate_side(struct side *side, struct device *device, const struct made *m)
{
	struct err err;

	side->device = device;
	for (int i = 0; i < m->problem.input_count + m->problem.output_count; i++) {
		bool output = i >= m->problem.input_count;
		int at = output ? i - m->problem.input_count : i;
		struct tensor *tensor = output ? &side->out[at] : &side->in[at];

		*tensor = tensor_of(output ? &m->out[at] : &m->in[at], m->axis, NULL);
		tensor->data = device->calls->allocate(device, bytes_of(tensor), &err);
		must(tensor->data != NULL, &err);
		must(device->calls->set(device, tensor->data, 0xff, bytes_of(tensor), &err) == 0, &err);
	}
}

static inline void release_side(struct side *side, const struct made *m)
{
	for (int i = 0; i < m->problem.input_count; i++)
		side->device->calls->release(side->device, side->in[i].data);
	for (int i = 0; i < m->problem.output_count; i++)
		side->device->calls->release(side->device, side->out[i].data);
}

static inline struct op_case case_of(const struct made *m, const struct op *op, int variant)
{
	struct op_case c = {.problem = &m->problem, .variant = variant, .axis = m->axis, .seed = m->seed};

	if (op->constants != NULL)
		c.constant_count = op->constants(&m->problem, variant, c.constants);
	for (int i = 0; i < c.constant_count; i++)
		if (isnan(c.constants[i].value))
			c.constants[i].value = 1e-6;
	return c;
}

/* Returns the offset of the first byte in which the GPU's tensor differs from the CPU's, or -1. */
static inline int64_t first_difference(const struct check *check, const struct tensor *cpu, const struct tensor *gpu)
{
	void *copy = gpu_memory(check, bytes_of(cpu));
	struct err err;

	upload(check, copy, cpu->data, bytes_of(cpu));
	int64_t at = check->gpu->calls->first_difference(check->gpu, gpu->data, copy, bytes_of(cpu), &err);

	check->gpu->calls->release(check->gpu, copy);
	must(at != -2, &err);
	return at;
}

static inline int same_inputs(const struct check *check, const struct made *m, const struct op *op,
			      const struct op_case *c, struct side *cpu, struct side *gpu)
{
	struct err err;
	int wrong = 0;

	for (int i = 0; i < m->problem.input_count; i++) {
		must(check->cpu->calls->fill(check->cpu, op, c, i, &cpu->in[i], &err) == 0, &err);
		must(check->gpu->calls->fill(check->gpu, op, c, i, &gpu->in[i], &err) == 0, &err);
		int64_t at = first_difference(check, &cpu->in[i], &gpu->in[i]);

		if (at != -1)
			wrong += tell("%s: input %s differs at byte %lld", m->text, m->in[i].name, (long long)at);
	}
	return wrong;
}

/* Compares the ground truth of the GPU with that of the oracle by the family's tolerance rule, and bit by bit with a
 * second run on the GPU. */
static inline int same_truth(const struct check *check, const struct made *m, const struct op *op,
			     const struct op_case *c, struct side *cpu, struct side *gpu)
{
	struct err err;
	int wrong = 0;

	must(check->cpu->calls->truth(check->cpu, op, c, cpu->in, cpu->out, &err) == 0, &err);
	must(check->gpu->calls->truth(check->gpu, op, c, gpu->in, gpu->out, &err) == 0, &err);
	for (int o = 0; o < m->problem.output_count; o++) {
		int64_t bytes = bytes_of(&gpu->out[o]);
		void *oracle = gpu_memory(check, bytes), *before = gpu_memory(check, bytes);
		struct metrics metrics;

		upload(check, oracle, cpu->out[o].data, bytes);
		must(check->gpu->calls->copy(check->gpu, before, gpu->out[o].data, bytes, &err) == 0, &err);
		must(check->gpu->calls->compare(check->gpu, gpu->out[o].data, oracle, gpu->out[o].dtype,
						gpu->out[o].elements, op->rule(c, o), &metrics, &err) == 0,
		     &err);
		printf("#   %s, %s: margin %.4f, cosine %.9f\n", m->text, m->out[o].name, metrics.margin,
		       metrics.cosine);
		if (!metrics.passed) {
			wrong += tell("%s: output %s is not the oracle's", m->text, m->out[o].name);
			show("GPU", &metrics);
		}
		must(check->gpu->calls->truth(check->gpu, op, c, gpu->in, gpu->out, &err) == 0, &err);
		if (check->gpu->calls->first_difference(check->gpu, before, gpu->out[o].data, bytes, &err) != -1)
			wrong += tell("%s: output %s differs from run to run", m->text, m->out[o].name);
		check->gpu->calls->release(check->gpu, oracle);
		check->gpu->calls->release(check->gpu, before);
	}
	return wrong;
}

static inline int check_case(const struct check *check, const struct made *m)
{
	struct err why = {""};
	int variant = 0;
	const struct op_entry *entry = op_find(&m->problem, &variant, &why);
	struct side cpu, gpu;

	if (entry == NULL)
		return tell("%s: %s", m->text, why.text);
	struct op_case c = case_of(m, entry->op, variant);

	allocate_side(&cpu, check->cpu, m);
	allocate_side(&gpu, check->gpu, m);
	int wrong = same_inputs(check, m, entry->op, &c, &cpu, &gpu) + same_truth(check, m, entry->op, &c, &cpu, &gpu);

	release_side(&cpu, m);
	release_side(&gpu, m);
	return wrong;
}

#endif
