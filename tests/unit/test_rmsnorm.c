/* test_rmsnorm - rmsnorm: a correct reference that computes in float32 passes for every seed, and references with
 * common mistakes fail.
 *
 * The mistakes are planted in a float32 emulation of a torch reference (`emulate`), not in the oracle. Each test is
 * about one kind of mistake that the inputs and tolerance rules are designed to find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/norm/rms.h"
#include "kernels/common/norm/rms_input_values.h"
#include "kernels/core/compare_tensors.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/op.h"
#include "tests/unit/seeds.h"

extern const struct op rmsnorm_op;

/* --- problems ------------------------------------------------------------------------------------------------ */

struct problem {
	struct op_axis axes[4];
	struct op_arg inputs[4], outputs[2];
	struct op_problem problem;
};

/* Builds a problem with the inputs hidden_states[batch, hidden] and weight[hidden]. If `fused`, there is also an input
 * residual, and an output for the updated residual. */
static void make_problem(struct problem *p, int64_t hidden, enum dtype dtype, bool fused)
{
	struct op_arg activation = {.name = "hidden_states", .dtype = dtype, .rank = 2, .axis = {0, 1}};

	*p = (struct problem){.axes = {{"batch_size", true, 0}, {"hidden_size", false, hidden}}};
	p->inputs[0] = activation;
	p->inputs[1] = (struct op_arg){.name = "weight", .dtype = dtype, .rank = 1, .axis = {1}};
	p->inputs[2] = activation;
	p->inputs[2].name = "residual";
	p->outputs[0] = activation;
	p->outputs[0].name = "output";
	p->outputs[1] = activation;
	p->outputs[1].name = "residual_out";
	p->problem = (struct op_problem){.name = "rmsnorm_test",
					 .op_type = "rmsnorm",
					 .description = "",
					 .axes = p->axes,
					 .axis_count = 2,
					 .inputs = p->inputs,
					 .input_count = fused ? 3 : 2,
					 .outputs = p->outputs,
					 .output_count = fused ? 2 : 1};
}

/* --- cases --------------------------------------------------------------------------------------------------- */

struct world {
	struct op_case c;
	int64_t axis[4];
	struct tensor in[4], truth[2], answer[2];
	int64_t rows, columns;
};

static struct tensor make_tensor(const struct op_case *c, const struct op_arg *arg)
{
	struct tensor t = {.dtype = arg->dtype, .rank = arg->rank, .elements = 1};

	for (int d = 0; d < arg->rank; d++)
		t.elements *= t.shape[d] = c->axis[arg->axis[d]];
	t.data = calloc((size_t)dtype_bytes(t.dtype, t.elements) + 1, 1);
	assert_non_null(t.data);
	return t;
}

static void make_world_of(struct world *w, const struct op_problem *problem, const int64_t *axis, double eps,
			  uint64_t seed, int probe, enum op_contents contents)
{
	struct err err = {""};

	*w = (struct world){.c = {.problem = problem, .axis = w->axis, .seed = seed, .probe = probe, .contents = contents}};
	memcpy(w->axis, axis, (size_t)problem->axis_count * sizeof *axis);
	w->c.variant = rmsnorm_op.match(problem, &err);
	assert_true(w->c.variant >= 0);
	w->c.constant_count = 1;
	w->c.constants[0] = (struct op_constant){.name = "eps", .value = eps};
	for (int i = 0; i < problem->input_count; i++) {
		if (problem->inputs[i].rank == OP_SCALAR) {
			w->c.scalar[i] = rmsnorm_op.scalar(&w->c, i);
			continue;
		}
		w->in[i] = make_tensor(&w->c, &problem->inputs[i]);
		assert_int_equal(rmsnorm_op.fill(&w->c, i, &w->in[i], &err), 0);
	}
	for (int i = 0; i < problem->output_count; i++) {
		w->truth[i] = make_tensor(&w->c, &problem->outputs[i]);
		w->answer[i] = make_tensor(&w->c, &problem->outputs[i]);
	}
	assert_int_equal(rmsnorm_op.oracle(&w->c, w->in, w->truth, &err), 0);
	rms_extent(&w->c, &w->rows, &w->columns);
}

