/* gated_delta_rule: references in float32, recurrent and chunked, pass for every seed; the mistakes that people make
 * do not. */
#include "tests/unit/recurrence_world.h"

extern const struct op gated_delta_rule_op;

static const struct op_axis oblong[] = AXES(2, 4, 24, 40), square[] = AXES(2, 4, 32, 32);

#define GATE {"g", DTYPE_FLOAT32, 3, {B, T, HV}, false}
#define BETA {"beta", DTYPE_BFLOAT16, 3, {B, T, HV}, false}
static const struct op_arg switched_in[] = {QUERY, KEY, VALUE, GATE, BETA, SCALE, STATE,
                                            SCALAR("use_qk_l2norm_in_kernel", DTYPE_BOOL),
                                            SCALAR("use_beta_sigmoid_in_kernel", DTYPE_BOOL),
                                            SCALAR("allow_neg_eigval", DTYPE_BOOL)};
static const struct op_arg packed_in[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE,
                                          {"g", DTYPE_BFLOAT16, 2, {TOTAL, HV}, false}, A_LOG,
                                          {"dt_bias", DTYPE_FLOAT32, 1, {HV}, false},
                                          {"beta", DTYPE_FLOAT32, 2, {TOTAL, HV}, false}, CU_SEQLENS, PACKED_STATE};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, packed_out[] = {PACKED_OUTPUT, PACKED_LAST};

static const struct op_problem problems[] = {
    PROBLEM("gated_delta_rule_switched", "gated_delta_rule", square, switched_in, dense_out),
    PROBLEM("gated_delta_rule_varlen", "gated_delta_rule", oblong, packed_in, packed_out),
};
enum { SWITCHED, PACKED };

static void inputs_follow_the_seed(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_inputs_follow_the_seed(&gated_delta_rule_op, &problems[p], SIZE_SMALL);
}

static void correct_references_pass_in_both_forms(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_both_forms_pass(&gated_delta_rule_op, &problems[p]);
}

static void every_mistake_is_caught(void **state)
{
	static const enum mistake both[] = {DECAY_LEFT_OUT, DECAY_NO_EXPONENTIAL, DECAY_BY_2, DECAY_2_PERCENT,
	                                    DECAY_AFTER_LEARNING, DECAY_OF_THE_FIRST_HEAD, DECAY_OF_THE_TOKEN_BEFORE,
	                                    NOTHING_ERASED, STRENGTH_LEFT_OUT, STRENGTH_2_PERCENT,
	                                    STRENGTH_ON_VALUE_ALONE, RECALLED_BEFORE_DECAY, RECALLED_UNDER_QUERY,
	                                    INITIAL_STATE_IGNORED, NONE};
	static const enum mistake switches[] = {NORM_LEFT_OUT, NORM_IN_ANY_CASE, NORM_OF_QUERY_LEFT_OUT,
	                                        SIGMOID_LEFT_OUT, SIGMOID_IN_ANY_CASE, NOT_DOUBLED,
	                                        DOUBLED_IN_ANY_CASE, NONE};
	static const enum mistake raw[] = {SOFTPLUS_LEFT_OUT, SOFTPLUS_OVERFLOWS, BIAS_LEFT_OUT, RATE_LEFT_OUT,
	                                   RATE_WITHOUT_EXPONENTIAL, OFFSETS_IGNORED, RUNS_ON, NONE};

	(void)state;
	for (int p = SWITCHED; p <= PACKED; p++) {
		assert_common_mistakes_caught(&gated_delta_rule_op, &problems[p]);
		assert_mistakes_caught(&gated_delta_rule_op, &problems[p], both);
	}
	assert_mistakes_caught(&gated_delta_rule_op, &problems[SWITCHED], switches);
	assert_mistakes_caught(&gated_delta_rule_op, &problems[PACKED], raw);
}

static void edges_have_one_answer(void **state)
{
	(void)state;
	assert_edges(&gated_delta_rule_op, &problems[SWITCHED], 5);
	assert_edges(&gated_delta_rule_op, &problems[PACKED], 4);
}

/* Twice a strength that went through no sigmoid: implementations differ in whether that is done. */
static void assert_doubling_without_a_sigmoid_is_invalid(void)
{
	struct recurrence_roles roles = recurrence_roles_of(&problems[SWITCHED]);
	struct err err = {""};
	struct trial t;

	assert_true(trial_open_size(&t, &gated_delta_rule_op, &problems[SWITCHED], SIZE_SMALL, 0, 0));
	t.c.scalar[roles.doubled] = 1;
	t.c.scalar[roles.sigmoid] = 0;
	assert_int_equal(gated_delta_rule_op.check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, "sigmoid"));
	trial_close(&t);
}

static void what_comes_in_is_looked_at(void **state)
{
	(void)state;
	assert_absent_state_is_zeros(&gated_delta_rule_op, &problems[PACKED]);
	assert_brought_is_looked_at(&gated_delta_rule_op, &problems[PACKED]);
	assert_doubling_without_a_sigmoid_is_invalid();
}

static void what_does_not_fit_is_refused_with_the_reason(void **state)
{
	static const struct op_arg a_gate_a_key[] = {QUERY, KEY, VALUE, BETA,
	                                             {"g", DTYPE_FLOAT32, 4, {B, T, HV, K}, false}};
	static const struct op_arg no_gate[] = {QUERY, KEY, VALUE, BETA};
	static const struct op_arg no_beta[] = {QUERY, KEY, VALUE, GATE};
	static const struct op_arg gate_of_keys[] = {QUERY, KEY, VALUE, BETA,
	                                             {"g", DTYPE_FLOAT32, 3, {B, T, HQ}, false}};
	static const struct op_arg a_pool[] = {QUERY, KEY, VALUE, GATE, BETA,
	                                       {"initial_state", DTYPE_FLOAT32, 4, {N, HV, K, V}, false}};
	static const struct {
		struct op_problem problem;
		const char *part;
	} refused[] = {
	    {PROBLEM("x", "gated_delta_rule", oblong, a_gate_a_key, dense_out), "without its last axis"},
	    {PROBLEM("x", "gated_delta_rule", oblong, no_gate, dense_out), "expected a gate g"},
	    {PROBLEM("x", "gated_delta_rule", oblong, no_beta, dense_out), "expected beta"},
	    {PROBLEM("x", "gated_delta_rule", oblong, gate_of_keys, dense_out), "without its last axis"},
	    {PROBLEM("x", "gated_delta_rule", oblong, a_pool, dense_out), "a state for each sequence of the batch"},
	};

	(void)state;
	for (int i = 0; i < COUNT(refused); i++)
		assert_refused(&gated_delta_rule_op, &refused[i].problem, refused[i].part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(correct_references_pass_in_both_forms),
	    cmocka_unit_test(every_mistake_is_caught),
	    cmocka_unit_test(edges_have_one_answer),
	    cmocka_unit_test(what_comes_in_is_looked_at),
	    cmocka_unit_test(what_does_not_fit_is_refused_with_the_reason),
	    cmocka_unit_test(inputs_follow_the_seed),
	};

	return cmocka_run_group_tests_name("gated_delta_rule", tests, NULL, NULL);
}
