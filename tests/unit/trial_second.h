/* trial_second - builds the inputs, the truth and the outputs of an opened case again, with the second set of input
 * values. */
#ifndef REFTEST_TESTS_TRIAL_SECOND_H
#define REFTEST_TESTS_TRIAL_SECOND_H

#include "tests/unit/trial.h"

static inline void trial_take_second(struct trial *t)
{
	struct err err = {""};

	op_case_set_contents(&t->c, t->c.seed, CONTENTS_SECOND);
	for (int i = 0; i < t->problem->input_count; i++)
		if (t->problem->inputs[i].rank == OP_SCALAR)
			t->c.scalar[i] = t->op->scalar(&t->c, i);
	for (int i = 0; i < t->problem->input_count; i++)
		if (t->in[i].rank != OP_SCALAR && t->op->fill(&t->c, i, &t->in[i], &err) != 0)
			fail_msg("%s", err.text);
	if (t->op->oracle(&t->c, t->in, t->truth, &err) != 0)
		fail_msg("%s", err.text);
}

/* Asserts that a correct reference also passes with the second set of input values, for every size and seed. `run`
 * emulates the reference in the way `way`. */
static inline void assert_right_passes_second(const struct op *op, const struct op_problem *problem, int seeds,
                                              void (*run)(struct trial *, int), int way)
{
	for (uint64_t seed = 0; seed < (uint64_t)seeds; seed++)
		for (int size = SIZE_SMALL; size <= SIZE_MEDIUM; size++) {
			struct trial t;

			for (int row = 0; trial_open_size(&t, op, problem, (enum op_size)size, row, seed); row++) {
				trial_take_second(&t);
				run(&t, way);
				trial_assert_passes(&t);
				trial_close(&t);
			}
		}
}

#endif