static void make_world(struct world *w, const struct op_problem *problem, const int64_t *axis, double eps,
		       uint64_t seed, int probe)
{
	make_world_of(w, problem, axis, eps, seed, probe, CONTENTS_FIRST);
}

static void free_world(struct world *w)
{
	for (int i = 0; i < 4; i++)
		free(w->in[i].data);
	for (int i = 0; i < 2; i++) {
		free(w->truth[i].data);
		free(w->answer[i].data);
	}
}

/* --- correct references and mistakes ------------------------------------------------------------------------------ */

enum mistake {
	NONE,
	EPS_TEN_TIMES,
	EPS_A_TENTH,
	EPS_LEFT_OUT,
	EPS_OUTSIDE_THE_ROOT,
	VARIANCE,
	SUM_FOR_MEAN,
	ONE_PLUS_WEIGHT,
	WEIGHT_IGNORED,
	ONE_PERCENT_TOO_LARGE,
	MEAN_OVER_ONE_LESS,
	HIDDEN_IN_FP8,
	HIDDEN_IN_FP8_SATURATED,
	WEIGHT_IN_FP8,
	MEAN_OVER_THE_BATCH,
	ZEROS,
	FIRST_COLUMN_LEFT_OUT,
	LAST_COLUMN_LEFT_OUT,
	PLAIN_MISTAKES,
	RESIDUAL_IGNORED = PLAIN_MISTAKES,
	RESIDUAL_ADDED_AFTERWARDS,
	RESIDUAL_SUBTRACTED,
	SUM_ROUNDED_FIRST,
	MISTAKES
};

static const char *const mistake_names[MISTAKES] = {"none",
						    "eps ten times",
						    "eps a tenth",
						    "eps left out",
						    "eps outside the root",
						    "variance",
						    "sum for mean",
						    "one plus weight",
						    "weight ignored",
						    "one percent too large",
						    "mean over one less",
						    "hidden in fp8",
						    "hidden in fp8 saturated",
						    "weight in fp8",
						    "mean over the batch",
						    "zeros",
						    "first column left out",
						    "last column left out",
						    "residual ignored",
						    "residual added afterwards",
						    "residual subtracted",
						    "sum rounded first"};

static float in_fp8(float value, bool saturated)
{
	if (saturated)
		value = fmaxf(-448, fminf(448, value));
	return float_from_e4m3(e4m3_from_float(value));
}

static float rounded(float value, enum dtype dtype)
{
	float place = 0;

	dtype_store_float(&place, dtype, 0, value);
	return (float)dtype_load(&place, dtype, 0);
}

/* Computes x, a row of the sum of hidden states and residual, as a reference with this mistake computes it. */
static void emulate_sum(const struct world *w, enum mistake mistake, int64_t row, float *x)
{
	const struct tensor *hidden = &w->in[0], *residual = w->in[2].data == NULL ? NULL : &w->in[2];

	for (int64_t i = 0; i < w->columns; i++) {
		int64_t at = row * w->columns + i;
		float r = residual == NULL ? 0 : (float)dtype_load(residual->data, residual->dtype, at);

		x[i] = (float)dtype_load(hidden->data, hidden->dtype, at);
		if (mistake == HIDDEN_IN_FP8 || mistake == HIDDEN_IN_FP8_SATURATED)
			x[i] = in_fp8(x[i], mistake == HIDDEN_IN_FP8_SATURATED);
		if (mistake == RESIDUAL_SUBTRACTED)
			x[i] -= r;
		else if (mistake != RESIDUAL_IGNORED && mistake != RESIDUAL_ADDED_AFTERWARDS)
			x[i] += r;
		if (mistake == SUM_ROUNDED_FIRST)
			x[i] = rounded(x[i], hidden->dtype);
	}
}

/* Returns the mean square of x without column `skip` (-1: with all columns). Adds the squares in 8 float32 partial
 * sums, as vector code does. */
static float emulate_mean(const float *x, int64_t columns, enum mistake mistake, int64_t skip)
{
	float sums[8] = {0}, sum = 0, mean = 0;

	if (mistake == VARIANCE) {
		for (int64_t i = 0; i < columns; i++)
			sum += x[i];
		mean = sum / (float)columns;
		sum = 0;
	}
	for (int64_t i = 0; i < columns; i++)
		if (i != skip)
			sums[i % 8] += (x[i] - mean) * (x[i] - mean);
	for (int i = 0; i < 8; i++)
		sum += sums[i];
	return mistake == SUM_FOR_MEAN ? sum : sum / (float)(columns - (mistake == MEAN_OVER_ONE_LESS));
}

