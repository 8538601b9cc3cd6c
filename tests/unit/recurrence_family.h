/* recurrence_family - the checks that each of the families gla, simple_gla, delta_rule, gated_delta_rule and kda must
 * pass. A family's own test file lists its problems, the mistakes that can be made in its references, and the problems
 * and inputs that it rejects. */
#ifndef REFTEST_TESTS_RECURRENCE_FAMILY_H
#define REFTEST_TESTS_RECURRENCE_FAMILY_H

#include "tests/unit/recurrence_world.h"

/* Groups of mistakes. Each group is for one kind of family: OF_DELTA, for example, is for families with a delta
 * rule. */
#define OF_GATES                                                                                                     \
	DECAY_LEFT_OUT, DECAY_NO_EXPONENTIAL, DECAY_BY_2, DECAY_2_PERCENT, DECAY_AFTER_LEARNING, DECAY_OF_THE_FIRST_HEAD
#define OF_KEY_GATES OF_GATES, DECAY_OF_THE_FIRST_KEY, DECAY_OF_THE_TOKEN_BEFORE
#define OF_SOFTPLUS SOFTPLUS_LEFT_OUT, SOFTPLUS_OVERFLOWS, BIAS_LEFT_OUT, RATE_LEFT_OUT, RATE_WITHOUT_EXPONENTIAL
#define OF_DELTA                                                                                                     \
	NOTHING_ERASED, STRENGTH_LEFT_OUT, STRENGTH_2_PERCENT, STRENGTH_ON_VALUE_ALONE, RECALLED_UNDER_QUERY
#define OF_PACKING OFFSETS_IGNORED, RUNS_ON
#define OF_NORMS NORM_LEFT_OUT, NORM_OF_QUERY_LEFT_OUT

struct family_problem {
	struct op_problem problem;
	const char *inputs; /* expected digest of the inputs (assert_inputs_are) */
	int edges;          /* number of --edge cases of the problem */
	/* the mistakes that only this family can have, ended by NONE; the mistakes of all families are tested
	 * separately */
	enum mistake mistakes[24];
};

/* A problem that op.match rejects with a message that contains `part`. */
struct refused {
	struct op_problem problem;
	const char *part;
};

struct family {
	const struct op *op;
	const struct family_problem *problems;
	int count;
	int packed; /* the index of a problem with cu_seqlens and an optional state, for tests in which a workload
		     * provides the tensors */
	const struct refused *refused;
	int refused_count;
	/* spoil_scalar sets a Python scalar of problem number `scalar_of` to an invalid value. op.check must then
	 * reject the case with a message that contains `scalar_part`. spoil_scalar is NULL if every value of the
	 * family's Python scalars is valid. */
	void (*spoil_scalar)(struct trial *t, const struct recurrence_roles *roles);
	int scalar_of;
	const char *scalar_part;
};

static inline void right_recurrent(struct trial *t)
{
	play_recurrent(t, NONE);
}

static inline void right_chunked(struct trial *t)
{
	play_chunked(t, NONE);
}

/* --- correct references and mistakes ------------------------------------------------------------------------------ */

static inline void correct_references_pass_in_both_forms(void **state)
{
	static const int right[] = {NONE, TRIAL_END};
	const struct family *family = *state;

	for (int p = 0; p < family->count; p++) {
		assert_right_passes(family->op, &family->problems[p].problem, MANY_SEEDS, play_recurrent, right);
		assert_right_passes(family->op, &family->problems[p].problem, SEEDS_OR_ONE(3), play_chunked, right);
	}
}

/* Returns true if a mistake that is common to all families is possible in this problem. */
static inline bool can_have(const struct op_problem *problem, enum mistake mistake)
{
	struct recurrence_roles roles = recurrence_roles_of(problem);
	const struct op_arg *q = &problem->inputs[roles.q], *v = &problem->inputs[roles.v];

	if (mistake == HEADS_TILED)
		return problem->axes[q->axis[q->rank - 2]].value != problem->axes[v->axis[v->rank - 2]].value;
	return mistake != STATE_TRANSPOSED_AT_THE_END || roles.new_state >= 0;
}

static inline void every_mistake_is_caught(void **state)
{
	const struct family *family = *state;

	for (int p = 0; p < family->count; p++)
		for (uint64_t seed = 0; seed < SEEDS_OR_ONE(3); seed++) {
			const struct op_problem *problem = &family->problems[p].problem;

			for (enum mistake mistake = NONE + 1; mistake <= ONE_NAN; mistake += MISTAKE_STEP)
				if (can_have(problem, mistake))
					assert_mistake_caught(family->op, problem, seed, play_recurrent, (int)mistake);
			for (const enum mistake *own = family->problems[p].mistakes; *own != NONE && !SANITIZED; own++)
				assert_mistake_caught(family->op, problem, seed, play_recurrent, (int)*own);
		}
}

