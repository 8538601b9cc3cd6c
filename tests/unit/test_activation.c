/* test_activation - gated activations: correct references in float32 and in the narrow dtype pass for every seed, and
 * references with a planted mistake fail. */
#include "tests/unit/trial.h"

#include "kernels/activation/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op activation_op;

enum { SEEDS = MANY_SEEDS, HALF = 1024 };

static const struct op_axis axes[] = {
    {"num_tokens", true, 0}, {"hidden_size_x2", false, 2 * HALF}, {"hidden_size", false, HALF}};
static const struct op_arg bf16_in[] = {{"input", DTYPE_BFLOAT16, 2, {0, 1}, false, NULL}};
static const struct op_arg bf16_out[] = {{"output", DTYPE_BFLOAT16, 2, {0, 2}, false, NULL}};
static const struct op_arg f16_in[] = {{"input", DTYPE_FLOAT16, 2, {0, 1}, false, NULL}};
static const struct op_arg f16_out[] = {{"output", DTYPE_FLOAT16, 2, {0, 2}, false, NULL}};
static const struct op_arg f32_in[] = {{"input", DTYPE_FLOAT32, 2, {0, 1}, false, NULL}};
static const struct op_arg f32_out[] = {{"output", DTYPE_FLOAT32, 2, {0, 2}, false, NULL}};

static const struct op_problem problems[] = {
    PROBLEM("silu_and_mul_h1024", "activation", axes, bf16_in, bf16_out),
    PROBLEM("gelu_and_mul_h1024", "activation", axes, bf16_in, bf16_out),
    PROBLEM("gelu_tanh_and_mul_h1024", "activation", axes, bf16_in, bf16_out),
    PROBLEM("silu_and_mul_f16", "activation", axes, f16_in, f16_out),
    PROBLEM("gelu_and_mul_f16", "activation", axes, f16_in, f16_out),
    PROBLEM("silu_and_mul_f32", "activation", axes, f32_in, f32_out),
    PROBLEM("gelu_and_mul_f32", "activation", axes, f32_in, f32_out),
    PROBLEM("gelu_tanh_and_mul_f32", "activation", axes, f32_in, f32_out),
};

enum mistake {
	NONE,
	NARROW, /* a correct way: the activation is rounded to the dtype, as torch rounds it */
	HALVES_SWAPPED,
	HALVES_INTERLEAVED,
	OTHER_ACTIVATION,
	OTHER_GELU,
	QUICK_GELU,
	SIGMOID,
	RELU,
	NOT_MULTIPLIED,
	ADDED,
	ACTIVATED_TWICE,
	TWO_PERCENT_MORE,
	BETA_TWO_PERCENT,
	ROUNDED_TO_FP8,
	CUBE_LEFT_OUT,
	NAIVE_EXPONENTIAL,
	LAST_ROW_LEFT_OUT,
	CLAMPED, /* the mistakes below are visible only if some gates exceed 1000 */
	ALL_ZERO,
};

static float activate(int kind, float x, enum mistake mistake)
{
	float u = 0.7978845608f * (x + (mistake == CUBE_LEFT_OUT ? 0 : 0.044715f) * x * x * x);

	switch (mistake) {
	case OTHER_ACTIVATION:
		kind = kind == ACTIVATION_SILU ? ACTIVATION_GELU : ACTIVATION_SILU;
		break;
	case OTHER_GELU:
		kind = kind == ACTIVATION_GELU ? ACTIVATION_GELU_TANH : ACTIVATION_GELU;
		break;
	case QUICK_GELU:
		return x / (1 + expf(-1.702f * x));
	case SIGMOID:
		return 1 / (1 + expf(-x));
	case RELU:
		return x > 0 ? x : 0;
	case NAIVE_EXPONENTIAL:
		return x * (expf(x) / (1 + expf(x)));
	case BETA_TWO_PERCENT:
		return x / (1 + expf(-1.02f * x));
	default:
		break;
	}
	if (kind == ACTIVATION_SILU)
		return x / (1 + expf(-x));
	return 0.5f * x * (1 + (kind == ACTIVATION_GELU ? erff(x * 0.70710678f) : tanhf(u)));
}