static void emulate_row(const struct world *w, enum mistake mistake, int64_t row, int64_t skip, const float *weight,
                        const float *batch_mean, float *x, struct tensor *out)
{
	float eps = (float)w->c.constants[0].value;

	eps = mistake == EPS_TEN_TIMES	? eps * 10
	      : mistake == EPS_A_TENTH	? eps / 10
	      : mistake == EPS_LEFT_OUT ? 0
					: eps;
	emulate_sum(w, mistake, row, x);
	float mean = emulate_mean(x, w->columns, mistake, skip);
	float inverse = mistake == EPS_OUTSIDE_THE_ROOT ? 1 / (sqrtf(mean) + eps) : 1 / sqrtf(mean + eps);

	for (int64_t i = 0; i < w->columns; i++) {
		int64_t at = row * w->columns + i;
		float scale = weight[i],
		      own = mistake == MEAN_OVER_THE_BATCH ? 1 / sqrtf(batch_mean[i] + eps) : inverse;

		scale = mistake == ONE_PLUS_WEIGHT ? 1 + scale : mistake == WEIGHT_IGNORED ? 1 : scale;
		scale = mistake == WEIGHT_IN_FP8 ? in_fp8(scale, false) : scale;
		float y = x[i] * own * scale;

		if (mistake == RESIDUAL_ADDED_AFTERWARDS)
			y += (float)dtype_load(w->in[2].data, w->in[2].dtype, at);
		y = mistake == ONE_PERCENT_TOO_LARGE ? y * 1.01f : mistake == ZEROS ? 0 : y;
		dtype_store_float(out->data, out->dtype, at, y);
	}
}

static float *floats(int64_t count)
{
	float *memory = calloc((size_t)count + 1, sizeof *memory);

	assert_non_null(memory);
	return memory;
}

static void batch_means(const struct world *w, float *mean, float *x)
{
	for (int64_t row = 0; row < w->rows; row++) {
		emulate_sum(w, NONE, row, x);
		for (int64_t i = 0; i < w->columns; i++)
			mean[i] += x[i] * x[i] / (float)w->rows;
	}
}

/* Computes the outputs: the norm, and the updated residual. The residual is always right, because no mistake affects
 * it. */
static void emulate(struct world *w, enum mistake mistake)
{
	float *x = floats(w->columns), *weight = floats(w->columns), *mean = floats(w->columns);
	int64_t skip = mistake == FIRST_COLUMN_LEFT_OUT ? 0 : mistake == LAST_COLUMN_LEFT_OUT ? w->columns - 1 : -1;

	for (int64_t i = 0; i < w->columns; i++)
		weight[i] = (float)dtype_load(w->in[1].data, w->in[1].dtype, i);
	batch_means(w, mean, x);
	for (int64_t row = 0; row < w->rows; row++) {
		emulate_row(w, mistake, row, skip, weight, mean, x, &w->answer[0]);
		emulate_sum(w, NONE, row, x);
		for (int64_t i = 0; i < w->columns && w->answer[1].data != NULL; i++)
			dtype_store_float(w->answer[1].data, w->answer[1].dtype, row * w->columns + i, x[i]);
	}
	free(x);
	free(weight);
	free(mean);
}

static bool passes(const struct world *w)
{
	bool passed = true;

	for (int i = 0; i < w->c.problem->output_count; i++) {
		struct metrics m;

		compare_host(w->answer[i].data, w->truth[i].data, w->truth[i].dtype, w->truth[i].elements,
		             rmsnorm_op.rule(&w->c, i), &m);
		assert_false(m.zeros_would_pass);
		passed = passed && m.passed;
	}
	return passed;
}

