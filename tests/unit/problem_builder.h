/* problem_builder - functions with which a test builds a problem in a few lines of C, and cases of the problem. The
 * family fills the inputs of a case and its oracle computes the expected outputs. The case also has memory for the
 * outputs that the test computes. */
#ifndef REFTEST_TESTS_BUILT_H
#define REFTEST_TESTS_BUILT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/compare_tensors.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/op.h"

/* --- problems ----------------------------------------------------------------------------------------------------- */

enum { MAX_AXES = 16, MAX_INPUTS = 12, MAX_ROWS = 8 };

struct built {
	struct op_axis axes[MAX_AXES];
	struct op_arg inputs[MAX_INPUTS], outputs[2];
	const char *tags[2];
	struct op_problem problem;
};

static inline void start_problem(struct built *b, const char *name, const char *op_type)
{
	memset(b, 0, sizeof *b);
	b->problem = (struct op_problem){.name = name,
	                                 .op_type = op_type,
	                                 .description = "",
	                                 .tags = b->tags,
	                                 .axes = b->axes,
	                                 .inputs = b->inputs,
	                                 .outputs = b->outputs};
}

/* Adds an axis of length `value`. If `value` is 0, adds a var axis. */
static inline int add_axis(struct built *b, const char *name, int64_t value)
{
	b->axes[b->problem.axis_count] = (struct op_axis){name, value == 0, value};
	return b->problem.axis_count++;
}

/* `shape` lists the names of the axes, separated by blanks. If `shape` is NULL, the argument is a Python scalar. */
static inline struct op_arg make_arg(const struct built *b, const char *name, enum dtype dtype, const char *shape)
{
	struct op_arg arg = {.name = name, .dtype = dtype, .rank = shape == NULL ? OP_SCALAR : 0};

	while (shape != NULL && *shape != '\0') {
		size_t length = strcspn(shape, " ");
		int axis = -1;

		for (int a = 0; a < b->problem.axis_count; a++)
			if (strlen(b->axes[a].name) == length && strncmp(b->axes[a].name, shape, length) == 0)
				axis = a;
		assert_true(axis >= 0);
		arg.axis[arg.rank++] = axis;
		shape += length + (shape[length] == ' ');
	}
	return arg;
}

static inline void add_input(struct built *b, const char *name, enum dtype dtype, const char *shape)
{
	b->inputs[b->problem.input_count++] = make_arg(b, name, dtype, shape);
}

static inline void add_output(struct built *b, const char *name, enum dtype dtype, const char *shape)
{
	b->outputs[b->problem.output_count++] = make_arg(b, name, dtype, shape);
}

static inline int input_named(const struct op_problem *problem, const char *name)
{
	int index = op_input_index(problem, name);

	assert_true(index >= 0);
	return index;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

struct world {
	struct op_case c;
	int64_t axis[MAX_AXES];
	struct tensor in[MAX_INPUTS], truth[2], answer[2];
	const struct op *op;
};

static inline struct tensor make_tensor(const struct op_case *c, const struct op_arg *arg)
{
	struct tensor t = {.dtype = arg->dtype, .rank = arg->rank, .elements = 1};

	for (int d = 0; d < arg->rank; d++)
		t.elements *= t.shape[d] = c->axis[arg->axis[d]];
	t.data = malloc((size_t)dtype_bytes(t.dtype, t.elements) + 1);
	assert_non_null(t.data);
	memset(t.data, 0xff, (size_t)dtype_bytes(t.dtype, t.elements));
	return t;
}

/* Allocates and fills the inputs, and allocates the outputs. Does not call the oracle. */
static inline void make_inputs_of(struct world *w, const struct op *op, const struct op_problem *problem,
				  const int64_t *axis, uint64_t seed, uint32_t given, int edge, enum op_contents states)
{
	struct err err = {""};

	memset(w, 0, sizeof *w);
	w->op = op;
	w->c.problem = problem;
	w->c.axis = w->axis;
	op_case_set_contents(&w->c, seed, states);
	w->c.given = given;
	w->c.edge = edge;
	memcpy(w->axis, axis, (size_t)problem->axis_count * sizeof *axis);
	w->c.variant = op->match(problem, &err);
	assert_string_equal(err.text, "");
	if (op->constants != NULL)
		w->c.constant_count = op->constants(problem, w->c.variant, w->c.constants);
	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == OP_SCALAR)
			w->c.scalar[i] = op->scalar(&w->c, i);
	for (int i = 0; i < problem->input_count; i++) {
		if (problem->inputs[i].rank == OP_SCALAR)
			continue;
		w->in[i] = make_tensor(&w->c, &problem->inputs[i]);
		assert_int_equal(op->fill(&w->c, i, &w->in[i], &err), 0);
	}
	for (int i = 0; i < problem->output_count; i++) {
		w->truth[i] = make_tensor(&w->c, &problem->outputs[i]);
		w->answer[i] = make_tensor(&w->c, &problem->outputs[i]);
	}
}

