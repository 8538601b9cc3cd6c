/* trial - one case of an op family in a unit test. The family fills the inputs, its oracle computes the ground truth,
 * and the test writes the outputs of an emulated reference. Every tensor has an allocation of its own, so that the
 * sanitizers detect an access beyond its end. */
#ifndef REFTEST_TESTS_TRIAL_H
#define REFTEST_TESTS_TRIAL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "kernels/core/compare_tensors.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"
#include "tests/unit/seeds.h"

enum { TRIAL_AXES = 16, TRIAL_ROWS = 4 };

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))
#define PROBLEM(name_, type, axes_, inputs_, outputs_)                                                               \
	{                                                                                                            \
		.name = name_, .op_type = type, .description = "", .axes = axes_, .axis_count = COUNT(axes_),        \
		.inputs = inputs_, .input_count = COUNT(inputs_), .outputs = outputs_, .output_count = COUNT(outputs_) \
	}

struct trial {
	const struct op *op;
	const struct op_problem *problem;
	int64_t axis[TRIAL_AXES];
	struct op_case c;
	/* `truth` and `out` hold the outputs. If the op writes to an input (op.in_place), they also hold the final
	 * value of this input, at index op_own_place. */
	struct tensor in[OP_ARGS], truth[OP_PLACES], out[OP_PLACES];
};

static inline struct tensor trial_tensor(const struct op_arg *arg, const int64_t *axis)
{
	struct tensor tensor = {.dtype = arg->dtype, .rank = arg->rank, .elements = 1};

	if (arg->rank == OP_SCALAR)
		return tensor;
	for (int d = 0; d < arg->rank; d++)
		tensor.elements *= tensor.shape[d] = axis[arg->axis[d]];
	size_t bytes = (size_t)dtype_bytes(tensor.dtype, tensor.elements);

	tensor.data = malloc(bytes > 0 ? bytes : 1);
	assert_non_null(tensor.data);
	memset(tensor.data, 0xff, bytes);
	return tensor;
}

/* Returns true if `truth` includes the final value of this input. In this case, a test that emulates a reference must
 * store the final value of the input in out[op_own_place(...)]. */
static inline bool trial_own(const struct trial *t, int input)
{
	return t->op->in_place != NULL && t->op->in_place(&t->c, input).place >= t->problem->output_count;
}

/* Allocates tensors for the final value of an input, in `truth` and `out`. The tensor in `out` is initialised with the
 * value that the input has before the call. */
static inline void trial_open_own(struct trial *t, int input)
{
	int place = op_own_place(t->problem, input);

	t->truth[place] = trial_tensor(&t->problem->inputs[input], t->axis);
	t->out[place] = trial_tensor(&t->problem->inputs[input], t->axis);
	memcpy(t->out[place].data, t->in[input].data,
	       (size_t)dtype_bytes(t->in[input].dtype, t->in[input].elements));
}

/* Fills the inputs of a case and computes its truth; the outputs get a fill value that no test expects. `axis` has the
 * lengths of the axes, and `edge` is the value of op_case.edge. */
static inline void trial_open_case(struct trial *t, const struct op *op, const struct op_problem *problem,
                                   const int64_t *axis, int edge, uint64_t seed)
{
	struct err err = {""};

	*t = (struct trial){.op = op, .problem = problem};
	memcpy(t->axis, axis, (size_t)problem->axis_count * sizeof *axis);
	t->c = (struct op_case){.problem = problem, .axis = t->axis, .seed = seed, .edge = edge};
	t->c.variant = op->match(problem, &err);
	if (t->c.variant < 0)
		fail_msg("%s", err.text);
	if (op->constants != NULL)
		t->c.constant_count = op->constants(problem, t->c.variant, t->c.constants);
	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == OP_SCALAR)
			t->c.scalar[i] = op->scalar(&t->c, i);
	for (int i = 0; i < problem->input_count; i++) {
		t->in[i] = trial_tensor(&problem->inputs[i], axis);
		if (t->in[i].rank != OP_SCALAR && op->fill(&t->c, i, &t->in[i], &err) != 0)
			fail_msg("%s", err.text);
	}
	for (int i = 0; i < problem->output_count; i++) {
		t->truth[i] = trial_tensor(&problem->outputs[i], axis);
		t->out[i] = trial_tensor(&problem->outputs[i], axis);
	}
	for (int i = 0; i < problem->input_count; i++)
		if (trial_own(t, i))
			trial_open_own(t, i);
	if (op->oracle(&t->c, t->in, t->truth, &err) != 0)
		fail_msg("%s", err.text);
}

