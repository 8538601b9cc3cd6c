/* kda: references in float32, recurrent and chunked, pass for every seed; the mistakes that people make
 * do not. */
#include "tests/unit/recurrence_world.h"

extern const struct op kda_op;

static const struct op_axis oblong[] = AXES(2, 4, 24, 40), square[] = AXES(2, 2, 32, 32);

#define GATES {"g", DTYPE_FLOAT32, 4, {B, T, HV, K}, false}
#define BETA {"beta", DTYPE_BFLOAT16, 3, {B, T, HV}, false}
static const struct op_arg dense_in[] = {QUERY, KEY, VALUE, GATES, BETA, SCALE, STATE};
static const struct op_arg long_in[] = {{"q", DTYPE_BFLOAT16, 4, {ONE, TOTAL, HQ, K}, false},
                                        {"k", DTYPE_BFLOAT16, 4, {ONE, TOTAL, HQ, K}, false},
                                        {"v", DTYPE_BFLOAT16, 4, {ONE, TOTAL, HV, V}, false},
                                        {"g", DTYPE_BFLOAT16, 4, {ONE, TOTAL, HV, K}, false}, A_LOG,
                                        {"dt_bias", DTYPE_FLOAT32, 1, {FLAT}, false},
                                        {"beta", DTYPE_FLOAT16, 3, {ONE, TOTAL, HV}, false}, CU_SEQLENS, PACKED_STATE};
static const struct op_arg bounded_in[] = {QUERY, KEY, VALUE, GATES, A_LOG,
                                           {"dt_bias", DTYPE_FLOAT32, 2, {HV, K}, false}, BETA,
                                           SCALAR("lower_bound", DTYPE_FLOAT32)};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, output_alone[] = {OUTPUT};
static const struct op_arg long_out[] = {{"o", DTYPE_FLOAT32, 4, {ONE, TOTAL, HV, V}, false}, PACKED_LAST};

static const struct op_problem problems[] = {
    PROBLEM("kda_v_first_qk_l2norm", "kda", square, dense_in, dense_out),
    PROBLEM("kda_varlen_beta_sigmoid", "kda", oblong, long_in, long_out),
    PROBLEM("kda_lower_bound", "kda", oblong, bounded_in, output_alone),
};
enum { NORMED, LONG, BOUNDED };

static void inputs_follow_the_seed(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_inputs_follow_the_seed(&kda_op, &problems[p], SIZE_SMALL);
}

static void correct_references_pass_in_both_forms(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_both_forms_pass(&kda_op, &problems[p]);
}

static void every_mistake_is_caught(void **state)
{
	static const enum mistake all[] = {DECAY_LEFT_OUT, DECAY_NO_EXPONENTIAL, DECAY_BY_2, DECAY_2_PERCENT,
	                                   DECAY_AFTER_LEARNING, DECAY_OF_THE_FIRST_KEY, DECAY_OF_THE_FIRST_HEAD,
	                                   DECAY_OF_THE_TOKEN_BEFORE, NOTHING_ERASED, STRENGTH_LEFT_OUT,
	                                   STRENGTH_2_PERCENT, STRENGTH_ON_VALUE_ALONE, RECALLED_BEFORE_DECAY,
	                                   RECALLED_UNDER_QUERY, NONE};
	static const enum mistake norms[] = {NORM_LEFT_OUT, NORM_OF_QUERY_LEFT_OUT, INITIAL_STATE_IGNORED, NONE};
	static const enum mistake raw[] = {SOFTPLUS_LEFT_OUT, SOFTPLUS_OVERFLOWS, SIGMOID_LEFT_OUT, OFFSETS_IGNORED,
	                                   RUNS_ON, BIAS_LEFT_OUT, RATE_LEFT_OUT, RATE_WITHOUT_EXPONENTIAL, NONE};
	static const enum mistake bounded[] = {BOUND_IGNORED, BIAS_LEFT_OUT, RATE_LEFT_OUT, RATE_WITHOUT_EXPONENTIAL,
	                                       SIGMOID_IN_ANY_CASE, NONE};

	(void)state;
	for (int p = NORMED; p <= BOUNDED; p++) {
		assert_common_mistakes_caught(&kda_op, &problems[p]);
		assert_mistakes_caught(&kda_op, &problems[p], all);
	}
	assert_mistakes_caught(&kda_op, &problems[NORMED], norms);
	assert_mistakes_caught(&kda_op, &problems[LONG], raw);
	assert_mistakes_caught(&kda_op, &problems[BOUNDED], bounded);
}

static void edges_have_one_answer(void **state)
{
	(void)state;
	assert_edges(&kda_op, &problems[NORMED], 5);
	assert_edges(&kda_op, &problems[LONG], 4);
	assert_edges(&kda_op, &problems[BOUNDED], 3);
}

static void what_comes_in_is_looked_at(void **state)
{
	struct recurrence_roles roles = recurrence_roles_of(&problems[BOUNDED]);
	struct err err = {""};
	struct trial t;

	(void)state;
	assert_absent_state_is_zeros(&kda_op, &problems[LONG]);
	assert_brought_is_looked_at(&kda_op, &problems[LONG]);
	assert_true(trial_open_size(&t, &kda_op, &problems[BOUNDED], SIZE_SMALL, 0, 0));
	t.c.scalar[roles.lower_bound] = 0;
	assert_int_equal(kda_op.check(&t.c, t.in, &err), -1);
	assert_non_null(strstr(err.text, "below 0"));
	trial_close(&t);
}

static void what_does_not_fit_is_refused_with_the_reason(void **state)
{
	static const struct op_arg a_gate_a_head[] = {QUERY, KEY, VALUE, BETA,
	                                              {"g", DTYPE_FLOAT32, 3, {B, T, HV}, false}};
	static const struct op_arg gamma[] = {QUERY, KEY, VALUE, BETA, {"g_gamma", DTYPE_FLOAT32, 1, {HV}, false}};
	static const struct op_arg short_bias[] = {QUERY, KEY, VALUE, GATES, BETA, A_LOG,
	                                           {"dt_bias", DTYPE_FLOAT32, 1, {HV}, false}};
	static const struct op_arg slots[] = {QUERY, KEY, VALUE, GATES, BETA, STATE,
	                                      {"ssm_state_indices", DTYPE_INT32, 1, {B}, false}};
	static const struct {
		struct op_problem problem;
		const char *part;
	} refused[] = {
	    {PROBLEM("x", "kda", oblong, a_gate_a_head, dense_out), "then the last axis of q"},
	    {PROBLEM("x", "kda", oblong, gamma, dense_out), "expected a gate g"},
	    {PROBLEM("x", "kda", oblong, short_bias, dense_out), "or that flat"},
	    {PROBLEM("x", "kda", oblong, slots, dense_out), "'ssm_state_indices' is"},
	};

	(void)state;
	for (int i = 0; i < COUNT(refused); i++)
		assert_refused(&kda_op, &refused[i].problem, refused[i].part);
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

	return cmocka_run_group_tests_name("kda", tests, NULL, NULL);
}