static inline void make_inputs(struct world *w, const struct op *op, const struct op_problem *problem,
                               const int64_t *axis, uint64_t seed, uint32_t given, int edge)
{
	make_inputs_of(w, op, problem, axis, seed, given, edge, CONTENTS_FIRST);
}

static inline void make_world_of(struct world *w, const struct op *op, const struct op_problem *problem,
				 const int64_t *axis, uint64_t seed, enum op_contents states)
{
	struct err err = {""};

	make_inputs_of(w, op, problem, axis, seed, 0, 0, states);
	assert_int_equal(op->check(&w->c, w->in, &err), 0);
	assert_int_equal(op->oracle(&w->c, w->in, w->truth, &err), 0);
}

static inline void make_world(struct world *w, const struct op *op, const struct op_problem *problem,
                              const int64_t *axis, uint64_t seed)
{
	make_world_of(w, op, problem, axis, seed, CONTENTS_FIRST);
}

static inline void free_world(struct world *w)
{
	for (int i = 0; i < MAX_INPUTS; i++)
		free(w->in[i].data);
	for (int i = 0; i < 2; i++) {
		free(w->truth[i].data);
		free(w->answer[i].data);
	}
}

static inline int rows_of(const struct op *op, const struct op_problem *problem, enum op_size size, int64_t *axis)
{
	struct err err = {""};
	int variant = op->match(problem, &err), rows;

	assert_string_equal(err.text, "");
	rows = op->sizes(problem, variant, size, axis, MAX_ROWS);
	assert_in_range(rows, 1, MAX_ROWS);
	return rows;
}

/* Returns true if w->answer passes. Decides as the judge does: with op.judge if the family has this function, else with
 * the elementwise tolerance rule of each output. */
static inline bool passes(const struct world *w, const char *what)
{
	bool passed = true;

	for (int i = 0; i < w->c.problem->output_count; i++) {
		struct rule rule = w->op->rule(&w->c, i);
		struct metrics metrics = {0};
		struct err why = {""};
		int judged = 0;

		if (w->op->judge != NULL)
			judged = w->op->judge(&w->c, i, w->in, &w->answer[i], &w->truth[i], &metrics, NULL, &why);
		assert_true(judged >= 0);
		if (judged == 0)
			compare_host(w->answer[i].data, w->truth[i].data, w->answer[i].dtype, w->answer[i].elements,
			             rule, &metrics);
		else
			assert_true(metrics.passed == (why.text[0] == '\0'));
		if (what != NULL && !metrics.passed)
			print_message("%s: seed %llu, output %d: margin %g, worst %g for %g at %lld %s\n", what,
			              (unsigned long long)w->c.seed, i, metrics.margin, metrics.worst[0].reference,
			              metrics.worst[0].ground_truth, (long long)metrics.worst[0].index, why.text);
		assert_false(metrics.zeros_would_pass);
		passed = passed && metrics.passed;
	}
	return passed;
}

#endif
