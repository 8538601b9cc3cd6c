/* gla: references in float32, recurrent and chunked, pass for every seed; the mistakes that people make
 * do not. */
#include "tests/unit/recurrence_world.h"

extern const struct op gla_op;

static const struct op_axis oblong[] = AXES(2, 2, 24, 40), grouped[] = AXES(2, 4, 32, 32);

#define GATE {"g", DTYPE_FLOAT32, 4, {B, T, HV, K}, false}
static const struct op_arg dense_in[] = {QUERY, KEY, VALUE, GATE, SCALE, STATE};
static const struct op_arg packed_in[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE,
                                          {"gk", DTYPE_BFLOAT16, 3, {TOTAL, HV, K}, false}, CU_SEQLENS, PACKED_STATE};
static const struct op_arg normed_in[] = {QUERY, KEY, VALUE, GATE};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, packed_out[] = {PACKED_OUTPUT, PACKED_LAST};

static const struct op_problem problems[] = {
    PROBLEM("gla_dense", "gla", oblong, dense_in, dense_out),
    PROBLEM("gla_varlen", "gla", grouped, packed_in, packed_out),
    PROBLEM("gla_qk_l2norm", "gla", grouped, normed_in, dense_out),
};
enum { DENSE, PACKED, NORMED };

static void inputs_follow_the_seed(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_inputs_follow_the_seed(&gla_op, &problems[p], SIZE_SMALL);
}

static void correct_references_pass_in_both_forms(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_both_forms_pass(&gla_op, &problems[p]);
}

static void every_mistake_is_caught(void **state)
{
	static const enum mistake gates[] = {DECAY_LEFT_OUT, DECAY_NO_EXPONENTIAL, DECAY_BY_2, DECAY_2_PERCENT,
	                                     DECAY_AFTER_LEARNING, DECAY_OF_THE_FIRST_KEY, DECAY_OF_THE_FIRST_HEAD,
	                                     DECAY_OF_THE_TOKEN_BEFORE, NONE};
	static const enum mistake states[] = {INITIAL_STATE_IGNORED, OFFSETS_IGNORED, RUNS_ON, NONE};
	static const enum mistake norms[] = {NORM_LEFT_OUT, NORM_OF_QUERY_LEFT_OUT, NONE};

	(void)state;
	for (int p = DENSE; p <= NORMED; p++) {
		assert_common_mistakes_caught(&gla_op, &problems[p]);
		assert_mistakes_caught(&gla_op, &problems[p], gates);
	}
	assert_mistakes_caught(&gla_op, &problems[PACKED], states);
	assert_mistakes_caught(&gla_op, &problems[NORMED], norms);
	assert_caught(&gla_op, &problems[DENSE], INITIAL_STATE_IGNORED);
}

static void edges_have_one_answer(void **state)
{
	(void)state;
	assert_edges(&gla_op, &problems[DENSE], 4);
	assert_edges(&gla_op, &problems[PACKED], 5);
	assert_edges(&gla_op, &problems[NORMED], 5);
}

static void what_comes_in_is_looked_at(void **state)
{
	(void)state;
	assert_absent_state_is_zeros(&gla_op, &problems[PACKED]);
	assert_brought_is_looked_at(&gla_op, &problems[PACKED]);
}

static void what_does_not_fit_is_refused_with_the_reason(void **state)
{
	static const struct op_arg no_gate[] = {QUERY, KEY, VALUE, SCALE};
	static const struct op_arg a_gate_a_head[] = {QUERY, KEY, VALUE, {"g", DTYPE_FLOAT32, 3, {B, T, HV}, false}};
	static const struct op_arg alpha[] = {QUERY, KEY, VALUE, {"alpha", DTYPE_FLOAT32, 4, {B, T, HV, K}, false}};
	static const struct op_arg beta[] = {QUERY, KEY, VALUE, GATE, {"beta", DTYPE_FLOAT32, 3, {B, T, HV}, false}};
	static const struct op_arg bias_alone[] = {QUERY, KEY, VALUE, GATE,
	                                           {"dt_bias", DTYPE_FLOAT32, 2, {HV, K}, false}};
	static const struct op_arg no_offsets[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE,
	                                           {"g", DTYPE_FLOAT32, 3, {TOTAL, HV, K}, false}};
	static const struct op_arg optional_gate[] = {QUERY, KEY, VALUE, {"g", DTYPE_FLOAT32, 4, {B, T, HV, K}, true}};
	static const struct op_arg no_state[] = {{"final_state", DTYPE_FLOAT32, 4, {B, HV, K, V}, false}};
	static const struct op_arg square_state[] = {OUTPUT, {"final_state", DTYPE_FLOAT32, 4, {B, HV, K, K}, false}};
	static const struct {
		struct op_problem problem;
		const char *part;
	} refused[] = {
	    {PROBLEM("x", "gla", oblong, no_gate, dense_out), "expected a gate g"},
	    {PROBLEM("x", "gla", oblong, a_gate_a_head, dense_out), "then the last axis of q"},
	    {PROBLEM("x", "gla", oblong, alpha, dense_out), "'alpha' is"},
	    {PROBLEM("x", "gla", oblong, beta, dense_out), "no use for a beta"},
	    {PROBLEM("x", "gla", oblong, bias_alone, dense_out), "which gate is it of"},
	    {PROBLEM("x", "gla", oblong, no_offsets, packed_out), "need cu_seqlens"},
	    {PROBLEM("x", "gla", oblong, optional_gate, dense_out), "not to be optional"},
	    {PROBLEM("x", "gla", oblong, dense_in, no_state), "no output has a value for each token"},
	    {PROBLEM("x", "gla", oblong, dense_in, square_state), "states [sequences, heads of v, K, V]"},
	};

	(void)state;
	for (int i = 0; i < COUNT(refused); i++)
		assert_refused(&gla_op, &refused[i].problem, refused[i].part);
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

	return cmocka_run_group_tests_name("gla", tests, NULL, NULL);
}