/* Returns true if one of the default cases catches the mistake. */
static bool caught(const struct op_problem *problem, enum mistake mistake, double eps, uint64_t seed)
{
	int64_t rows[8 * 4];
	bool found = false;

	for (int size = SIZE_SMALL; size <= SIZE_MEDIUM && !found; size++) {
		int count = rmsnorm_op.sizes(problem, 0, (enum op_size)size, rows, 8);

		for (int i = 0; i < count && !found; i++) {
			struct world w;

			make_world(&w, problem, rows + i * problem->axis_count, eps, seed, 0);
			emulate(&w, mistake);
			found = !passes(&w);
			free_world(&w);
		}
	}
	return found;
}

static const enum dtype dtypes[] = {DTYPE_BFLOAT16, DTYPE_FLOAT16, DTYPE_FLOAT32};

static void a_correct_reference_passes_for_every_seed(void **state)
{
	(void)state;
	for (int d = 0; d < 3; d++)
		for (int fused = 0; fused < 2; fused++)
			for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
				struct problem p;

				make_problem(&p, seed % 4 == 3 ? 1536 : 128, dtypes[d], fused);
				assert_false(caught(&p.problem, NONE, seed & 1 ? 1e-5 : 1e-6, seed));
			}
}

static void a_correct_reference_passes_at_the_widths_of_real_models(void **state)
{
	static const int64_t widths[] = {512, 2048, 3072, 4096, 5120, 5376, 7168, 8192};

	(void)state;
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
		struct problem p;

		make_problem(&p, widths[i], dtypes[i % 3], i & 1);
		assert_false(caught(&p.problem, NONE, 1e-6, i));
	}
}

static void assert_caught(int64_t width, enum dtype dtype, bool fused, double eps, uint64_t seed)
{
	struct problem p;

	make_problem(&p, width, dtype, fused);
	for (int mistake = NONE + 1; mistake < (fused ? MISTAKES : PLAIN_MISTAKES); mistake += MISTAKE_STEP) {
		if (mistake == SUM_ROUNDED_FIRST && dtype == DTYPE_FLOAT32)
			continue; /* in float32, rounding the sum to the dtype is no mistake */
		if (mistake == MEAN_OVER_ONE_LESS && dtype != DTYPE_FLOAT32)
			continue; /* only short rows show this mistake; the_exact_row_shows_half_a_unit tests short
				   * rows */
		if (!caught(&p.problem, (enum mistake)mistake, eps, seed))
			fail_msg("%s is not caught: %s, width %d, eps %g", mistake_names[mistake], dtype_name(dtype),
				 (int)width, eps);
	}
}

static void every_mistake_fails_at_the_default_sizes(void **state)
{
	(void)state;
	for (int d = 0; d < 3; d++)
		for (int fused = 0; fused < 2; fused++)
			for (uint64_t seed = 0; seed < SEEDS_OR_ONE(3); seed++) {
				assert_caught(128, dtypes[d], fused, 1e-6, seed);
				assert_caught(1536, dtypes[d], fused, 1e-5, seed);
			}
}

static void every_mistake_fails_at_the_widths_of_real_models(void **state)
{
	(void)state;
	assert_caught(4096, DTYPE_BFLOAT16, true, 1e-5, 0);
	assert_caught(7168, DTYPE_BFLOAT16, false, 1e-6, 0);
	assert_caught(8192, DTYPE_FLOAT16, true, 1e-6, 0);
}

static void a_wrong_epsilon_shows_even_in_a_batch_of_one(void **state)
{
	static const enum mistake wrong[] = {EPS_TEN_TIMES, EPS_A_TENTH, EPS_LEFT_OUT, EPS_OUTSIDE_THE_ROOT};
	int64_t axis[] = {1, 4096};

	(void)state;
	for (int d = 0; d < 3; d++)
		for (int m = 0; m < 4; m++)
			for (int e = 0; e < 2; e++) {
				struct problem p;
				struct world w;

				make_problem(&p, 4096, dtypes[d], false);
				make_world(&w, &p.problem, axis, e ? 1e-5 : 1e-6, 1, 0);
				emulate(&w, wrong[m]);
				assert_false(passes(&w));
				free_world(&w);
			}
}