static inline void trial_open(struct trial *t, const struct op *op, const struct op_problem *problem,
                              const int64_t *axis, uint64_t seed)
{
	trial_open_case(t, op, problem, axis, 0, seed);
}

/* Opens the edge case with this name. Returns false if the problem has no such case. */
static inline bool trial_open_edge(struct trial *t, const struct op *op, const struct op_problem *problem,
                                   const char *name, uint64_t seed)
{
	int64_t axis[TRIAL_AXES];
	int variant = op->match(problem, NULL);

	for (int i = 0; op->edges[i].name != NULL; i++)
		if (strcmp(op->edges[i].name, name) == 0) {
			if (!op->edge_axes(problem, variant, i + 1, axis))
				return false;
			trial_open_case(t, op, problem, axis, i + 1, seed);
			return true;
		}
	fail_msg("%s has no edge '%s'", op->name, name);
	return false;
}

/* Opens case number `row` of a size preset. Returns false if the preset has fewer cases. */
static inline bool trial_open_size(struct trial *t, const struct op *op, const struct op_problem *problem,
                                   enum op_size size, int row, uint64_t seed)
{
	int64_t axis[TRIAL_ROWS * TRIAL_AXES];
	struct err err = {""};
	int variant = op->match(problem, &err);

	if (variant < 0)
		fail_msg("%s", err.text);
	if (row >= op->sizes(problem, variant, size, axis, TRIAL_ROWS))
		return false;
	trial_open(t, op, problem, axis + row * problem->axis_count, seed);
	return true;
}

static inline void *trial_copy_of(const struct tensor *tensor)
{
	size_t bytes = (size_t)dtype_bytes(tensor->dtype, tensor->elements);
	void *copy = tensor->data == NULL ? NULL : malloc(bytes > 0 ? bytes : 1);

	assert_true(copy != NULL || tensor->data == NULL);
	if (copy != NULL)
		memcpy(copy, tensor->data, bytes);
	return copy;
}

/* Opens the case of `first` again. Copies the inputs and the truth of `first`, because computing them again takes
 * longer. */
static inline void trial_open_again(struct trial *t, const struct trial *first)
{
	*t = *first;
	t->c.axis = t->axis;
	for (int i = 0; i < OP_ARGS; i++)
		t->in[i].data = trial_copy_of(&first->in[i]);
	for (int i = 0; i < OP_PLACES; i++) {
		t->truth[i].data = trial_copy_of(&first->truth[i]);
		t->out[i].data = NULL;
	}
	for (int i = 0; i < t->problem->output_count; i++)
		t->out[i] = trial_tensor(&t->problem->outputs[i], t->axis);
	for (int i = 0; i < t->problem->input_count; i++)
		if (trial_own(t, i))
			t->out[op_own_place(t->problem, i)].data = trial_copy_of(&t->in[i]);
}

static inline void trial_close(struct trial *t)
{
	for (int i = 0; i < OP_PLACES; i++) {
		if (i < OP_ARGS)
			free(t->in[i].data);
		free(t->truth[i].data);
		free(t->out[i].data);
	}
}

/* Returns true if the input may stay unchanged (op.in_place returns may_keep), and the emulated reference leaves it
 * unchanged. */
static inline bool trial_is_kept(const struct trial *t, int input)
{
	return input >= 0 && t->op->in_place(&t->c, input).may_keep &&
	       memcmp(t->out[op_own_place(t->problem, input)].data, t->in[input].data,
	              (size_t)dtype_bytes(t->in[input].dtype, t->in[input].elements)) == 0;
}

/* Returns true if this output is within the family's tolerance rule, or if the family's own op.judge accepts it. For
 * `evidence`, see op.judge. */
static inline bool trial_judge_for_both(const struct trial *t, int output, struct metrics *metrics, double *evidence,
					struct err *why)
{
	const struct tensor *truth = &t->truth[output];
	int judged = 0;

	memset(metrics, 0, sizeof *metrics);
	why->text[0] = '\0';
	if (trial_is_kept(t, output - t->problem->output_count))
		return true;
	if (t->op->judge != NULL && output < t->problem->output_count)
		judged = t->op->judge(&t->c, output, t->in, &t->out[output], truth, metrics, evidence, why);
	if (judged < 0)
		fail_msg("%s", why->text);
	if (judged == 0)
		compare_host(t->out[output].data, truth->data, truth->dtype, truth->elements,
		             t->op->rule(&t->c, output), metrics);
	return metrics->passed;
}