static inline void inputs_follow_the_seed(void **state)
{
	const struct family *family = *state;

	for (int p = 0; p < family->count; p++) {
		assert_inputs_follow_the_seed(family->op, &family->problems[p].problem, SIZE_SMALL);
		assert_inputs_are(family->op, &family->problems[p].problem, family->problems[p].inputs);
	}
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

/* Counts the rows of a tensor in which every element equals `value`. A row lies along the last axis. */
static inline int64_t rows_all(const struct tensor *tensor, double value)
{
	int64_t size = tensor->shape[tensor->rank - 1], rows = 0;

	for (int64_t i = 0; i < tensor->elements; i += size) {
		int64_t same = 0;

		while (same < size && dtype_load(tensor->data, tensor->dtype, i + same) == value)
			same++;
		rows += same == size;
	}
	return rows;
}

/* Returns the number of sequences of the case. Sets `empty` to the number of sequences that have no token. */
static inline int64_t sequences_of(const struct trial *t, int64_t *empty)
{
	struct recurrence_roles roles = recurrence_roles_of(t->problem);
	struct recurrence_extent e = recurrence_extent_of(&t->c, &roles);

	*empty = 0;
	for (int64_t n = 0; n < e.sequences; n++)
		*empty += roles.cu_seqlens < 0 ? e.tokens == 0
			  : whole(&t->in[roles.cu_seqlens], n) == whole(&t->in[roles.cu_seqlens], n + 1);
	return e.sequences;
}

static inline void assert_no_sequences(const struct trial *t)
{
	int64_t empty;

	assert_int_equal(sequences_of(t, &empty), 0);
	assert_int_equal(t->in[recurrence_roles_of(t->problem).v].elements, 0);
}

static inline void assert_one_token(const struct trial *t)
{
	struct recurrence_roles roles = recurrence_roles_of(t->problem);
	int64_t empty;

	assert_int_equal(sequences_of(t, &empty), 1);
	assert_int_equal(recurrence_extent_of(&t->c, &roles).total, 1);
	assert_int_equal(empty, 0);
}

static inline void assert_no_tokens(const struct trial *t)
{
	int64_t empty, sequences = sequences_of(t, &empty);

	assert_true(sequences > 1 && empty == sequences);
}

static inline void assert_empty_sequences(const struct trial *t)
{
	int64_t empty, sequences = sequences_of(t, &empty);

	assert_true(empty > 0 && empty < sequences);
}

static inline void assert_forgets_all(const struct trial *t)
{
	struct recurrence_roles roles = recurrence_roles_of(t->problem);
	const struct tensor *gate = &t->in[roles.gate >= 0 ? roles.gate : roles.gamma];

	assert_true(gate->elements > 0);
	assert_int_equal(rows_all(gate, -100) * gate->shape[gate->rank - 1], gate->elements);
}

/* Checks that the inputs show how a reference normalises a row of zeros: some rows of q and k, but not all, are
 * zeros. */
static inline void assert_rows_of_zeros(const struct trial *t)
{
	struct recurrence_roles roles = recurrence_roles_of(t->problem);
	const int both[] = {roles.q, roles.k};

	assert_true(recurrence_modes_of(&t->c, &roles).l2norm);
	for (int i = 0; i < 2; i++) {
		const struct tensor *rows = &t->in[both[i]];
		int64_t zeros = rows_all(rows, 0);

		assert_true(zeros > 0 && zeros < rows->elements / rows->shape[rows->rank - 1]);
	}
}

/* Checks that the inputs of each edge case have the property that the case is named after. Fails for an edge case that
 * this function does not know. */
static inline int assert_edges_hold_what_they_say(const struct op *op, const struct op_problem *problem)
{
	static const struct {
		const char *name;
		void (*holds)(const struct trial *t);
	} edges[] = {
	    {"no_sequences", assert_no_sequences},       {"one_token", assert_one_token},
	    {"no_tokens", assert_no_tokens},             {"empty_sequences", assert_empty_sequences},
	    {"forgets_all", assert_forgets_all},         {"rows_of_zeros", assert_rows_of_zeros},
	};
	int count = 0;

	assert_null(op->edges[COUNT(edges)].name);
	for (int i = 0; i < COUNT(edges); i++)
		for (uint64_t seed = 0; seed < SEEDS_OR_ONE(3); seed++) {
			struct trial t;

			if (!trial_open_edge(&t, op, problem, edges[i].name, seed))
				continue;
			edges[i].holds(&t);
			trial_close(&t);
			count += seed == 0;
		}
	return count;
}

static inline void edges_have_one_answer(void **state)
{
	const struct family *family = *state;

	for (int p = 0; p < family->count; p++) {
		const struct family_problem *of = &family->problems[p];

		assert_int_equal(assert_edges_hold_what_they_say(family->op, &of->problem), of->edges);
		assert_int_equal(assert_edges_pass(family->op, &of->problem, right_recurrent), of->edges);
		assert_int_equal(assert_edges_pass(family->op, &of->problem, right_chunked), of->edges);
	}
}

/* --- inputs from a workload --------------------------------------------------------------------------------------- */

/* Checks that an absent state has the same effect as a state of zeros, and that scale 0 has the same effect as the
 * scale 1 / sqrt(K). */
static inline void assert_absent_state_is_zeros(const struct op *op, const struct op_problem *problem)
{
	struct recurrence_roles roles = recurrence_roles_of(problem);
	struct err err = {""};
	struct trial t;

	assert_true(trial_open_size(&t, op, problem, SIZE_SMALL, 1, 0));
	free(t.in[roles.state].data);
	t.in[roles.state].data = NULL;
	if (roles.scale >= 0)
		t.c.scalar[roles.scale] = 0;
	assert_int_equal(op->oracle(&t.c, t.in, t.truth, &err), 0);
	right_recurrent(&t);
	trial_assert_passes(&t);
	trial_close(&t);
}

/* Opens a medium case as if a workload provided all its tensors, and sets element `at` of input `input` to `value`. A
 * negative `at` counts from the end of the tensor. op.check and op.oracle must reject the case with a message that
 * contains `wanted`; if `wanted` is NULL, both must accept the case. */
static inline void assert_given(const struct op *op, const struct op_problem *problem, int input, int64_t at,
                                double value, const char *wanted)
{
	struct err why = {""};
	struct trial t;

	assert_int_equal(trial_open_brought(&t, op, problem, input, at, value, &why), wanted != NULL ? -1 : 0);
	assert_int_equal(op->oracle(&t.c, t.in, t.truth, &why), wanted != NULL ? -1 : 0);
	if (wanted != NULL && strstr(why.text, wanted) == NULL)
		fail_msg("'%s' does not mention '%s'", why.text, wanted);
	if (wanted == NULL) {
		right_recurrent(&t);
		trial_assert_passes(&t);
	}
	trial_close(&t);
}

static inline void assert_scalar_refused(const struct family *family)
{
	const struct op_problem *problem = &family->problems[family->scalar_of].problem;
	struct recurrence_roles roles = recurrence_roles_of(problem);
	struct err err = {""};
	struct trial t;

	assert_true(trial_open_size(&t, family->op, problem, SIZE_SMALL, 0, 0));
	family->spoil_scalar(&t, &roles);
	assert_int_equal(family->op->check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, family->scalar_part));
	trial_close(&t);
}