/* Rounds x / rms to the dtype before the multiplication by the weight, as many references do. */
static void round_twice(struct world *w)
{
	float *x = floats(w->columns);

	emulate_sum(w, NONE, 0, x);
	float inverse = 1 / sqrtf(emulate_mean(x, w->columns, NONE, -1) + (float)w->c.constants[0].value);

	for (int64_t i = 0; i < w->columns; i++)
		dtype_store_float(w->answer[0].data, w->answer[0].dtype, i,
				  rounded(x[i] * inverse, w->answer[0].dtype) * (float)dtype_load(w->in[1].data, w->in[1].dtype, i));
	free(x);
}

/* In the second set of input values, a case with only one row is exact: all correct ways of rounding give the same
 * bits. Therefore even a mistake that changes the output by half a unit of its dtype is found. */
static void the_exact_row_shows_half_a_unit(void **state)
{
	static const int64_t most[] = {128, 1024}; /* the length of the row: for bfloat16, and for float16 */

	(void)state;
	for (int d = 0; d < 2; d++)
		for (int fused = 0; fused < 2; fused++)
			for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
				int64_t axis[] = {1, most[d]};
				struct problem p;
				struct world w;

				make_problem(&p, most[d], dtypes[d], fused);
				make_world_of(&w, &p.problem, axis, 1e-6, seed, 0, CONTENTS_SECOND);
				emulate(&w, NONE);
				assert_true(passes(&w));
				round_twice(&w);
				assert_true(passes(&w));
				emulate(&w, MEAN_OVER_ONE_LESS);
				assert_false(passes(&w));
				free_world(&w);
			}
}

/* Computes the row in which `column` has a spike, with the mistake that the mean leaves out this column. Returns true
 * if the comparison of this row fails. */
static bool column_shows(const struct world *w, const float *weight, float *x, struct tensor *out, int64_t column)
{
	int64_t row = RMS_SPIKE_ROW + column / RMS_SPIKES, first = row * w->columns;
	int64_t offset = dtype_bytes(out->dtype, first);
	struct metrics m;

	if (row >= w->rows)
		return false;
	emulate_row(w, NONE, row, column, weight, NULL, x, out);
	compare_host((const char *)out->data + offset, (const char *)w->truth[0].data + offset, out->dtype, w->columns,
	             rmsnorm_op.rule(&w->c, 0), &m);
	return !m.passed;
}

static void assert_every_column_shows(int64_t width, enum dtype dtype, bool fused)
{
	float *x = floats(width), *weight = floats(width);
	int64_t rows[2 * 4];
	struct problem p;
	struct world w;

	make_problem(&p, width, dtype, fused);
	assert_int_equal(rmsnorm_op.sizes(&p.problem, 0, SIZE_MEDIUM, rows, 1), 1);
	make_world(&w, &p.problem, rows, 1e-6, 7, 0);
	for (int64_t i = 0; i < width; i++)
		weight[i] = (float)dtype_load(w.in[1].data, dtype, i);
	for (int64_t column = 0; column < width; column++)
		if (!column_shows(&w, weight, x, &w.answer[0], column))
			fail_msg("column %d of %d could be left out: %s", (int)column, (int)width, dtype_name(dtype));
	free_world(&w);
	free(x);
	free(weight);
}

static void any_single_column_left_out_of_the_reduction_fails(void **state)
{
	(void)state;
	assert_every_column_shows(128, DTYPE_BFLOAT16, false);
	assert_every_column_shows(1536, DTYPE_BFLOAT16, true);
	assert_every_column_shows(4096, DTYPE_BFLOAT16, false);
	assert_every_column_shows(8192, DTYPE_BFLOAT16, true);
	assert_every_column_shows(2048, DTYPE_FLOAT16, true);
	assert_every_column_shows(128, DTYPE_FLOAT32, false);
}

static void a_row_of_zeros_gives_zeros(void **state)
{
	int64_t axis[] = {8, 64};
	struct problem p;
	struct world w;

	(void)state;
	make_problem(&p, 64, DTYPE_BFLOAT16, true);
	make_world(&w, &p.problem, axis, 1e-6, 0, 0);
	for (int64_t i = 64; i < 128; i++) {
		assert_true(dtype_load(w.in[0].data, DTYPE_BFLOAT16, i) == 0);
		assert_true(dtype_load(w.truth[0].data, DTYPE_BFLOAT16, i) == 0);
	}
	free_world(&w);
}

