/* test_ranges - every op family states, for its default cases, the range of each input's values (op.range) and the
 * largest length of each var axis (op.reach). The test builds the cases of every starter definition on the host. The
 * values must reach both ends of each stated range. Every scalar must differ between the two sets of input values in at
 * least one case.
 *
 *   test_ranges FAMILY          tests only this family, and prints the reached values as TAP comments
 *   test_ranges --blocks ROOT   tests nothing; for each var axis of each definition of the dataset ROOT, prints a line
 *                               with the definition's name, the axis and the largest block size that the default cases
 *                               test (0: none) */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "dataset/dataset.h"
#include "dataset/definition_parse.h"
#include "engine/case_sizes.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/op.h"
#include "workers/protocol/job.h"

/* Only the first 8 MiB of a tensor are examined. Larger tensors are weights, whose values have the same distribution
 * everywhere. */
static const int64_t LOOKED_AT = 8 << 20;

/* A definition, and the values that its default cases have reached so far. */
struct subject {
	struct arena arena;
	const struct definition *definition;
	struct op_problem problem;
	const struct op *op;
	int variant;
	struct op_range found[OP_ARGS];
	double scalar[OP_ARGS][CONTENTS_COUNT]; /* the scalars of the current case */
	/* whether in some case the scalar differed between the two sets of input values */
	bool differed[OP_ARGS];
	int64_t *lengths;	/* for each case, the length of each axis */
	enum job_runs runs[2 * SIZE_ROWS]; /* the sets of input values on which the reference runs in each case */
	int64_t *most;		/* the largest length of each axis */
	int cases;
};

static const char *only; /* the family named on the command line; NULL: all families */
static int wrong;

static void complain(const struct subject *s, const char *what, const char *name, double wanted, double found)
{
	wrong++;
	print_message("# %s (%s): %s of %s should be %g, and the default cases reach %g\n", s->problem.name, s->op->name, what,
	              name, wanted, found);
}

static void reach(struct op_range *range, double value)
{
	if (!isfinite(value))
		return;
	range->least = value < range->least ? value : range->least;
	range->most = value > range->most ? value : range->most;
}

static void fill_and_look(struct subject *s, const struct op_case *c, int input)
{
	struct tensor tensor = job_tensor(&s->problem.inputs[input], c->axis);
	int64_t bytes = job_tensor_bytes(&tensor), looked;
	struct err err = {""};

	if (s->op->fill == NULL || bytes == 0)
		return;
	tensor.data = aligned_alloc(256, ((size_t)bytes + 255) / 256 * 256);
	assert_non_null(tensor.data);
	memset(tensor.data, 0, (size_t)bytes);
	if (s->op->fill(c, input, &tensor, &err) != 0)
		fail_msg("%s, input %s: %s", s->problem.name, s->problem.inputs[input].name, err.text);
	looked = bytes > LOOKED_AT ? tensor.elements * LOOKED_AT / bytes : tensor.elements;
	for (int64_t i = 0; i < looked; i++)
		reach(&s->found[input], dtype_load(tensor.data, tensor.dtype, i));
	free(tensor.data);
}

static void look_at_case(struct subject *s, const int64_t *axis, enum op_contents contents)
{
	struct op_case c = {.problem = &s->problem, .variant = s->variant, .axis = axis};

	op_case_set_contents(&c, 0, contents);
	if (s->op->constants != NULL)
		c.constant_count = s->op->constants(&s->problem, s->variant, c.constants);
	for (int i = 0; i < c.constant_count; i++)
		if (isnan(c.constants[i].value))
			c.constants[i].value = 1e-6;
	for (int i = 0; i < s->problem.input_count; i++)
		if (s->problem.inputs[i].rank == OP_SCALAR && s->op->scalar != NULL) {
			c.scalar[i] = s->op->scalar(&c, i);
			s->scalar[i][contents] = c.scalar[i];
			reach(&s->found[i], c.scalar[i]);
		}
	for (int i = 0; i < s->problem.input_count; i++)
		if (s->problem.inputs[i].rank != OP_SCALAR)
			fill_and_look(s, &c, i);
}