static inline bool trial_judge(const struct trial *t, int output, struct metrics *metrics, struct err *why)
{
	return trial_judge_for_both(t, output, metrics, NULL, why);
}

static inline bool trial_passes(const struct trial *t)
{
	struct metrics metrics;
	struct err why;
	bool passed = true;

	for (int i = 0; i < OP_PLACES; i++)
		passed &= t->truth[i].data == NULL || trial_judge(t, i, &metrics, &why);
	return passed;
}

/* Returns true if a reference that returns only zeros would pass. */
static inline bool trial_weak(const struct trial *t)
{
	struct metrics metrics;
	struct err why;
	bool weak = true;

	for (int i = 0; i < t->problem->output_count; i++) {
		trial_judge(t, i, &metrics, &why);
		weak &= metrics.zeros_would_pass;
	}
	return weak;
}

/* Asserts that a correct reference passes. If a correct reference fails, prints which output fails and where. */
static inline void trial_assert_passes(const struct trial *t)
{
	for (int i = 0; i < OP_PLACES; i++) {
		int outputs = t->problem->output_count;
		struct metrics metrics;
		struct err why;

		if (t->truth[i].data != NULL && !trial_judge(t, i, &metrics, &why))
			fail_msg(
			    "%s, '%s', seed %llu: margin %g; first of the worst: [%lld] %.9g, truth %.9g. %s",
			    t->problem->name,
			    i < outputs ? t->problem->outputs[i].name : t->problem->inputs[i - outputs].name,
			    (unsigned long long)t->c.seed,
			    metrics.margin, (long long)metrics.worst[0].index, metrics.worst[0].reference,
			    metrics.worst[0].ground_truth, why.text);
	}
}

/* get returns an element of a tensor as a float. set stores a float, rounded to the tensor's dtype. */
static inline float get(const struct tensor *tensor, int64_t index)
{
	return (float)dtype_load(tensor->data, tensor->dtype, index);
}

static inline void set(struct tensor *tensor, int64_t index, float value)
{
	dtype_store(tensor->data, tensor->dtype, index, (double)value);
}

/* Makes one of two mistakes that every family tests: all outputs are zeros, or each output has a NaN in its middle. */
static inline void trial_spoil(struct trial *t, bool all_zero, bool one_nan)
{
	for (int o = 0; o < t->problem->output_count; o++) {
		if (all_zero)
			memset(t->out[o].data, 0, (size_t)dtype_bytes(t->out[o].dtype, t->out[o].elements));
		if (one_nan && t->out[o].elements > 0)
			set(&t->out[o], t->out[o].elements / 2, NAN);
	}
}

/* Asserts that the family rejects the problem, with a message that contains `part`. */
static inline void assert_refused(const struct op *op, const struct op_problem *problem, const char *part)
{
	struct err why = {""};

	assert_int_equal(op->match(problem, &why), -1);
	if (strstr(why.text, part) == NULL)
		fail_msg("'%s' does not mention '%s'", why.text, part);
}

/* Asserts that filling the same case twice gives the same bytes, and that another seed changes at least one input. */
static inline void assert_inputs_follow_the_seed(const struct op *op, const struct op_problem *problem,
                                                 enum op_size size)
{
	struct trial a, b, other;
	bool same = true;

	assert_true(trial_open_size(&a, op, problem, size, 0, 7));
	assert_true(trial_open_size(&b, op, problem, size, 0, 7));
	assert_true(trial_open_size(&other, op, problem, size, 0, 8));
	for (int i = 0; i < problem->input_count; i++) {
		size_t bytes = (size_t)dtype_bytes(a.in[i].dtype, a.in[i].elements);

		if (a.in[i].rank == OP_SCALAR)
			continue;
		assert_memory_equal(a.in[i].data, b.in[i].data, bytes);
		same &= memcmp(a.in[i].data, other.in[i].data, bytes) == 0;
	}
	assert_false(same);
	trial_close(&a);
	trial_close(&b);
	trial_close(&other);
}