/* Checks that these inputs are rejected: NaN, and offsets that decrease, do not begin with 0 or do not end at the
 * number of tokens. Sequences without tokens are accepted. */
static inline void inputs_from_a_workload_are_checked(void **state)
{
	const struct family *family = *state;
	const struct op_problem *packed = &family->problems[family->packed].problem;
	struct recurrence_roles roles = recurrence_roles_of(packed);

	assert_absent_state_is_zeros(family->op, packed);
	assert_given(family->op, packed, roles.cu_seqlens, 0, 1, "does not start with 0");
	assert_given(family->op, packed, roles.cu_seqlens, 2, 10, "it must be at least");
	assert_given(family->op, packed, roles.cu_seqlens, 2, 1e6, "at most 1281, the number of tokens");
	assert_given(family->op, packed, roles.cu_seqlens, -1, 1280, "ends with 1280");
	assert_given(family->op, packed, roles.cu_seqlens, 2, 1025, NULL);
	assert_given(family->op, packed, roles.v, 7, NAN, "holds NaN");
	if (family->spoil_scalar != NULL)
		assert_scalar_refused(family);
}

static inline void what_does_not_fit_is_refused_with_the_reason(void **state)
{
	const struct family *family = *state;

	for (int i = 0; i < family->refused_count; i++)
		assert_refused(family->op, &family->refused[i].problem, family->refused[i].part);
}

/* Runs the tests of the family; returns the exit status of the test program. */
static inline int test_family(struct family *family)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_prestate(correct_references_pass_in_both_forms, family),
	    cmocka_unit_test_prestate(every_mistake_is_caught, family),
	    cmocka_unit_test_prestate(edges_have_one_answer, family),
	    cmocka_unit_test_prestate(inputs_from_a_workload_are_checked, family),
	    cmocka_unit_test_prestate(what_does_not_fit_is_refused_with_the_reason, family),
	    cmocka_unit_test_prestate(inputs_follow_the_seed, family),
	};

	return cmocka_run_group_tests_name(family->op->name, tests, NULL, NULL);
}

#endif
