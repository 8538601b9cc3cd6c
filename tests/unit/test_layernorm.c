/* test_layernorm - layer norms: correct references in float32 pass for every seed, and references with common mistakes
 * fail. */
#include "tests/unit/trial.h"

#include "kernels/layernorm/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op layernorm_op;

enum { SEEDS = MANY_SEEDS, H = 768 };

static const struct op_axis axes[] = {{"batch_size", true, 0}, {"hidden_size", false, H}};

#define X(dtype) {"hidden_states", dtype, 2, {0, 1}, false, NULL}
#define WEIGHT(dtype) {"weight", dtype, 1, {1}, false, NULL}
#define BIAS(dtype) {"bias", dtype, 1, {1}, false, NULL}
static const struct op_arg mixed[] = {X(DTYPE_BFLOAT16), WEIGHT(DTYPE_FLOAT32), BIAS(DTYPE_FLOAT32)};
static const struct op_arg half[] = {X(DTYPE_FLOAT16), WEIGHT(DTYPE_FLOAT16), BIAS(DTYPE_FLOAT16)};
static const struct op_arg wide[] = {X(DTYPE_FLOAT32), WEIGHT(DTYPE_FLOAT32), BIAS(DTYPE_FLOAT32)};
static const struct op_arg unbiased[] = {X(DTYPE_BFLOAT16), WEIGHT(DTYPE_BFLOAT16)};
static const struct op_arg given[] = {X(DTYPE_BFLOAT16),
                                      {"beta", DTYPE_BFLOAT16, 1, {1}, false, NULL},
                                      {"gamma", DTYPE_BFLOAT16, 1, {1}, false, NULL},
                                      {"eps", DTYPE_FLOAT32, OP_SCALAR, {0}, false, NULL}};
static const struct op_arg out16[] = {{"output", DTYPE_BFLOAT16, 2, {0, 1}, false, NULL}};
static const struct op_arg out_half[] = {{"output", DTYPE_FLOAT16, 2, {0, 1}, false, NULL}};
static const struct op_arg out32[] = {{"output", DTYPE_FLOAT32, 2, {0, 1}, false, NULL}};

static const struct op_problem problems[] = {
    PROBLEM("layernorm_h768_eps1e-6", "layernorm", axes, mixed, out16),
    PROBLEM("layernorm_f16_eps1e-5", "layernorm", axes, half, out_half),
    PROBLEM("layernorm_f32_eps1e-5", "layernorm", axes, wide, out32),
    PROBLEM("layer_norm_unbiased_eps1e-5", "norm", axes, unbiased, out16),
    PROBLEM("norm_with_given_epsilon", "norm", axes, given, out16),
};
enum { WIDE = 2, UNBIASED = 3 };

enum mistake {
	NONE,
	EPSILON_LARGE,
	EPSILON_NONE,
	EPSILON_OUTSIDE,
	MEAN_SQUARE,
	MEAN_KEPT,
	MEAN_TWICE,
	SUM_FOR_MEAN,
	SAMPLE_VARIANCE,
	COLUMN_LEFT_OUT,
	FIRST_COLUMN_LEFT_OUT,
	NOT_ROOTED,
	ONE_PLUS_WEIGHT,
	NO_WEIGHT,
	NO_BIAS,
	BIAS_SUBTRACTED,
	BIAS_BEFORE_WEIGHT,
	WEIGHT_AND_BIAS_SWAPPED,
	ONE_PERCENT_MORE,
	ROUNDED_TO_FP8,
	ALL_ZERO,
};

static bool left_out(enum mistake mistake, int64_t c)
{
	return (mistake == COLUMN_LEFT_OUT && c == 333) || (mistake == FIRST_COLUMN_LEFT_OUT && c == 0);
}

static float affine(float n, float w, float b, enum mistake mistake)
{
	switch (mistake) {
	case ONE_PLUS_WEIGHT:
		return n * (1 + w) + b;
	case NO_WEIGHT:
		return n + b;
	case NO_BIAS:
		return n * w;
	case BIAS_SUBTRACTED:
		return n * w - b;
	case BIAS_BEFORE_WEIGHT:
		return (n + b) * w;
	case WEIGHT_AND_BIAS_SWAPPED:
		return n * b + w;
	case ONE_PERCENT_MORE:
		return 1.01f * (n * w + b);
	case ALL_ZERO:
		return 0;
	default:
		return n * w + b;
	}
}

