/* test_gemma_rmsnorm - the norms of the model Gemma: correct references in float32 pass for every seed, and references
 * with common mistakes fail. */
#include "tests/unit/trial.h"

#include "kernels/common/norm/rms.h"
#include "tests/unit/seeds.h"

extern const struct op gemma_rmsnorm_op, rmsnorm_op;

enum { SEEDS = MANY_SEEDS, H = 1024 };

static const struct op_axis axes[] = {{"batch_size", true, 0}, {"hidden_size", false, H}};

#define HIDDEN(dtype) {"hidden_states", dtype, 2, {0, 1}, false, NULL}
#define RESIDUAL(dtype) {"residual", dtype, 2, {0, 1}, false, NULL}
#define WEIGHT(dtype) {"weight", dtype, 1, {1}, false, NULL}
static const struct op_arg plain[] = {HIDDEN(DTYPE_BFLOAT16), WEIGHT(DTYPE_BFLOAT16)};
static const struct op_arg half[] = {HIDDEN(DTYPE_FLOAT16), WEIGHT(DTYPE_FLOAT16)};
static const struct op_arg wide[] = {HIDDEN(DTYPE_FLOAT32), WEIGHT(DTYPE_FLOAT32)};
static const struct op_arg given[] = {
    HIDDEN(DTYPE_BFLOAT16), WEIGHT(DTYPE_BFLOAT16), {"eps", DTYPE_FLOAT32, OP_SCALAR, {0}, false, NULL}};
static const struct op_arg fused[] = {HIDDEN(DTYPE_BFLOAT16), RESIDUAL(DTYPE_BFLOAT16), WEIGHT(DTYPE_BFLOAT16)};
static const struct op_arg fused_half[] = {HIDDEN(DTYPE_FLOAT16), RESIDUAL(DTYPE_FLOAT16), WEIGHT(DTYPE_FLOAT16)};
static const struct op_arg out16[] = {{"output", DTYPE_BFLOAT16, 2, {0, 1}, false, NULL}};
static const struct op_arg out_half[] = {{"output", DTYPE_FLOAT16, 2, {0, 1}, false, NULL}};
static const struct op_arg out32[] = {{"output", DTYPE_FLOAT32, 2, {0, 1}, false, NULL}};
static const struct op_arg both[] = {{"output", DTYPE_BFLOAT16, 2, {0, 1}, false, NULL},
                                     {"residual_out", DTYPE_BFLOAT16, 2, {0, 1}, false, NULL}};

static const struct op_problem problems[] = {
    PROBLEM("gemma_rmsnorm_h1024", "rmsnorm", axes, plain, out16),
    PROBLEM("gemma_rmsnorm_f16", "rmsnorm", axes, half, out_half),
    PROBLEM("gemma_rmsnorm_f32", "rmsnorm", axes, wide, out32),
    PROBLEM("gemma_rmsnorm_given", "norm", axes, given, out16),
    PROBLEM("gemma_fused_add_rmsnorm_h1024", "rmsnorm", axes, fused, both),
    PROBLEM("gemma_fused_add_rmsnorm_f16", "rmsnorm", axes, fused_half, out_half),
};
enum { FIRST_FUSED = 4 };

enum mistake {
	NONE,
	PLAIN_WEIGHT,
	NO_WEIGHT,
	ONE_MINUS,
	EPSILON_LARGE,
	EPSILON_NONE,
	EPSILON_OUTSIDE,
	VARIANCE,
	SUM_FOR_MEAN,
	COLUMN_LEFT_OUT,
	LAST_COLUMN_LEFT_OUT,
	NOT_ROOTED,
	ONE_PERCENT_MORE,
	ROUNDED_TO_FP8,
	ADDED_ROUNDED,
	RESIDUAL_LEFT_OUT,
	RESIDUAL_SUBTRACTED,
	RESIDUAL_UNCHANGED,
	ALL_ZERO,
};

static float round_to(enum dtype dtype, float value)
{
	double stored[1] = {0}; /* room for one element of any dtype */

	dtype_store_float(stored, dtype, 0, value);
	return (float)dtype_load(stored, dtype, 0);
}