/* Returns true if the scalar differs between the two sets of input values in case `c` or an earlier one, and the
 * reference runs on both sets there. Before the last case, always returns true, because a later case may have different
 * values. One such case is enough: if the scalar differed in every case, no case would reveal a reference that caches
 * its result by the scalar. */
static bool differs(struct subject *s, int input, int c)
{
	bool both = job_runs_on(s->runs[c], CONTENTS_FIRST) && job_runs_on(s->runs[c], CONTENTS_SECOND);

	if (both && s->scalar[input][0] != s->scalar[input][1])
		s->differed[input] = true;
	return s->differed[input] || c < s->cases - 1;
}

/* Collects the lengths of the axes in all default cases. */
static void gather_lengths(struct subject *s)
{
	size_t axes = (size_t)s->problem.axis_count;

	s->lengths = arena_array(&s->arena, SIZE_ROWS * (axes + 1) * 2, sizeof *s->lengths);
	s->most = arena_array(&s->arena, axes + 1, sizeof *s->most);
	for (enum op_size size = SIZE_SMALL; size <= SIZE_MEDIUM; size++) {
		int count = size_rows(s->op, s->variant, &s->problem, s->definition, size, s->lengths + (size_t)s->cases * axes);

		for (int i = 0; i < count; i++)
			s->runs[s->cases++] = size_runs(s->op, size, i, count);
	}
	for (int i = 0; i < s->cases; i++)
		for (size_t a = 0; a < axes; a++)
			if (s->lengths[(size_t)i * axes + a] > s->most[a])
				s->most[a] = s->lengths[(size_t)i * axes + a];
}

static void look_at_cases(struct subject *s)
{
	for (int i = 0; i < s->problem.input_count; i++)
		s->found[i] = (struct op_range){DBL_MAX, -DBL_MAX};
	for (int c = 0; c < s->cases; c++) {
		for (int contents = 0; contents < CONTENTS_COUNT; contents++)
			if (job_runs_on(s->runs[c], (enum op_contents)contents))
				look_at_case(s, s->lengths + c * s->problem.axis_count, (enum op_contents)contents);
		for (int i = 0; i < s->problem.input_count; i++)
			if (s->problem.inputs[i].rank == OP_SCALAR && !differs(s, i, c))
				complain(s, "the second value", s->problem.inputs[i].name, NAN, s->scalar[i][1]);
	}
}

/* Returns true if in some case the length of the axis is at least `block`, and is `rest` more than a multiple of
 * `block`. */
static bool has_length(const struct subject *s, int axis, int64_t block, int64_t rest)
{
	for (int i = 0; i < s->cases; i++) {
		int64_t length = s->lengths[i * s->problem.axis_count + axis];

		if (length >= block && length % block == rest)
			return true;
	}
	return false;
}

/* If an axis is processed in blocks, its length must be a multiple of the block size in one case, and one more than a
 * multiple in another case. */
static void check_blocks(const struct subject *s, int axis, int64_t block)
{
	for (int64_t rest = 0; block > 0 && rest < 2; rest++)
		if (!has_length(s, axis, block, rest))
			complain(s, rest == 0 ? "a multiple of the block size" : "one more than a multiple of the block size",
			         s->problem.axes[axis].name, (double)block, NAN);
}

/* Returns the largest block size that the cases test: the length of the axis is a multiple of the block size in one
 * case, and one more than a multiple in another case. It is smaller than op_reach.block if the definition's constraints
 * exclude lengths that the family would choose. */
static int64_t block_of_cases(const struct subject *s, int axis)
{
	int64_t block = s->op->reach(&s->problem, s->variant, axis).block > 0 ? 256 : 0;

	while (block > 1 && !(has_length(s, axis, block, 0) && has_length(s, axis, block, 1)))
		block /= 2;
	return block;
}