static void with_an_epsilon_of_zero_no_row_is_zero(void **state)
{
	struct problem p;

	(void)state;
	make_problem(&p, 128, DTYPE_FLOAT32, false);
	assert_false(caught(&p.problem, NONE, 0, 0));
	make_problem(&p, 128, DTYPE_BFLOAT16, true);
	assert_false(caught(&p.problem, NONE, 0, 0));
}

static void epsilon_is_a_constant_that_something_attests(void **state)
{
	struct op_constant out[OP_CONSTANTS];
	struct problem p;

	(void)state;
	make_problem(&p, 64, DTYPE_BFLOAT16, false);
	p.problem.description = "Epsilon is fixed at 1e-5.";
	assert_int_equal(rmsnorm_op.constants(&p.problem, 0, out), 1);
	assert_string_equal(out[0].name, "eps");
	assert_true(out[0].value == 1e-5);
	assert_string_equal(out[0].source, "description");
}

static void an_epsilon_that_is_an_argument_is_used_as_given(void **state)
{
	int64_t axis[] = {8, 64};
	struct op_constant none[OP_CONSTANTS];
	struct problem p;
	struct world w;

	(void)state;
	make_problem(&p, 64, DTYPE_FLOAT16, false);
	p.inputs[2] = (struct op_arg){.name = "eps", .dtype = DTYPE_FLOAT32, .rank = OP_SCALAR};
	p.problem.input_count = 3;
	assert_int_equal(rmsnorm_op.constants(&p.problem, 0, none), 0);
	make_world(&w, &p.problem, axis, NAN, 0, 0);
	w.c.constants[0].value = w.c.scalar[2];
	emulate(&w, NONE);
	assert_true(passes(&w));
	w.c.constants[0].value = 1e-5; /* simulates a reference with the epsilon 1e-5 */
	emulate(&w, NONE);
	assert_false(passes(&w));
	free_world(&w);
}

/* The fill kernel of a GPU computes one element at a time, and the host computes four at a time. Both must give the
 * same values. */
static void the_host_fills_what_each_element_alone_would_be(void **state)
{
	int64_t axis[] = {41, 77};
	struct problem p;
	struct world w;

	(void)state;
	make_problem(&p, 77, DTYPE_BFLOAT16, true);
	make_world(&w, &p.problem, axis, 1e-6, 3, 0);
	for (int i = 0; i < 3; i++) {
		const struct rms_recipe f = rms_recipe_of(&w.c, 0, i);

		for (int64_t e = 0; e < w.in[i].elements; e++)
			assert_int_equal(((uint16_t *)w.in[i].data)[e],
			                 bf16_from_float(rms_element(&f, e, philox_bits(f.key, e))));
	}
	free_world(&w);
}

static void sizes_give_every_var_axis_a_value(void **state)
{
	struct problem p;
	int64_t axis[8 * 4];

	(void)state;
	make_problem(&p, 128, DTYPE_BFLOAT16, false);
	p.axes[2] = (struct op_axis){"heads", false, 8};
	p.axes[3] = (struct op_axis){"sequence", true, 0};
	p.problem.axis_count = 4;
	for (int i = 0; i < 3; i++) {
		struct op_arg *arg = i == 2 ? &p.outputs[0] : &p.inputs[i];

		if (i == 1)
			continue;
		arg->rank = 4;
		memcpy(arg->axis, (int[]){0, 3, 2, 1}, 4 * sizeof(int));
	}
	for (int size = 0; size < SIZE_COUNT; size++) {
		int count = rmsnorm_op.sizes(&p.problem, 0, (enum op_size)size, axis, 8);

		assert_int_equal(count, size == SIZE_SMALL ? 2 : 1);
		for (int i = 0; i < count; i++) {
			int64_t *row = axis + i * 4;

			assert_true(row[0] >= 1 && row[3] >= 1);
			assert_int_equal(row[1], 128);
			assert_int_equal(row[2], 8);
			assert_true(size != SIZE_MEDIUM || row[0] * row[2] * row[3] >= 256);
		}
	}
	assert_int_equal(rmsnorm_op.sizes(&p.problem, 0, SIZE_SMALL, axis, 1), 1);
	assert_false(caught(&p.problem, NONE, 1e-6, 0));
	assert_true(caught(&p.problem, EPS_TEN_TIMES, 1e-6, 0));
}