/* Updates the digest `hex` with the inputs of the case. */
static inline void trial_digest_case(const struct trial *t, char hex[DIGEST_HEX])
{
	char both[2 * DIGEST_HEX];
	struct digest digest;

	for (int i = 0; i < t->problem->input_count; i++) {
		digest = t->in[i].rank == OP_SCALAR
			     ? digest_of(&t->c.scalar[i], sizeof t->c.scalar[i])
			     : digest_of(t->in[i].data, (size_t)dtype_bytes(t->in[i].dtype, t->in[i].elements));
		strcpy(both, hex);
		digest_hex(&digest, both + strlen(hex));
		digest = digest_of(both, strlen(both));
		digest_hex(&digest, hex);
	}
}

/* Asserts that the inputs of the default sizes and of every edge case have the digest `wanted`. No bit may change,
 * because other programs generate the same inputs: the kernels on a GPU, and the versions of reftest whose verdicts are
 * cached. */
static inline void assert_inputs_are(const struct op *op, const struct op_problem *problem, const char *wanted)
{
	char hex[DIGEST_HEX] = "";
	struct trial t;

	for (int size = SIZE_SMALL; size <= SIZE_MEDIUM; size++)
		for (int row = 0; trial_open_size(&t, op, problem, (enum op_size)size, row, 7); row++) {
			trial_digest_case(&t, hex);
			trial_close(&t);
		}
	for (int i = 0; op->edges[i].name != NULL; i++)
		if (trial_open_edge(&t, op, problem, op->edges[i].name, 7)) {
			trial_digest_case(&t, hex);
			trial_close(&t);
		}
	if (strcmp(hex, wanted) != 0)
		fail_msg("%s: the inputs have changed: \"%s\"", problem->name, hex);
}

/* A mistake that a family's test plants into its reference. */
struct planted_mistake {
	int mistake; /* the mistake that the family's `run` makes */
	const char *name;
	uint32_t problems; /* bit p is set if the mistake changes the outputs of problem p, so that this problem must fail */
};

/* Asserts that each planted mistake fails in the first medium case of its problems, with `seeds` seeds. */
static inline void assert_mistakes_fail(const struct op *op, const struct op_problem *problems, int problem_count,
                                        const struct planted_mistake *mistakes, int mistake_count, uint64_t seeds,
                                        void (*run)(struct trial *t, int mistake))
{
	for (int p = 0; p < problem_count; p++)
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			struct trial first, t;
			int ran = 0;

			assert_true(trial_open_size(&first, op, &problems[p], SIZE_MEDIUM, 0, seed));
			for (int m = 0; m < mistake_count; m += MISTAKE_STEP) {
				if (!(mistakes[m].problems >> p & 1))
					continue;
				trial_open_again(&t, &first);
				run(&t, mistakes[m].mistake);
				if (trial_passes(&t))
					fail_msg("%s: '%s' passes with seed %llu", problems[p].name, mistakes[m].name,
					         (unsigned long long)seed);
				trial_close(&t);
				ran++;
			}
			trial_close(&first);
			assert_true(ran > 0);
		}
}

/* Asserts that the correct reference `right` passes in every edge case of the problem, for MANY_SEEDS seeds. Returns the
 * number of edge cases. */
static inline int assert_edges_pass(const struct op *op, const struct op_problem *problem,
				    void (*right)(struct trial *t))
{
	int count = 0;

	for (int i = 0; op->edges[i].name != NULL; i++)
		for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
			struct trial t;

			assert_true(op->edges[i].convention[0] != '\0' && i < OP_EDGES);
			if (!trial_open_edge(&t, op, problem, op->edges[i].name, seed))
				continue;
			right(&t);
			trial_assert_passes(&t);
			trial_close(&t);
			count += seed == 0;
		}
	return count;
}

/* Calls assert_edges_pass for each of the `count` problems. edges[p] is the number of edge cases that problem p must
 * have. */
static inline void assert_all_edges_pass(const struct op *op, const struct op_problem *problems, const int *edges,
					 int count, void (*right)(struct trial *t))
{
	for (int p = 0; p < count; p++)
		assert_int_equal(assert_edges_pass(op, &problems[p], right), edges[p]);
}

/* Emulates the reference, with one of the mistakes that the test defines. */
typedef void trial_play(struct trial *t, int mistake);

enum { TRIAL_END = -1 };

/* `ways` lists correct ways to compute the outputs, up to TRIAL_END. Asserts that a reference passes in each of these
 * ways, for every size and seed, and that outputs of only zeros would not pass. */