static void run_row(struct trial *t, int64_t row, const float *w, const float *b, float *x, enum mistake mistake)
{
	int given_eps = layernorm_roles_of(t->problem).eps;
	float eps = given_eps >= 0 ? (float)t->c.scalar[given_eps] : strstr(t->problem->name, "1e-6") ? 1e-6f : 1e-5f;
	float sum = 0, squares = 0, kept = eps;

	for (int64_t c = 0; c < H; c++) {
		x[c] = get(&t->in[0], row * H + c);
		x[c] = mistake == ROUNDED_TO_FP8 ? float_from_e4m3(e4m3_from_float(x[c])) : x[c];
		sum += left_out(mistake, c) ? 0 : x[c];
	}
	float mean = mistake == MEAN_KEPT ? 0 : mistake == MEAN_TWICE ? 2 * sum / H : sum / H;

	for (int64_t c = 0; c < H; c++) {
		float difference = mistake == MEAN_SQUARE ? x[c] : x[c] - sum / H;

		squares += left_out(mistake, c) ? 0 : difference * difference;
	}
	float variance = squares / (mistake == SUM_FOR_MEAN ? 1 : mistake == SAMPLE_VARIANCE ? H - 1 : H);

	eps = mistake == EPSILON_LARGE ? 10 * eps : mistake == EPSILON_NONE || mistake == EPSILON_OUTSIDE ? 0 : eps;
	float root =
	    mistake == NOT_ROOTED ? variance + eps : sqrtf(variance + eps) + (mistake == EPSILON_OUTSIDE ? kept : 0);

	for (int64_t c = 0; c < H; c++)
		set(&t->out[0], row * H + c, affine((x[c] - mean) / root, w[c], b[c], mistake));
}

/* Emulates the reference with the planted mistake. */
static void run(struct trial *t, int mistake)
{
	struct layernorm_roles roles = layernorm_roles_of(t->problem);
	float w[H], b[H], x[H];

	for (int64_t c = 0; c < H; c++) {
		w[c] = get(&t->in[roles.weight], c);
		b[c] = roles.bias >= 0 ? get(&t->in[roles.bias], c) : 0;
	}
	for (int64_t row = 0; row < t->out[0].shape[0]; row++)
		run_row(t, row, w, b, x, mistake);
}

static void a_correct_reference_passes_for_every_problem_size_and_seed(void **state)
{
	static const int ways[] = {NONE, TRIAL_END};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&layernorm_op, &problems[p], SEEDS, run, ways);
}

/* Sets of problems (bit p stands for problem p): all problems, those with a bias, and the one whose output is not
 * rounded to 16 bits. */
enum { EVERY = 31, BIASED = EVERY & ~(1 << UNBIASED), FLOAT32 = 1 << WIDE };

static const struct planted_mistake mistakes[] = {
    {EPSILON_LARGE, "epsilon ten times as large", EVERY},
    {EPSILON_NONE, "no epsilon", EVERY},
    {EPSILON_OUTSIDE, "epsilon outside the root", EVERY},
    {MEAN_SQUARE, "mean square for variance", EVERY},
    {MEAN_KEPT, "mean not subtracted", EVERY},
    {MEAN_TWICE, "mean subtracted twice", EVERY},
    {SUM_FOR_MEAN, "sum for mean", EVERY},
    {SAMPLE_VARIANCE, "H - 1 for H", FLOAT32},
    {COLUMN_LEFT_OUT, "a column left out", EVERY},
    {FIRST_COLUMN_LEFT_OUT, "the first column left out", EVERY},
    {NOT_ROOTED, "no root", EVERY},
    {ONE_PLUS_WEIGHT, "1 + w", EVERY},
    {NO_WEIGHT, "no weight", EVERY},
    {NO_BIAS, "no bias", BIASED},
    {BIAS_SUBTRACTED, "bias subtracted", BIASED},
    {BIAS_BEFORE_WEIGHT, "bias before weight", BIASED},
    {WEIGHT_AND_BIAS_SWAPPED, "weight and bias swapped", BIASED},
    {ONE_PERCENT_MORE, "1 % too large", EVERY},
    {ROUNDED_TO_FP8, "activations rounded to fp8", EVERY},
    {ALL_ZERO, "zeros", EVERY},
};

