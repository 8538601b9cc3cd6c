/* simple_gla: references in float32, recurrent and chunked, pass for every seed; the mistakes that people make
 * do not. */
#include "tests/unit/recurrence_world.h"

extern const struct op simple_gla_op;

static const struct op_axis oblong[] = AXES(2, 4, 24, 40), square[] = AXES(4, 4, 32, 32);

#define GATE {"g", DTYPE_FLOAT32, 3, {B, T, HV}, false}
#define GAMMA {"g_gamma", DTYPE_FLOAT32, 1, {HV}, false}
static const struct op_arg dense_in[] = {QUERY, KEY, VALUE, GATE, SCALE, STATE};
static const struct op_arg gamma_in[] = {PACKED_QUERY, PACKED_KEY, PACKED_VALUE, GAMMA, CU_SEQLENS, SCALE,
                                         PACKED_STATE};
static const struct op_arg raw_in[] = {QUERY, KEY, VALUE, {"g", DTYPE_BFLOAT16, 3, {B, T, HV}, false}, A_LOG,
                                       {"dt_bias", DTYPE_FLOAT32, 1, {HV}, false}};
static const struct op_arg dense_out[] = {OUTPUT, LAST}, packed_out[] = {PACKED_OUTPUT, PACKED_LAST};
static const struct op_arg output_alone[] = {OUTPUT};

static const struct op_problem problems[] = {
    PROBLEM("simple_gla_dense", "simple_gla", oblong, dense_in, dense_out),
    PROBLEM("simple_gla_gamma", "simple_gla", square, gamma_in, packed_out),
    PROBLEM("simple_gla_gate", "simple_gla", square, raw_in, output_alone),
};
enum { DENSE, CONSTANT, RAW };

static void inputs_follow_the_seed(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_inputs_follow_the_seed(&simple_gla_op, &problems[p], SIZE_SMALL);
}

static void correct_references_pass_in_both_forms(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_both_forms_pass(&simple_gla_op, &problems[p]);
}

static void every_mistake_is_caught(void **state)
{
	static const enum mistake gates[] = {DECAY_LEFT_OUT, DECAY_NO_EXPONENTIAL, DECAY_BY_2, DECAY_2_PERCENT,
	                                     DECAY_AFTER_LEARNING, DECAY_OF_THE_FIRST_HEAD, NONE};
	static const enum mistake raw[] = {SOFTPLUS_LEFT_OUT, SOFTPLUS_OVERFLOWS, BIAS_LEFT_OUT, RATE_LEFT_OUT,
	                                   RATE_WITHOUT_EXPONENTIAL, DECAY_OF_THE_TOKEN_BEFORE, NONE};
	static const enum mistake states[] = {INITIAL_STATE_IGNORED, OFFSETS_IGNORED, RUNS_ON, NONE};

	(void)state;
	for (int p = DENSE; p <= RAW; p++) {
		assert_common_mistakes_caught(&simple_gla_op, &problems[p]);
		assert_mistakes_caught(&simple_gla_op, &problems[p], gates);
	}
	assert_mistakes_caught(&simple_gla_op, &problems[RAW], raw);
	assert_mistakes_caught(&simple_gla_op, &problems[CONSTANT], states);
	assert_caught(&simple_gla_op, &problems[DENSE], INITIAL_STATE_IGNORED);
}

static void edges_have_one_answer(void **state)
{
	(void)state;
	assert_edges(&simple_gla_op, &problems[DENSE], 4);
	assert_edges(&simple_gla_op, &problems[CONSTANT], 5);
	assert_edges(&simple_gla_op, &problems[RAW], 3);
}

static void what_comes_in_is_looked_at(void **state)
{
	(void)state;
	assert_absent_state_is_zeros(&simple_gla_op, &problems[CONSTANT]);
	assert_brought_is_looked_at(&simple_gla_op, &problems[CONSTANT]);
}

static void what_does_not_fit_is_refused_with_the_reason(void **state)
{
	static const struct op_arg two[] = {QUERY, KEY, VALUE, GATE, GAMMA};
	static const struct op_arg none[] = {QUERY, KEY, VALUE};
	static const struct op_arg long_gamma[] = {QUERY, KEY, VALUE, {"g_gamma", DTYPE_FLOAT32, 1, {K}, false}};
	static const struct op_arg bias_of_nothing[] = {QUERY, KEY, VALUE, GAMMA, A_LOG};
	static const struct op_arg shared_by_three[] = {QUERY, KEY,
	                                                {"v", DTYPE_BFLOAT16, 4, {B, T, K, V}, false}, GATE};
	static const struct op_axis odd[] = AXES(3, 4, 24, 40), wide[] = AXES(2, 4, 520, 40);
	static const struct {
		struct op_problem problem;
		const char *part;
	} refused[] = {
	    {PROBLEM("x", "simple_gla", oblong, two, dense_out), "there are two gates, 'g' and 'g_gamma'"},
	    {PROBLEM("x", "simple_gla", oblong, none, dense_out), "expected a gate g"},
	    {PROBLEM("x", "simple_gla", oblong, long_gamma, dense_out), "one for each head of v"},
	    {PROBLEM("x", "simple_gla", oblong, bias_of_nothing, dense_out), "nothing without a gate g"},
	    {PROBLEM("x", "simple_gla", oblong, shared_by_three, dense_out), "the shape of v"},
	    {PROBLEM("x", "simple_gla", odd, dense_in, dense_out), "divides that of v"},
	    {PROBLEM("x", "simple_gla", wide, dense_in, dense_out), "at most 512"},
	};

	(void)state;
	for (int i = 0; i < COUNT(refused); i++)
		assert_refused(&simple_gla_op, &refused[i].problem, refused[i].part);
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

	return cmocka_run_group_tests_name("simple_gla", tests, NULL, NULL);
}
