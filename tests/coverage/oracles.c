/* oracles - runs the oracle (the C code that computes the ground truth) of an op family on the default cases of its
 * starter definitions, so that tools/coverage.py can report which lines and branches ran.
 *
 *   oracles                        prints the names of the families
 *   oracles FAMILY                 runs the family's cases
 *   oracles FAMILY --mistakes      runs short cases with each value of op_case.mistake
 *
 * The cases are those of engine/cases.c. They have the sizes small and medium, and run on the sets of input values on
 * which the reference would run. For each optional input, the first small case also runs without this input. All cases
 * run on the CPU. If a family has op.judge or op.weigh, these functions compare the oracle's outputs with themselves,
 * because no reference runs here. Lines that run only while inputs and sizes are generated do not count as covered.
 *
 * With --mistakes, the oracle runs with each value of op_case.mistake that op.mistakes lists. reftest computes such a
 * mistake only to diagnose a failure, so only these runs execute the code that computes the mistakes. To save time,
 * only two kinds of cases run: the first small case of each definition, and the small cases with few elements.
 * op_mistake.before and op_mistake.after do not run, so a case has the same inputs with --mistakes and without it. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "dataset/dataset.h"
#include "dataset/definition_parse.h"
#include "engine/case_sizes.h"
#include "engine/cases.h"
#include "kernels/core/op.h"
#include "workers/protocol/job.h"

enum { FEW_ELEMENTS = 1 << 16 }; /* a small case has "few elements" if its inputs have at most this many in total */

/* Functions of libgcov. The first adds the counts of executed lines to the .gcda files, the second sets them to 0. */
extern void __gcov_dump(void);
extern void __gcov_reset(void);

struct subject {
	struct op_problem problem;
	const struct op *op;
	int variant;
	bool mistakes; /* the option --mistakes */
	struct arena arena;
};

static void fail(const struct subject *s, const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", s->problem.name, what, why);
	exit(1);
}

static struct tensor with_room(const struct subject *s, const struct op_arg *arg, const int64_t *axis)
{
	struct tensor tensor = job_tensor(arg, axis);
	size_t bytes = arg->rank == OP_SCALAR ? 0 : (size_t)job_tensor_bytes(&tensor);

	if (arg->rank == OP_SCALAR)
		return tensor;
	bytes = (bytes + 256) / 256 * 256;
	tensor.data = aligned_alloc(256, bytes);
	if (tensor.data == NULL)
		fail(s, arg->name, "no memory");
	memset(tensor.data, 0, bytes);
	return tensor;
}

static struct op_case case_of(const struct subject *s, const int64_t *axis, enum op_contents states, uint32_t absent)
{
	struct op_case c = {.problem = &s->problem, .variant = s->variant, .axis = axis, .absent = absent};

	op_case_set_contents(&c, 0, states);
	if (s->op->constants != NULL)
		c.constant_count = s->op->constants(&s->problem, s->variant, c.constants);
	for (int i = 0; i < c.constant_count; i++)
		if (isnan(c.constants[i].value))
			c.constants[i].value = 1e-6;
	for (int i = 0; i < s->problem.input_count; i++)
		if (s->problem.inputs[i].rank == OP_SCALAR && s->op->scalar != NULL)
			c.scalar[i] = s->op->scalar(&c, i);
	return c;
}

static void judge(const struct subject *s, const struct op_case *c, const struct tensor *in, const struct tensor *out)
{
	for (int i = 0; i < s->problem.output_count; i++) {
		struct metrics metrics = {0};
		double evidence[OP_EVIDENCE], *kept = c->contents == CONTENTS_SECOND ? evidence : NULL;
		struct err err = {""};

		if (s->op->judge != NULL && s->op->judge(c, i, in, &out[i], &out[i], &metrics, kept, &err) < 0 && !s->mistakes)
			fail(s, s->problem.outputs[i].name, err.text);
		if (s->op->weigh != NULL)
			s->op->weigh(c, i, s->op->rule(c, i), &out[i], &out[i], &metrics, &err);
	}
}

static void run_oracle(const struct subject *s, const struct op_case *c, const struct tensor *in, struct tensor *out)
{
	struct err err = {""};

	if (s->op->oracle(c, in, out, &err) == 0)
		judge(s, c, in, out);
	else if (!s->mistakes)
		fail(s, "oracle", err.text);
}

static void run_mistakes(const struct subject *s, struct op_case *c, const struct tensor *in, struct tensor *out)
{
	for (const struct op_mistake *mistake = s->op->mistakes; mistake != NULL && mistake->says != NULL; mistake++) {
		if (mistake->in_oracle == 0)
			continue;
		c->mistake = mistake->in_oracle;
		c->mistake_by = mistake->by;
		run_oracle(s, c, in, out);
	}
}