/* --- matching -------------------------------------------------------------------------------------------------- */

static void problems_that_do_not_fit_are_refused_with_a_sentence(void **state)
{
	struct problem p;
	struct err why;

	(void)state;
	make_problem(&p, 64, DTYPE_BFLOAT16, true);
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), RMS_FUSED_ADD);
	p.inputs[2].rank = 1;
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), -1);
	make_problem(&p, 64, DTYPE_BFLOAT16, false);
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), RMS_PLAIN);
	p.outputs[0].dtype = DTYPE_FLOAT8_E4M3FN;
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), -1);
	assert_string_equal(why.text, "output 'output' is float8_e4m3fn; expected float32, float16 or bfloat16");
	make_problem(&p, 64, DTYPE_BFLOAT16, false);
	p.inputs[1].axis[0] = 0;
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), -1);
	assert_string_equal(why.text,
			    "input 'weight' has shape [batch_size]; expected [batch_size, hidden_size] like output "
			    "'output', or only the last axis of that shape");
	make_problem(&p, 64, DTYPE_BFLOAT16, false);
	p.problem.output_count = 2;
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), -1);
	make_problem(&p, 64, DTYPE_BFLOAT16, false);
	p.problem.input_count = 1;
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), -1);
	assert_string_equal(why.text, "the inputs lack a weight (a tensor with one axis)");
	make_problem(&p, 64, DTYPE_BFLOAT16, true);
	p.inputs[2] = (struct op_arg){.name = "bias", .dtype = DTYPE_BFLOAT16, .rank = 1, .axis = {1}};
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), -1);
	make_problem(&p, 64, DTYPE_BFLOAT16, false);
	p.problem.output_count = 0;
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), -1);
	make_problem(&p, 64, DTYPE_BFLOAT16, false);
	p.problem.name = "gemma_rmsnorm_h64";
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), -1);
	p.problem.name = "fused_rmsnorm_silu_h64";
	assert_int_equal(rmsnorm_op.match(&p.problem, &why), -1);
	assert_string_equal(why.text, "the definition's name says 'silu', which a norm does not compute");
	p.problem.name = "rmsnorm_silus_h64";
	assert_true(rmsnorm_op.match(&p.problem, &why) >= 0);
}

static void names_decide_only_where_shapes_do_not(void **state)
{
	struct problem p;
	struct rms_roles roles;

	(void)state;
	make_problem(&p, 64, DTYPE_BFLOAT16, true);
	p.inputs[0].name = "residual_in";
	p.inputs[2].name = "x";
	p.outputs[0].name = "residual_out";
	p.outputs[1].name = "y";
	roles = rms_roles_of(&p.problem);
	assert_int_equal(roles.hidden, 2);
	assert_int_equal(roles.residual, 0);
	assert_int_equal(roles.weight, 1);
	assert_int_equal(roles.output, 1);
	assert_int_equal(roles.updated, 0);
	make_problem(&p, 64, DTYPE_BFLOAT16, false);
	p.inputs[0].rank = p.outputs[0].rank = 1;
	p.inputs[0].axis[0] = p.outputs[0].axis[0] = 1;
	roles = rms_roles_of(&p.problem);
	assert_int_equal(roles.hidden, 0);
	assert_int_equal(roles.weight, 1);
	assert_int_equal(rmsnorm_op.match(&p.problem, NULL), RMS_PLAIN);
}

/* --- epsilon --------------------------------------------------------------------------------------------------- */

/* Runs a reference with epsilon `eps` on the probing case. Returns the result of op.probe, which recovers the epsilon
 * from the output. */
static int recovered(enum dtype dtype, bool fused, double eps, enum mistake mistake, double *value)
{
	struct op_constant found[OP_CONSTANTS] = {{.value = NAN}};
	int64_t axis[4];
	struct err err = {""};
	struct problem p;
	struct world w;

	make_problem(&p, 96, dtype, fused);
	rmsnorm_op.probe_axes(&p.problem, 0, axis);
	make_world(&w, &p.problem, axis, NAN, 0, 1);
	w.c.constants[0].value = eps;
	emulate(&w, mistake);
	w.c.constants[0].value = NAN;
	int status = rmsnorm_op.probe(&w.c, w.in, w.answer, found, &err);

	assert_true(status == 0 || err.text[0] != '\0');
	*value = found[0].value;
	free_world(&w);
	return status;
}

