/* delta_rule: references in float32, recurrent and chunked, pass for every seed; the mistakes that people make
 * do not. */
#include "tests/unit/recurrence_world.h"

extern const struct op delta_rule_op;

static const struct op_axis oblong[] = AXES(2, 4, 24, 40), square[] = AXES(2, 2, 32, 32);

#define BETA {"beta", DTYPE_BFLOAT16, 3, {B, T, HV}, false}
static const struct op_arg dense_in[] = {QUERY, KEY, VALUE, BETA, SCALE, STATE};
static const struct op_arg packed_in[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE,
                                          {"b", DTYPE_FLOAT32, 2, {TOTAL, HV}, false}, CU_SEQLENS, PACKED_STATE};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, packed_out[] = {PACKED_OUTPUT, PACKED_LAST};

static const struct op_problem problems[] = {
    PROBLEM("delta_rule_dense", "delta_rule", oblong, dense_in, dense_out),
    PROBLEM("delta_rule_varlen", "delta_rule", oblong, packed_in, packed_out),
    PROBLEM("delta_rule_qk_l2norm", "delta_rule", square, dense_in, dense_out),
    PROBLEM("delta_rule_neg-eigval", "delta_rule", square, packed_in, packed_out),
};
enum { DENSE, PACKED, NORMED, DOUBLED };

static void inputs_follow_the_seed(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_inputs_follow_the_seed(&delta_rule_op, &problems[p], SIZE_SMALL);
}

static void correct_references_pass_in_both_forms(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_both_forms_pass(&delta_rule_op, &problems[p]);
}

static void every_mistake_is_caught(void **state)
{
	static const enum mistake delta[] = {NOTHING_ERASED, STRENGTH_LEFT_OUT, STRENGTH_2_PERCENT,
	                                     STRENGTH_ON_VALUE_ALONE, RECALLED_UNDER_QUERY,
	                                     INITIAL_STATE_IGNORED, NONE};
	static const enum mistake packed[] = {OFFSETS_IGNORED, RUNS_ON, SIGMOID_LEFT_OUT, DOUBLED_IN_ANY_CASE, NONE};
	static const enum mistake norms[] = {NORM_LEFT_OUT, NORM_OF_QUERY_LEFT_OUT, NONE};

	(void)state;
	for (int p = DENSE; p <= DOUBLED; p++) {
		assert_common_mistakes_caught(&delta_rule_op, &problems[p]);
		assert_mistakes_caught(&delta_rule_op, &problems[p], delta);
	}
	assert_mistakes_caught(&delta_rule_op, &problems[PACKED], packed);
	assert_mistakes_caught(&delta_rule_op, &problems[NORMED], norms);
	assert_caught(&delta_rule_op, &problems[DOUBLED], NOT_DOUBLED);
	assert_caught(&delta_rule_op, &problems[DENSE], SIGMOID_IN_ANY_CASE);
	assert_caught(&delta_rule_op, &problems[DENSE], NORM_IN_ANY_CASE);
}

static void edges_have_one_answer(void **state)
{
	(void)state;
	assert_edges(&delta_rule_op, &problems[DENSE], 3);
	assert_edges(&delta_rule_op, &problems[PACKED], 4);
	assert_edges(&delta_rule_op, &problems[NORMED], 4);
}

static void what_comes_in_is_looked_at(void **state)
{
	(void)state;
	assert_absent_state_is_zeros(&delta_rule_op, &problems[PACKED]);
	assert_brought_is_looked_at(&delta_rule_op, &problems[PACKED]);
}

static void what_does_not_fit_is_refused_with_the_reason(void **state)
{
	static const struct op_arg no_beta[] = {QUERY, KEY, VALUE};
	static const struct op_arg gated[] = {QUERY, KEY, VALUE, BETA, {"g", DTYPE_FLOAT32, 3, {B, T, HV}, false}};
	static const struct op_arg beta_a_value[] = {QUERY, KEY, VALUE,
	                                             {"beta", DTYPE_FLOAT32, 4, {B, T, HV, V}, false}};
	static const struct op_arg rates[] = {QUERY, KEY, VALUE, BETA, A_LOG};
	static const struct op_arg long_row[] = {QUERY, KEY, VALUE, BETA, CU_SEQLENS};
	static const struct op_arg strange[] = {QUERY, KEY, VALUE, BETA, {"mask", DTYPE_BOOL, 2, {B, T}, false}};
	static const struct {
		struct op_problem problem;
		const char *part;
	} refused[] = {
	    {PROBLEM("x", "delta_rule", oblong, no_beta, dense_out), "expected beta"},
	    {PROBLEM("x", "delta_rule", oblong, gated, dense_out), "no use for a gate"},
	    {PROBLEM("x", "delta_rule", oblong, beta_a_value, dense_out), "'beta' is"},
	    {PROBLEM("x", "delta_rule", oblong, rates, dense_out), "nothing without a gate g"},
	    {PROBLEM("x", "delta_rule", oblong, long_row, dense_out), "a batch axis of 1"},
	    {PROBLEM("x", "delta_rule", oblong, strange, dense_out), "'mask' is"},
	};

	(void)state;
	for (int i = 0; i < COUNT(refused); i++)
		assert_refused(&delta_rule_op, &refused[i].problem, refused[i].part);
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

	return cmocka_run_group_tests_name("delta_rule", tests, NULL, NULL);
}