static void run_row(struct trial *t, int64_t row, const float *w, float *x, enum mistake mistake)
{
	struct rms_roles roles = rms_roles_of(t->problem);
	float eps = roles.eps >= 0 ? (float)t->c.scalar[roles.eps] : 1e-6f, squares = 0, sum = 0;

	eps = mistake == EPSILON_LARGE ? 10 * eps : mistake == EPSILON_NONE || mistake == EPSILON_OUTSIDE ? 0 : eps;
	for (int64_t c = 0; c < H; c++) {
		float residual =
		    roles.residual >= 0 && mistake != RESIDUAL_LEFT_OUT ? get(&t->in[roles.residual], row * H + c) : 0;

		x[c] = get(&t->in[roles.hidden], row * H + c) + (mistake == RESIDUAL_SUBTRACTED ? -residual : residual);
		x[c] = mistake == ROUNDED_TO_FP8 ? float_from_e4m3(e4m3_from_float(x[c])) : x[c];
		x[c] = mistake == ADDED_ROUNDED ? round_to(t->in[roles.hidden].dtype, x[c]) : x[c];
		if ((mistake != COLUMN_LEFT_OUT || c != 777) && (mistake != LAST_COLUMN_LEFT_OUT || c != H - 1))
			squares += x[c] * x[c];
		sum += x[c];
	}
	float mean = squares / (mistake == SUM_FOR_MEAN ? 1 : H) - (mistake == VARIANCE ? sum / H * (sum / H) : 0);
	float root = mistake == NOT_ROOTED ? mean + eps : sqrtf(mean + eps) + (mistake == EPSILON_OUTSIDE ? 1e-6f : 0);

	for (int64_t c = 0; c < H; c++) {
		float scale = mistake == PLAIN_WEIGHT ? w[c]
		              : mistake == NO_WEIGHT  ? 1
		              : mistake == ONE_MINUS  ? 1 - w[c]
		                                      : 1 + w[c];

		float y = mistake == ALL_ZERO ? 0 : x[c] / root * scale * (mistake == ONE_PERCENT_MORE ? 1.01f : 1);

		set(&t->out[roles.output], row * H + c, y);
		if (roles.updated >= 0)
			set(&t->out[roles.updated], row * H + c,
			    mistake == RESIDUAL_UNCHANGED ? get(&t->in[roles.residual], row * H + c) : x[c]);
	}
}

/* Emulates the reference with the planted mistake. */
static void run(struct trial *t, int mistake)
{
	float w[H], x[H];

	for (int64_t c = 0; c < H; c++)
		w[c] = get(&t->in[rms_roles_of(t->problem).weight], c);
	for (int64_t row = 0; row < t->out[0].shape[0]; row++)
		run_row(t, row, w, x, mistake);
}

static void a_correct_reference_passes_for_every_problem_size_and_seed(void **state)
{
	static const int ways[] = {NONE, TRIAL_END};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&gemma_rmsnorm_op, &problems[p], SEEDS, run, ways);
}

/* Sets of problems (bit p stands for problem p): all problems, and those that also add a residual. */
enum { EVERY = 63, FUSED = 3 << FIRST_FUSED };

static const struct planted_mistake mistakes[] = {
    {PLAIN_WEIGHT, "w for 1 + w", EVERY},
    {NO_WEIGHT, "no weight", EVERY},
    {ONE_MINUS, "1 - w", EVERY},
    {EPSILON_LARGE, "epsilon ten times as large", EVERY},
    {EPSILON_NONE, "no epsilon", EVERY},
    {EPSILON_OUTSIDE, "epsilon outside the root", EVERY},
    {VARIANCE, "variance for mean square", EVERY},
    {SUM_FOR_MEAN, "sum for mean", EVERY},
    {COLUMN_LEFT_OUT, "a column left out", EVERY},
    {LAST_COLUMN_LEFT_OUT, "the last column left out", EVERY},
    {NOT_ROOTED, "no root", EVERY},
    {ONE_PERCENT_MORE, "1 % too large", EVERY},
    {ROUNDED_TO_FP8, "activations rounded to fp8", EVERY},
    {ADDED_ROUNDED, "sum rounded before the mean", FUSED},
    {RESIDUAL_LEFT_OUT, "residual left out", FUSED},
    {RESIDUAL_SUBTRACTED, "residual subtracted", FUSED},
    {RESIDUAL_UNCHANGED, "residual returned unchanged", 1 << FIRST_FUSED},
    {ALL_ZERO, "zeros", EVERY},
};

static void every_planted_mistake_fails_at_the_medium_size(void **state)
{
	(void)state;
	assert_mistakes_fail(&gemma_rmsnorm_op, problems, COUNT(problems), mistakes, COUNT(mistakes), SEEDS_OR_ONE(3), run);
}