/* Emulates the reference with the planted mistake. */
static void run(struct trial *t, int mistake)
{
	int64_t rows = t->in[0].shape[0];

	for (int64_t i = 0; i < rows * HALF; i++) {
		int64_t row = i / HALF, column = i % HALF, first = row * 2 * HALF;
		int64_t left = first + (mistake == HALVES_INTERLEAVED ? 2 * column : column);
		int64_t right = first + (mistake == HALVES_INTERLEAVED ? 2 * column + 1 : HALF + column);
		float x = get(&t->in[0], mistake == HALVES_SWAPPED ? right : left);
		float factor = get(&t->in[0], mistake == HALVES_SWAPPED ? left : right);

		if (mistake == ROUNDED_TO_FP8)
			x = float_from_e4m3(e4m3_from_float(x));
		x = mistake == CLAMPED ? fminf(fmaxf(x, -1000), 1000) : x;
		float y = activate(t->c.variant, x, mistake);

		if (mistake == NARROW) {
			dtype_store_float(t->out[0].data, t->out[0].dtype, i, y);
			y = get(&t->out[0], i);
		}
		y = mistake == ACTIVATED_TWICE ? activate(t->c.variant, y, NONE) : y;
		y = mistake == NOT_MULTIPLIED ? y : mistake == ADDED ? y + factor : y * factor;
		y *= mistake == TWO_PERCENT_MORE ? 1.02f : 1;
		dtype_store_float(t->out[0].data, t->out[0].dtype, i,
		                  mistake == ALL_ZERO || (mistake == LAST_ROW_LEFT_OUT && row == rows - 1) ? 0 : y);
	}
}

static void a_correct_reference_passes_for_every_problem_size_and_seed(void **state)
{
	static const int ways[] = {NONE, NARROW, TRIAL_END};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&activation_op, &problems[p], SEEDS, run, ways);
}

/* Sets of problems, by activation (bit p stands for problem p). The table below states for each mistake the problems
 * whose outputs it changes. */
enum {
	SILU = 1 | 1 << 3 | 1 << 5,
	GELU = 1 << 1 | 1 << 4 | 1 << 6,
	GELU_TANH = 1 << 2 | 1 << 7,
	EVERY = SILU | GELU | GELU_TANH
};

static const struct planted_mistake mistakes[] = {
    {HALVES_SWAPPED, "gate and factor swapped", EVERY},
    {HALVES_INTERLEAVED, "gate and factor interleaved", EVERY},
    {OTHER_ACTIVATION, "gelu for silu, or the reverse", EVERY},
    {OTHER_GELU, "the other gelu", GELU | GELU_TANH},
    {QUICK_GELU, "quick gelu", EVERY},
    {SIGMOID, "sigmoid", EVERY},
    {RELU, "relu", EVERY},
    {NOT_MULTIPLIED, "not multiplied", EVERY},
    {ADDED, "added", EVERY},
    {ACTIVATED_TWICE, "activated twice", EVERY},
    {TWO_PERCENT_MORE, "2 % too large", EVERY},
    {BETA_TWO_PERCENT, "beta 2 % off", SILU},
    {ROUNDED_TO_FP8, "gate rounded to fp8", EVERY},
    {CUBE_LEFT_OUT, "cube left out", GELU_TANH},
    {NAIVE_EXPONENTIAL, "an exponential that overflows", SILU},
    {LAST_ROW_LEFT_OUT, "last row not written", EVERY},
    {ALL_ZERO, "zeros", EVERY},
};

static void every_planted_mistake_fails_at_the_medium_size(void **state)
{
	(void)state;
	assert_mistakes_fail(&activation_op, problems, COUNT(problems), mistakes, COUNT(mistakes), SEEDS_OR_ONE(2), run);
}