static void every_planted_mistake_fails_at_the_medium_size(void **state)
{
	(void)state;
	assert_mistakes_fail(&layernorm_op, problems, COUNT(problems), mistakes, COUNT(mistakes), SEEDS_OR_ONE(3), run);
}

static void an_unattested_epsilon_is_seen_in_the_reference(void **state)
{
	static const struct op_problem silent = PROBLEM("layernorm_h768", "layernorm", axes, mixed, out16);
	static const double epsilons[] = {1e-5, 1e-6, 1e-12, 3e-7, 0};
	struct op_constant found[OP_CONSTANTS];
	int64_t axis[TRIAL_AXES];

	(void)state;
	for (int i = 0; i < COUNT(epsilons); i++) {
		struct trial t;

		assert_int_equal(layernorm_op.constants(&silent, 0, found), 1);
		assert_true(isnan(found[0].value));
		layernorm_op.probe_axes(&silent, 0, axis);
		trial_open(&t, &layernorm_op, &silent, axis, 1);
		t.c.probe = 1;
		for (int input = 0; input < 3; input++)
			assert_int_equal(layernorm_op.fill(&t.c, input, &t.in[input], NULL), 0);
		t.c.constants[0].value = epsilons[i];
		assert_int_equal(layernorm_op.oracle(&t.c, t.in, t.out, NULL), 0);
		assert_int_equal(layernorm_op.probe(&t.c, t.in, t.out, found, NULL), 0);
		assert_true(fabs(found[0].value - epsilons[i]) <= 1e-9 * epsilons[i]);
		run(&t, ALL_ZERO);
		assert_int_equal(layernorm_op.probe(&t.c, t.in, t.out, found, NULL), -1);
		trial_close(&t);
	}
}

static void what_the_family_does_not_know_is_refused_with_the_reason(void **state)
{
	static const struct op_arg no_weight[] = {X(DTYPE_BFLOAT16)};
	static const struct op_arg ints[] = {X(DTYPE_INT32), WEIGHT(DTYPE_BFLOAT16)};
	static const struct op_arg odd[] = {X(DTYPE_BFLOAT16), {"weight", DTYPE_BFLOAT16, 1, {0}, false, NULL}};
	static const struct op_arg two[] = {
	    X(DTYPE_BFLOAT16), {"residual", DTYPE_BFLOAT16, 2, {0, 1}, false, NULL}, WEIGHT(DTYPE_BFLOAT16)};
	const struct op_problem cases[] = {
	    PROBLEM("a", "layernorm", axes, no_weight, out16), PROBLEM("b", "layernorm", axes, ints, out16),
	    PROBLEM("c", "layernorm", axes, odd, out16),       PROBLEM("d", "layernorm", axes, two, out16),
	    PROBLEM("rmsnorm", "norm", axes, unbiased, out16),
	};
	static const char *const parts[] = {"a weight", "int32", "shape", "inputs",
	                                    "has neither \"layernorm\" in its name nor a bias"};

	(void)state;
	for (int i = 0; i < COUNT(cases); i++)
		assert_refused(&layernorm_op, &cases[i], parts[i]);
	assert_int_equal(layernorm_roles_of(&problems[4]).bias, 1);
	assert_inputs_follow_the_seed(&layernorm_op, &problems[0], SIZE_MEDIUM);
}

static void right(struct trial *t)
{
	run(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	static const int edges[] = {1, 1, 1, 1, 1};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_int_equal(assert_edges_pass(&layernorm_op, &problems[p], right), edges[p]);
}

static void what_a_workload_must_not_provide_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_brought(&layernorm_op, &problems[0], 0, 2, (double)NAN, "holds NaN at [0, 2]");
	assert_brought(&layernorm_op, &problems[0], 1, -1, -INFINITY, "-infinity");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_correct_reference_passes_for_every_problem_size_and_seed),
	    cmocka_unit_test(every_planted_mistake_fails_at_the_medium_size),
	    cmocka_unit_test(an_unattested_epsilon_is_seen_in_the_reference),
	    cmocka_unit_test(what_the_family_does_not_know_is_refused_with_the_reason),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(what_a_workload_must_not_provide_is_reported_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