static void run_case(const struct subject *s, const int64_t *axis, enum op_contents states, uint32_t absent)
{
	const struct op_problem *problem = &s->problem;
	struct op_case c = case_of(s, axis, states, absent);
	struct tensor in[OP_ARGS] = {0}, out[OP_PLACES] = {0};
	struct err err = {""};

	for (int i = 0; i < problem->input_count; i++) {
		in[i] = job_tensor(&problem->inputs[i], axis);
		if ((absent >> i & 1) != 0 || problem->inputs[i].rank == OP_SCALAR)
			continue;
		in[i] = with_room(s, &problem->inputs[i], axis);
		if (s->op->fill(&c, i, &in[i], &err) != 0)
			fail(s, problem->inputs[i].name, err.text);
		int own = op_own_place(problem, i);

		if (s->op->in_place != NULL && s->op->in_place(&c, i).place == own)
			out[own] = with_room(s, &problem->inputs[i], axis);
	}
	for (int i = 0; i < problem->output_count; i++)
		out[i] = with_room(s, &problem->outputs[i], axis);
	__gcov_reset();
	if (s->mistakes)
		run_mistakes(s, &c, in, out);
	else
		run_oracle(s, &c, in, out);
	__gcov_dump();
	__gcov_reset();
	for (int i = 0; i < OP_ARGS; i++)
		free(in[i].data);
	for (int i = 0; i < OP_PLACES; i++)
		free(out[i].data);
}

static bool may_leave_out(const struct subject *s, const int64_t *axis, int input)
{
	struct op_case c = {.problem = &s->problem, .variant = s->variant, .axis = axis, .absent = UINT32_C(1) << input};

	if (!s->problem.inputs[input].optional)
		return false;
	return s->problem.inputs[input].rank != OP_SCALAR || (s->op->scalar != NULL && !isnan(s->op->scalar(&c, input)));
}

static int run_sets(const struct subject *s, const int64_t *axis, enum job_runs runs, uint32_t absent)
{
	for (int contents = 0; contents < CONTENTS_COUNT; contents++)
		if (job_runs_on(runs, (enum op_contents)contents))
			run_case(s, axis, (enum op_contents)contents, absent);
	return 1;
}

static int64_t input_elements(const struct subject *s, const int64_t *axis)
{
	int64_t elements = 0;

	for (int i = 0; i < s->problem.input_count; i++)
		elements += s->problem.inputs[i].rank == OP_SCALAR ? 0 : job_tensor(&s->problem.inputs[i], axis).elements;
	return elements;
}

/* Runs the first small case, and every other small case that has few elements (FEW_ELEMENTS), with the first set of
 * input values. */
static void run_short_cases(struct subject *s)
{
	int axes = s->problem.axis_count;
	int64_t *rows = arena_array(&s->arena, (size_t)(SIZE_ROWS * axes + 1), sizeof *rows);

	for (int r = 0, count = s->op->sizes(&s->problem, s->variant, SIZE_SMALL, rows, SIZE_ROWS); r < count; r++)
		if (r == 0 || input_elements(s, rows + r * axes) <= FEW_ELEMENTS)
			run_case(s, rows + r * axes, CONTENTS_FIRST, 0);
}

static void run_cases(struct subject *s)
{
	int axes = s->problem.axis_count, ran = 0;
	int64_t *rows = arena_array(&s->arena, (size_t)(SIZE_ROWS * axes + 1), sizeof *rows);

	for (enum op_size size = SIZE_SMALL; size <= SIZE_MEDIUM; size++)
		for (int r = 0, count = s->op->sizes(&s->problem, s->variant, size, rows, SIZE_ROWS); r < count; r++) {
			const int64_t *axis = rows + r * axes;

			ran += run_sets(s, axis, size_runs(s->op, size, r, count), 0);
			for (int i = 0; i < s->problem.input_count && size == SIZE_SMALL && r == 0; i++)
				if (may_leave_out(s, axis, i))
					ran += run_sets(s, axis, JOB_RUNS_ALL, UINT32_C(1) << i);
		}
	printf("%s: %d cases\n", s->problem.name, ran);
	fflush(stdout);
}

static void run_definition(const struct dataset *dataset, const struct dataset_file *file, const char *family,
			   bool mistakes)
{
	struct subject s = {.mistakes = mistakes};
	struct buf bytes = {0};
	struct err err = {""};

	if (file_read(dataset->fd, file->path, DEFINITION_BYTES, &bytes, NULL, &err) != FILE_OK)
		fail(&s, file->path, err.text);
	const struct definition *definition =
	    definition_parse(file->path, file->op_type, file->name, bytes.data, bytes.length, &s.arena, &err);

	buf_free(&bytes);
	if (definition == NULL)
		fail(&s, file->path, err.text);
	s.problem = problem_of(definition, &s.arena);
	const struct op_entry *entry = op_find(&s.problem, &s.variant, &err);

	if (entry != NULL && strcmp(entry->op->name, family) == 0) {
		s.op = entry->op;
		if (mistakes)
			run_short_cases(&s);
		else
			run_cases(&s);
	}
	arena_free(&s.arena);
}

int main(int argc, char **argv)
{
	struct arena arena = {0};
	struct dataset dataset;
	struct err err = {""};

	if (argc < 2) {
		for (int i = 0; i < op_count; i++)
			puts(op_table[i].op->name);
		__gcov_reset();
		return 0;
	}
	if (dataset_scan(".", &arena, &dataset, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (int i = 0; i < dataset.definition_count; i++)
		run_definition(&dataset, &dataset.definitions[i], argv[1], argc > 2 && strcmp(argv[2], "--mistakes") == 0);
	dataset_close(&dataset);
	arena_free(&arena);
	__gcov_reset();
	return 0;
}