static void a_gemma_norm_is_recognised_by_name_or_api_and_not_by_its_model(void **state)
{
	static const char *const api[] = {"status:verified", "fi_api:flashinfer.norm.gemma_rmsnorm"};
	static const char *const model[] = {"status:verified", "model:gemma-3-27b", "fi_api:flashinfer.norm.rmsnorm"};
	struct op_problem problem = problems[0];

	(void)state;
	problem.name = "rmsnorm_h5376";
	assert_refused(&gemma_rmsnorm_op, &problem, "gemma_");
	problem.tags = model;
	problem.tag_count = 3;
	assert_refused(&gemma_rmsnorm_op, &problem, "gemma_");
	assert_int_equal(rmsnorm_op.match(&problem, NULL), 0);
	problem.tags = api;
	problem.tag_count = 2;
	assert_int_equal(gemma_rmsnorm_op.match(&problem, NULL), RMS_PLAIN);
}

static void epsilon_is_attested_or_that_of_every_published_gemma(void **state)
{
	struct op_constant found[OP_CONSTANTS];
	struct op_problem problem = problems[0];

	(void)state;
	assert_int_equal(gemma_rmsnorm_op.constants(&problem, 0, found), 1);
	assert_true(found[0].value == 1e-6);
	assert_string_equal(found[0].source, "every published Gemma");
	problem.description = "Epsilon is fixed at 1e-5.";
	assert_int_equal(gemma_rmsnorm_op.constants(&problem, 0, found), 1);
	assert_true(found[0].value == 1e-5);
	assert_int_equal(gemma_rmsnorm_op.constants(&problems[3], 0, found), 0);
}

static void what_the_family_does_not_know_is_refused_with_the_reason(void **state)
{
	static const struct op_arg no_weight[] = {HIDDEN(DTYPE_BFLOAT16)};
	static const struct op_arg ints[] = {HIDDEN(DTYPE_INT32), WEIGHT(DTYPE_BFLOAT16)};
	static const struct op_arg odd[] = {HIDDEN(DTYPE_BFLOAT16), {"weight", DTYPE_BFLOAT16, 1, {0}, false, NULL}};
	static const struct op_arg scalar[] = {
	    HIDDEN(DTYPE_BFLOAT16), WEIGHT(DTYPE_BFLOAT16), {"alpha", DTYPE_FLOAT32, OP_SCALAR, {0}, false, NULL}};
	const struct op_problem cases[] = {
	    PROBLEM("gemma_a", "rmsnorm", axes, no_weight, out16), PROBLEM("gemma_b", "rmsnorm", axes, ints, out16),
	    PROBLEM("gemma_c", "rmsnorm", axes, odd, out16),       PROBLEM("gemma_d", "rmsnorm", axes, scalar, out16),
	    PROBLEM("gemma_e", "rmsnorm", axes, plain, both),
	};
	static const char *const parts[] = {"a weight", "int32", "shape", "alpha", "none of its inputs is a residual"};

	(void)state;
	for (int i = 0; i < COUNT(cases); i++)
		assert_refused(&gemma_rmsnorm_op, &cases[i], parts[i]);
	assert_inputs_follow_the_seed(&gemma_rmsnorm_op, &problems[FIRST_FUSED], SIZE_MEDIUM);
}

static void right(struct trial *t)
{
	run(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	static const int edges[] = {1, 1, 1, 1, 1, 1};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_int_equal(assert_edges_pass(&gemma_rmsnorm_op, &problems[p], right), edges[p]);
}

static void what_a_workload_must_not_provide_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_brought(&gemma_rmsnorm_op, &problems[0], 0, 2, (double)NAN, "holds NaN at [0, 2]");
	assert_brought(&gemma_rmsnorm_op, &problems[0], 1, -1, (double)INFINITY, "infinity");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_correct_reference_passes_for_every_problem_size_and_seed),
	    cmocka_unit_test(every_planted_mistake_fails_at_the_medium_size),
	    cmocka_unit_test(a_gemma_norm_is_recognised_by_name_or_api_and_not_by_its_model),
	    cmocka_unit_test(epsilon_is_attested_or_that_of_every_published_gemma),
	    cmocka_unit_test(what_the_family_does_not_know_is_refused_with_the_reason),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(what_a_workload_must_not_provide_is_reported_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