static void an_epsilon_that_nothing_attests_is_recovered_by_probing(void **state)
{
	static const double epsilons[] = {1e-5, 1e-6, 1e-8, 5e-6, 1e-3, 0x1p-23, 0};
	double value;

	(void)state;
	for (int d = 0; d < 3; d++)
		for (int fused = 0; fused < 2; fused++)
			for (size_t e = 0; e < sizeof epsilons / sizeof *epsilons; e++) {
				assert_int_equal(recovered(dtypes[d], fused, epsilons[e], NONE, &value), 0);
				assert_true(value == epsilons[e]);
			}
	assert_int_equal(recovered(DTYPE_BFLOAT16, false, 1e-12, NONE, &value), 0);
	assert_true(value == 1e-12);
}

static void probing_an_answer_that_is_no_norm_recovers_nothing(void **state)
{
	double value;

	(void)state;
	assert_int_equal(recovered(DTYPE_BFLOAT16, false, 1e-6, ZEROS, &value), -1);
	assert_int_equal(recovered(DTYPE_BFLOAT16, false, 1e-6, ONE_PLUS_WEIGHT, &value), -1);
	assert_int_equal(recovered(DTYPE_FLOAT32, false, 1.234e-6, NONE, &value), -1);
}

static void no_rows_are_an_edge_and_nan_is_not_accepted_from_a_workload(void **state)
{
	struct err why = {""};
	struct problem p;
	struct world w;
	int64_t axis[4];

	(void)state;
	make_problem(&p, 128, DTYPE_BFLOAT16, true);
	assert_string_equal(rmsnorm_op.edges[0].name, "no_rows");
	assert_true(rmsnorm_op.edge_axes(&p.problem, 0, 1, axis));
	make_world(&w, &p.problem, axis, 1e-6, 1, 0);
	assert_int_equal(w.rows, 0);
	free_world(&w);
	axis[0] = 4;
	make_world(&w, &p.problem, axis, 1e-6, 1, 0);
	dtype_store(w.in[2].data, w.in[2].dtype, 130, (double)NAN);
	assert_int_equal(rmsnorm_op.check(&w.c, w.in, &why), 0); /* op.check does not look at values that the family
								  * itself filled in */
	w.c.given = 1 << 2;
	assert_int_equal(rmsnorm_op.check(&w.c, w.in, &why), -1);
	assert_non_null(strstr(why.text, "input 'residual' holds NaN at [1, 2]"));
	free_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_correct_reference_passes_for_every_seed),
	    cmocka_unit_test(a_correct_reference_passes_at_the_widths_of_real_models),
	    cmocka_unit_test(every_mistake_fails_at_the_default_sizes),
	    cmocka_unit_test(every_mistake_fails_at_the_widths_of_real_models),
	    cmocka_unit_test(a_wrong_epsilon_shows_even_in_a_batch_of_one),
	    cmocka_unit_test(the_exact_row_shows_half_a_unit),
	    cmocka_unit_test(any_single_column_left_out_of_the_reduction_fails),
	    cmocka_unit_test(a_row_of_zeros_gives_zeros),
	    cmocka_unit_test(with_an_epsilon_of_zero_no_row_is_zero),
	    cmocka_unit_test(epsilon_is_a_constant_that_something_attests),
	    cmocka_unit_test(an_epsilon_that_is_an_argument_is_used_as_given),
	    cmocka_unit_test(the_host_fills_what_each_element_alone_would_be),
	    cmocka_unit_test(sizes_give_every_var_axis_a_value),
	    cmocka_unit_test(problems_that_do_not_fit_are_refused_with_a_sentence),
	    cmocka_unit_test(names_decide_only_where_shapes_do_not),
	    cmocka_unit_test(an_epsilon_that_nothing_attests_is_recovered_by_probing),
	    cmocka_unit_test(probing_an_answer_that_is_no_norm_recovers_nothing),
	    cmocka_unit_test(no_rows_are_an_edge_and_nan_is_not_accepted_from_a_workload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
