/* test_softmax - softmax: correct references in float32 pass for every seed, and references with common mistakes
 * fail. */
#include "tests/unit/trial.h"

#include "kernels/softmax/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op softmax_op, sampling_op;

enum { SEEDS = MANY_SEEDS, V = 1500 };

static const struct op_axis axes[] = {{"batch_size", true, 0}, {"vocab_size", false, V}};
#define LOGITS(dtype) {"logits", dtype, 2, {0, 1}, false, NULL}
static const struct op_arg wide[] = {LOGITS(DTYPE_FLOAT32)};
static const struct op_arg by_row[] = {LOGITS(DTYPE_FLOAT32), {"temperature", DTYPE_FLOAT32, 1, {0}, false, NULL}};
static const struct op_arg shared[] = {{"temperature", DTYPE_FLOAT32, OP_SCALAR, {0}, true, NULL}, LOGITS(DTYPE_BFLOAT16)};
static const struct op_arg half[] = {LOGITS(DTYPE_FLOAT16)};
static const struct op_arg out32[] = {{"output", DTYPE_FLOAT32, 2, {0, 1}, false, NULL}};
static const struct op_arg out16[] = {{"output", DTYPE_BFLOAT16, 2, {0, 1}, false, NULL}};
static const struct op_arg out_half[] = {{"output", DTYPE_FLOAT16, 2, {0, 1}, false, NULL}};

static const struct op_problem problems[] = {
    PROBLEM("softmax_v1500", "softmax", axes, wide, out32),
    PROBLEM("softmax_v1500", "sampling", axes, by_row, out32),
    PROBLEM("softmax_v1500", "sampling", axes, shared, out16),
    PROBLEM("softmax_f16", "softmax", axes, half, out_half),
    PROBLEM("softmax_mixed", "softmax", axes, half, out32),
};

enum mistake {
	NONE,
	RECIPROCAL, /* a correct way: the logits are multiplied by 1 / T instead of divided by T */
	MAX_KEPT,
	BASE_TWO,
	OVER_THE_BATCH,
	TEMPERATURE_IGNORED,
	TEMPERATURE_MULTIPLIED,
	TEMPERATURE_OF_FIRST_ROW,
	LAST_LEFT_OUT,
	LOGARITHM,
	NOT_NORMALISED,
	TWO_PERCENT_MORE,
	SUM_WITH_EPSILON,
	ROUNDED_TO_FP8,
	MASKED_AS_ZERO,
	SIGMOID,
	SQUARED,
	UNIFORM_WHERE_ONE_IS_LEFT,
	ALL_ZERO,
};

static float temperature(const struct trial *t, int64_t row, enum mistake mistake)
{
	int input = softmax_temperature(t->problem);

	if (input < 0 || mistake == TEMPERATURE_IGNORED)
		return 1;
	if (t->in[input].rank == OP_SCALAR)
		return (float)t->c.scalar[input];
	return get(&t->in[input], mistake == TEMPERATURE_OF_FIRST_ROW ? 0 : row);
}

static float argument(const struct trial *t, int64_t row, int64_t column, enum mistake mistake)
{
	float x = get(&t->in[softmax_logits(t->problem)], row * V + column), divisor = temperature(t, row, mistake);

	x = mistake == ROUNDED_TO_FP8 && isfinite(x) ? float_from_e4m3(e4m3_from_float(x)) : x;
	x = mistake == MASKED_AS_ZERO && isinf(x) ? 0 : x;
	return mistake == TEMPERATURE_MULTIPLIED ? x * divisor
	       : mistake == RECIPROCAL           ? x * (1 / divisor)
	                                         : x / divisor;
}

/* `column` has the sum of the exponentials of each column. Only OVER_THE_BATCH uses it. */
static void run_row(struct trial *t, int64_t row, enum mistake mistake, const float column[V])
{
	int64_t last = mistake == LAST_LEFT_OUT ? V - 1 : V;
	float most = -INFINITY, sum = mistake == SUM_WITH_EPSILON ? 1e-3f : 0, e[V];
	int left = 0;

	for (int64_t c = 0; c < V; c++)
		most = fmaxf(most, argument(t, row, c, mistake));
	for (int64_t c = 0; c < V; c++) {
		float x = argument(t, row, c, mistake) - (mistake == MAX_KEPT ? 0 : most);

		e[c] = mistake == BASE_TWO ? exp2f(x) : mistake == SIGMOID ? 1 / (1 + expf(-x)) : expf(x);
		sum += c < last ? e[c] : 0;
		left += isfinite(x) ? 1 : 0;
	}
	for (int64_t c = 0; c < V; c++) {
		float y = e[c] / sum;

		if (mistake == OVER_THE_BATCH)
			y = expf(argument(t, row, c, NONE)) / column[c];
		y = mistake == UNIFORM_WHERE_ONE_IS_LEFT && left == 1 ? 1.0f / V : y;
		y = mistake == LOGARITHM ? logf(y) : mistake == NOT_NORMALISED ? e[c] : mistake == SQUARED ? y * y : y;
		set(&t->out[0], row * V + c, mistake == ALL_ZERO ? 0 : mistake == TWO_PERCENT_MORE ? 1.02f * y : y);
	}
}

/* Emulates the reference with the planted mistake. */
static void run(struct trial *t, int mistake)
{
	float column[V] = {0};

	for (int64_t row = 0; row < t->out[0].shape[0] && mistake == OVER_THE_BATCH; row++)
		for (int64_t c = 0; c < V; c++)
			column[c] += expf(argument(t, row, c, NONE));
	for (int64_t row = 0; row < t->out[0].shape[0]; row++)
		run_row(t, row, mistake, column);
}