static inline void assert_right_passes(const struct op *op, const struct op_problem *problem, int seeds, trial_play *play,
				       const int *ways)
{
	for (int seed = 0; seed < seeds; seed++)
		for (int size = SIZE_SMALL; size <= SIZE_MEDIUM; size++) {
			struct trial t;

			for (int row = 0;
			     trial_open_size(&t, op, problem, (enum op_size)size, row, (uint64_t)seed); row++) {
				assert_false(trial_weak(&t));
				for (const int *way = ways; *way != TRIAL_END; way++) {
					play(&t, *way);
					trial_assert_passes(&t);
				}
				trial_close(&t);
			}
		}
}

/* Asserts that with this seed, a reference with the mistake fails in at least one case of the default sizes. */
static inline void assert_mistake_caught(const struct op *op, const struct op_problem *problem, uint64_t seed,
					 trial_play *play, int mistake)
{
	bool caught = false;
	struct trial t;

	for (int size = SIZE_SMALL; size <= SIZE_MEDIUM && !caught; size++)
		for (int row = 0; !caught && trial_open_size(&t, op, problem, (enum op_size)size, row, seed); row++) {
			play(&t, mistake);
			caught = !trial_passes(&t);
			trial_close(&t);
		}
	if (!caught)
		fail_msg("%s: mistake %d passes with seed %llu", problem->name, mistake, (unsigned long long)seed);
}

/* Asserts that a reference with the mistake passes in the first small and the first medium case of the problem, and
 * fails in the edge case with this name. */
static inline void assert_wrong_there_alone(const struct op *op, const struct op_problem *problem, trial_play *play,
					    int mistake, const char *edge)
{
	struct trial t;

	for (int size = SIZE_SMALL; size <= SIZE_MEDIUM; size++) {
		assert_true(trial_open_size(&t, op, problem, (enum op_size)size, 0, 1));
		play(&t, mistake);
		trial_assert_passes(&t);
		trial_close(&t);
	}
	assert_true(trial_open_edge(&t, op, problem, edge, 1));
	play(&t, mistake);
	if (trial_passes(&t))
		fail_msg("%s: a reference that is wrong only in this edge case passes", edge);
	trial_close(&t);
}

/* A mistake that shows only in one edge case of a problem. */
struct edge_mistake {
	int mistake;
	const char *edge;
	int problem; /* an index into the problems of the test */
};

static inline void assert_each_wrong_there_alone(const struct op *op, const struct op_problem *problems, trial_play *play,
						 const struct edge_mistake *wrong, int count)
{
	for (int i = 0; i < count; i++)
		assert_wrong_there_alone(op, &problems[wrong[i].problem], play, wrong[i].mistake, wrong[i].edge);
}

/* Opens a medium case as if a workload provided all its tensors. op.check must accept this case. Then sets element `at`
 * of input `input` to `value`; a negative `at` counts from the end. Returns the result of op.check, and its message in
 * `why`. */
static inline int trial_open_brought(struct trial *t, const struct op *op, const struct op_problem *problem, int input,
				     int64_t at, double value, struct err *why)
{
	assert_true(trial_open_size(t, op, problem, SIZE_MEDIUM, 0, 1));
	t->c.given = UINT32_MAX;
	if (op->check(&t->c, t->in, why) != 0)
		fail_msg("%s: rejected although it is valid: %s", problem->name, why->text);
	dtype_store(t->in[input].data, t->in[input].dtype, at < 0 ? t->in[input].elements + at : at, value);
	return op->check(&t->c, t->in, why);
}

/* Opens a case with trial_open_brought, which changes one element of an input. Asserts that op.check rejects the
 * changed case with a message that contains `part`, or accepts it if `part` is NULL. Also runs the oracle, which must
 * read nothing out of bounds; the sanitizers check this. */
static inline void assert_brought(const struct op *op, const struct op_problem *problem, int input, int64_t at,
                                  double value, const char *part)
{
	struct err why = {""};
	struct trial t;
	bool refused = trial_open_brought(&t, op, problem, input, at, value, &why) != 0;

	if (refused != (part != NULL) || (refused && strstr(why.text, part) == NULL))
		fail_msg("%s, input '%s' = %g at %lld: \"%s\", expected %s%s", problem->name,
		         problem->inputs[input].name, value, (long long)at, why.text, part != NULL ? "… " : "no word",
		         part != NULL ? part : "");
	assert_int_equal(op->oracle(&t.c, t.in, t.truth, &why), 0);
	trial_passes(&t);
	trial_close(&t);
}

#endif