static void the_name_or_the_tag_says_which_activation_it_is(void **state)
{
	static const char *const tags[] = {"status:verified", "fi_api:flashinfer.activation.gelu_tanh_and_mul"};
	static const struct op_problem tagged = {.name = "gated_unit",
	                                         .op_type = "activation",
	                                         .description = "",
	                                         .tags = tags,
	                                         .tag_count = 2,
	                                         .axes = axes,
	                                         .axis_count = 3,
	                                         .inputs = bf16_in,
	                                         .input_count = 1,
	                                         .outputs = bf16_out,
	                                         .output_count = 1};

	(void)state;
	assert_int_equal(activation_op.match(&tagged, NULL), ACTIVATION_GELU_TANH);
	assert_int_equal(activation_op.match(&problems[1], NULL), ACTIVATION_GELU);
	assert_int_equal(activation_op.match(&problems[0], NULL), ACTIVATION_SILU);
}

static void what_the_family_does_not_know_is_refused_with_the_reason(void **state)
{
	static const struct op_arg same[] = {{"output", DTYPE_BFLOAT16, 2, {0, 1}, false, NULL}};
	static const struct op_arg ints[] = {{"input", DTYPE_INT32, 2, {0, 1}, false, NULL}};
	static const struct op_arg flat[] = {{"output", DTYPE_BFLOAT16, 1, {2}, false, NULL}};
	static const struct op_arg two[] = {{"gate", DTYPE_BFLOAT16, 2, {0, 2}, false, NULL},
	                                    {"up", DTYPE_BFLOAT16, 2, {0, 2}, false, NULL}};
	const struct op_problem cases[] = {
	    PROBLEM("silu_a", "activation", axes, bf16_in, same),
	    PROBLEM("silu_b", "activation", axes, ints, bf16_out),
	    PROBLEM("silu_c", "activation", axes, bf16_in, flat),
	    PROBLEM("silu_d", "activation", axes, two, bf16_out),
	    PROBLEM("mystery", "activation", axes, bf16_in, bf16_out),
	};
	static const char *const parts[] = {"twice as long", "int32", "except the last", "2 inputs",
	                                    "neither the definition's name"};

	(void)state;
	for (int i = 0; i < COUNT(cases); i++)
		assert_refused(&activation_op, &cases[i], parts[i]);
	assert_inputs_follow_the_seed(&activation_op, &problems[0], SIZE_MEDIUM);
}

static void right(struct trial *t)
{
	run(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	static const int edges[] = {2, 2, 2, 2, 2, 2, 2, 2};

	(void)state;
	assert_int_equal(COUNT(edges), COUNT(problems));
	assert_all_edges_pass(&activation_op, problems, edges, COUNT(edges), right);
}

static void what_is_wrong_only_at_the_edge_fails_there(void **state)
{
	static const struct edge_mistake wrong[] = {
	    {CLAMPED, "huge_gates", 0},
	    {CLAMPED, "huge_gates", 4},
	    {CLAMPED, "huge_gates", 7},
	};

	(void)state;
	assert_each_wrong_there_alone(&activation_op, problems, run, wrong, COUNT(wrong));
}

static void what_a_workload_must_not_provide_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_brought(&activation_op, &problems[0], 0, 3, (double)NAN,
		       "input 'input' holds NaN at [0, 3]; the result would be NaN");
	assert_brought(&activation_op, &problems[5], 0, -1, (double)INFINITY, "holds infinity at [512, 2047]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_correct_reference_passes_for_every_problem_size_and_seed),
	    cmocka_unit_test(every_planted_mistake_fails_at_the_medium_size),
	    cmocka_unit_test(the_name_or_the_tag_says_which_activation_it_is),
	    cmocka_unit_test(what_the_family_does_not_know_is_refused_with_the_reason),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(what_is_wrong_only_at_the_edge_fails_there),
	    cmocka_unit_test(what_a_workload_must_not_provide_is_reported_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