static void a_correct_reference_passes_for_every_problem_size_and_seed(void **state)
{
	static const int ways[] = {NONE, RECIPROCAL, TRIAL_END};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&softmax_op, &problems[p], SEEDS, run, ways);
}

static const struct planted_mistake mistakes[] = {
    {MAX_KEPT, "largest not taken off", 31},
    {BASE_TWO, "powers of two", 31},
    {OVER_THE_BATCH, "over the batch", 1},
    {TEMPERATURE_IGNORED, "temperature ignored", 6},
    {TEMPERATURE_MULTIPLIED, "multiplied by the temperature", 6},
    {TEMPERATURE_OF_FIRST_ROW, "the first row's temperature for all", 2},
    {LAST_LEFT_OUT, "last element left out of the sum", 31},
    {LOGARITHM, "logarithms", 31},
    {NOT_NORMALISED, "not normalised", 31},
    {TWO_PERCENT_MORE, "2 % too large", 31},
    {SUM_WITH_EPSILON, "an epsilon in the sum", 1},
    {ROUNDED_TO_FP8, "logits rounded to fp8", 31},
    {MASKED_AS_ZERO, "-infinity taken for 0", 31},
    {SIGMOID, "sigmoids", 31},
    {SQUARED, "squared", 31},
    {ALL_ZERO, "zeros", 31},
};

static void every_planted_mistake_fails_at_the_medium_size(void **state)
{
	(void)state;
	assert_mistakes_fail(&softmax_op, problems, COUNT(problems), mistakes, COUNT(mistakes), 1, run);
}

static void no_row_is_masked_as_a_whole_and_a_masked_element_is_exactly_zero(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct trial t;
		int64_t masked = 0;

		assert_true(trial_open_size(&t, &softmax_op, &problems[0], SIZE_MEDIUM, 0, seed));
		for (int64_t i = 0; i < t.truth[0].elements; i++) {
			assert_true(get(&t.truth[0], i) >= 0);
			if (get(&t.in[0], i) < -1e30f) {
				masked++;
				assert_true(get(&t.truth[0], i) == 0);
			}
		}
		assert_true(masked > 0);
		trial_close(&t);
	}
}

static void what_the_family_does_not_know_is_refused_with_the_reason(void **state)
{
	static const struct op_arg ints[] = {LOGITS(DTYPE_INT32)};
	static const struct op_arg odd[] = {LOGITS(DTYPE_FLOAT32), {"scale", DTYPE_FLOAT32, OP_SCALAR, {0}, false, NULL}};
	static const struct op_arg flat[] = {{"output", DTYPE_FLOAT32, 1, {0}, false, NULL}};
	const struct op_problem cases[] = {
	    PROBLEM("a", "softmax", axes, ints, out32),           PROBLEM("b", "softmax", axes, odd, out32),
	    PROBLEM("log_softmax", "softmax", axes, wide, out32), PROBLEM("d", "softmax", axes, wide, flat),
	    PROBLEM("mask", "sampling", axes, wide, out32),
	};
	static const char *const parts[] = {"int32", "scale", "logarithms", "shape", "contains softmax"};
	struct err why = {""};

	(void)state;
	for (int i = 0; i < COUNT(cases); i++)
		assert_refused(&softmax_op, &cases[i], parts[i]);
	assert_int_equal(sampling_op.match(&problems[1], &why), -1); /* the family sampling, which op_find tries first,
								      * must not match */
	assert_inputs_follow_the_seed(&softmax_op, &problems[1], SIZE_MEDIUM);
}

static void right(struct trial *t)
{
	run(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	static const int edges[] = {2, 2, 2, 2, 2};

	(void)state;
	assert_int_equal(COUNT(edges), COUNT(problems));
	assert_all_edges_pass(&softmax_op, problems, edges, COUNT(edges), right);
}

static void what_is_wrong_only_at_the_edge_fails_there(void **state)
{
	static const struct edge_mistake wrong[] = {
	    {UNIFORM_WHERE_ONE_IS_LEFT, "one_left", 0},
	    {UNIFORM_WHERE_ONE_IS_LEFT, "one_left", 2},
	};

	(void)state;
	assert_each_wrong_there_alone(&softmax_op, problems, run, wrong, COUNT(wrong));
}

static void what_a_workload_must_not_provide_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_brought(&softmax_op, &problems[1], 0, -1, (double)NAN, "a row with this element has no softmax");
	assert_brought(&softmax_op, &problems[1], 0, 5, (double)INFINITY, "input 'logits' holds infinity at [0, 5]");
	assert_brought(&softmax_op, &problems[1], 0, 5, -INFINITY, NULL);
	assert_brought(&softmax_op, &problems[1], 1, 3, 0, "input 'temperature' holds 0 at [3]");
	assert_brought(&softmax_op, &problems[1], 1, 0, (double)NAN, "a temperature must be a finite number");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_correct_reference_passes_for_every_problem_size_and_seed),
	    cmocka_unit_test(every_planted_mistake_fails_at_the_medium_size),
	    cmocka_unit_test(no_row_is_masked_as_a_whole_and_a_masked_element_is_exactly_zero),
	    cmocka_unit_test(what_the_family_does_not_know_is_refused_with_the_reason),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(what_is_wrong_only_at_the_edge_fails_there),
	    cmocka_unit_test(what_a_workload_must_not_provide_is_reported_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