static void check_ranges(struct subject *s)
{
	for (int i = 0; i < s->problem.input_count; i++) {
		struct op_range claimed;
		const char *name = s->problem.inputs[i].name;

		if (only != NULL)
			print_message("# %s: %s reaches %g … %g\n", s->problem.name, name, s->found[i].least, s->found[i].most);
		if (!s->op->range(&s->problem, s->variant, i, &claimed))
			continue;
		if (s->found[i].least > claimed.least)
			complain(s, "the least", name, claimed.least, s->found[i].least);
		if (s->found[i].most < claimed.most)
			complain(s, "the most", name, claimed.most, s->found[i].most);
	}
	for (int a = 0; a < s->problem.axis_count; a++) {
		if (!s->problem.axes[a].var)
			continue;
		if (only != NULL)
			print_message("# %s: axis %s reaches %lld\n", s->problem.name, s->problem.axes[a].name, (long long)s->most[a]);
		struct op_reach claimed = s->op->reach(&s->problem, s->variant, a);

		check_blocks(s, a, claimed.block);
		if (s->most[a] < claimed.most)
			complain(s, "the most", s->problem.axes[a].name, (double)claimed.most, (double)s->most[a]);
	}
}

/* Loads a definition and finds its op. Sets s->op to NULL if no op family supports the definition. */
static void load_subject(const struct dataset *dataset, const struct dataset_file *file, struct subject *s)
{
	struct buf bytes = {0};
	struct err err = {""};

	if (file_read(dataset->fd, file->path, DEFINITION_BYTES, &bytes, NULL, &err) != FILE_OK)
		fail_msg("%s", err.text);
	s->definition =
	    definition_parse(file->path, file->op_type, file->name, bytes.data, bytes.length, &s->arena, &err);
	buf_free(&bytes);
	assert_non_null(s->definition);
	s->problem = problem_of(s->definition, &s->arena);
	const struct op_entry *entry = op_find(&s->problem, &s->variant, &err);

	s->op = entry != NULL ? entry->op : NULL;
}

static void check_definition(const struct dataset *dataset, const struct dataset_file *file)
{
	struct subject s = {0};

	load_subject(dataset, file, &s);
	if (s.op != NULL && s.op->judge_both != NULL && s.op->medium_runs == LAST_MEDIUM_RUNS_TWICE) {
		wrong++;
		print_message("# %s: op.judge_both needs both sets of input values in each case\n", s.op->name);
	}
	if (s.op != NULL && (only == NULL || strcmp(only, s.op->name) == 0)) {
		if (s.op->range == NULL || s.op->reach == NULL) {
			wrong++;
			print_message("# %s: the family states no ranges\n", s.op->name);
		} else {
			gather_lengths(&s);
			look_at_cases(&s);
			check_ranges(&s);
		}
	}
	arena_free(&s.arena);
}

static void print_blocks(const struct dataset *dataset, const struct dataset_file *file)
{
	struct subject s = {0};

	load_subject(dataset, file, &s);
	if (s.op != NULL)
		gather_lengths(&s);
	for (int a = 0; s.op != NULL && a < s.problem.axis_count; a++)
		if (s.problem.axes[a].var)
			printf("%s %s %lld\n", file->name, s.problem.axes[a].name, (long long)block_of_cases(&s, a));
	arena_free(&s.arena);
}

/* Calls `visit` for each definition of the dataset. */
static void each_definition(const char *root, void (*visit)(const struct dataset *, const struct dataset_file *))
{
	struct arena arena = {0};
	struct dataset dataset;
	struct err err = {""};

	if (dataset_scan(root, &arena, &dataset, &err) != 0)
		fail_msg("%s", err.text);
	assert_true(dataset.definition_count > 0);
	for (int i = 0; i < dataset.definition_count; i++)
		visit(&dataset, &dataset.definitions[i]);
	dataset_close(&dataset);
	arena_free(&arena);
}

static void default_cases_reach_what_families_state(void **state)
{
	(void)state;
	each_definition(".", check_definition);
	assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(default_cases_reach_what_families_state)};

	if (argc == 3 && strcmp(argv[1], "--blocks") == 0) {
		each_definition(argv[2], print_blocks);
		return 0;
	}
	only = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
