/* test_gemm - a correct reference of gemm that sums in float32 passes for every seed, and references with common
 * mistakes fail. The mistakes are planted in an emulation of a torch reference, not in the oracle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/compare_tensors.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/op.h"
#include "kernels/gemm/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op gemm_op;

struct problem {
	struct op_axis axes[4];
	struct op_arg inputs[2], output;
	struct op_problem problem;
};

/* Builds the problem C[M, N] = A[M, K] B[N, K]^T, or A[M, K] B[K, N] if `nn`. M is a var axis. */
static void make_problem(struct problem *p, int64_t n, int64_t k, enum dtype dtype, bool nn)
{
	*p = (struct problem){.axes = {{"M", true, 0}, {"N", false, n}, {"K", false, k}}};
	p->inputs[0] = (struct op_arg){.name = "A", .dtype = dtype, .rank = 2, .axis = {0, 2}};
	p->inputs[1] = (struct op_arg){.name = "B", .dtype = dtype, .rank = 2, .axis = {nn ? 2 : 1, nn ? 1 : 2}};
	p->output = (struct op_arg){.name = "C", .dtype = dtype, .rank = 2, .axis = {0, 1}};
	p->problem = (struct op_problem){.name = "gemm_test",
					 .op_type = "gemm",
					 .axes = p->axes,
					 .axis_count = 3,
					 .inputs = p->inputs,
					 .input_count = 2,
					 .outputs = &p->output,
					 .output_count = 1};
}

struct world {
	struct op_case c;
	int64_t axis[4];
	struct tensor in[2], truth, answer;
	float *a, *b; /* a is [M][K] and b is [N][K], whatever the layout of B in the problem */
	struct gemm_extent e;
};

static void *memory_for(int64_t bytes)
{
	void *memory = calloc((size_t)bytes + 1, 1);

	assert_non_null(memory);
	return memory;
}

static struct tensor make_tensor(const struct op_case *c, const struct op_arg *arg)
{
	struct tensor t = {.dtype = arg->dtype, .rank = arg->rank, .elements = 1};

	for (int d = 0; d < arg->rank; d++)
		t.elements *= t.shape[d] = c->axis[arg->axis[d]];
	t.data = memory_for(dtype_bytes(t.dtype, t.elements));
	return t;
}

static void make_world_on(struct world *w, const struct op_problem *problem, const int64_t *axis, uint64_t seed,
                          enum op_contents contents)
{
	struct err err = {""};

	*w = (struct world){.c = {.problem = problem, .axis = w->axis}};
	op_case_set_contents(&w->c, seed, contents);
	memcpy(w->axis, axis, (size_t)problem->axis_count * sizeof *axis);
	w->c.variant = gemm_op.match(problem, &err);
	assert_true(w->c.variant >= 0);
	w->e = gemm_extent_of(&w->c);
	for (int i = 0; i < 2; i++) {
		w->in[i] = make_tensor(&w->c, &problem->inputs[i]);
		assert_int_equal(gemm_op.fill(&w->c, i, &w->in[i], &err), 0);
	}
	w->truth = make_tensor(&w->c, &problem->outputs[0]);
	w->answer = make_tensor(&w->c, &problem->outputs[0]);
	assert_int_equal(gemm_op.oracle(&w->c, w->in, &w->truth, &err), 0);
	w->a = memory_for(w->e.m * w->e.k * 4);
	w->b = memory_for(w->e.n * w->e.k * 4);
	for (int64_t i = 0; i < w->e.m * w->e.k; i++)
		w->a[i] = (float)dtype_load(w->in[w->e.a].data, w->in[w->e.a].dtype, i);
	for (int64_t n = 0; n < w->e.n; n++)
		for (int64_t k = 0; k < w->e.k; k++)
			w->b[n * w->e.k + k] = (float)dtype_load(w->in[w->e.b].data, w->in[w->e.b].dtype,
			                                         w->e.nn ? k * w->e.n + n : n * w->e.k + k);
}

static void make_world(struct world *w, const struct op_problem *problem, const int64_t *axis, uint64_t seed)
{
	make_world_on(w, problem, axis, seed, CONTENTS_FIRST);
}

static void free_world(struct world *w)
{
	free(w->in[0].data);
	free(w->in[1].data);
	free(w->truth.data);
	free(w->answer.data);
	free(w->a);
	free(w->b);
}

enum mistake {
	NONE,
	FIRST_K_LEFT_OUT,
	LAST_K_LEFT_OUT,
	ONE_K_LEFT_OUT,
	ONE_PERCENT_TOO_LARGE,
	A_IN_FP8,
	B_IN_FP8,
	ZEROS,
	TWICE,
	ONE_ROW_TOO_LOW,
	PLAIN_MISTAKES,
	NOT_TRANSPOSED = PLAIN_MISTAKES, /* this mistake is possible only if N = K */
	SWAPPED,                        /* this mistake is possible only if M = N */
	SUM_IN_THE_DTYPE,               /* only for float16 and bfloat16: sums in the dtype itself */
	PARTS_IN_THE_DTYPE,             /* sums of 64 products in float32, added in float16 or bfloat16 */
	HALVES_IN_THE_DTYPE,            /* two halves of K, each summed in float32 and rounded */
	IN_TF32,                        /* only for float32 */
	MISTAKES
};

static float rounded(float value, enum dtype dtype)
{
	float place = 0;

	dtype_store_float(&place, dtype, 0, value);
	return (float)dtype_load(&place, dtype, 0);
}

static float in_tf32(float value)
{
	return float_from_bits((float_bits(value) + 0x1000) & 0xffffe000u);
}

static float take_sums(float *sums)
{
	float sum = 0;

	for (int i = 0; i < 8; i++) {
		sum += sums[i];
		sums[i] = 0;
	}
	return sum;
}

/* Sums products in 8 float32 partial sums, as vector code does. */
NOT_INSTRUMENTED
static float dot(const float *a, const float *b, int64_t count)
{
	float sums[8] = {0};
	int64_t k = 0;

	for (; k + 8 <= count; k += 8)
		for (int i = 0; i < 8; i++)
			sums[i] += a[k + i] * b[k + i];
	for (; k < count; k++)
		sums[k % 8] += a[k] * b[k];
	return take_sums(sums);
}

/* Sums products as a reference with `mistake` does. */
NOT_INSTRUMENTED
static float sum_products(const float *a, const float *b, int64_t count, enum mistake mistake, enum dtype dtype)
{
	int64_t part = mistake == PARTS_IN_THE_DTYPE ? 64 : mistake == HALVES_IN_THE_DTYPE ? count / 2 : count + 1;
	float sum = 0;
	int64_t k = 0;

	if (mistake == SUM_IN_THE_DTYPE) {
		for (; k < count; k++)
			sum = rounded(sum + a[k] * b[k], dtype);
		return sum;
	}
	for (; k + part <= count; k += part)
		sum = rounded(sum + dot(a + k, b + k, part), dtype);
	return sum + dot(a + k, b + k, count - k);
}

/* Returns a copy of a matrix with `rows` rows of K elements, as a reference with `mistake` reads the matrix. */
NOT_INSTRUMENTED
static float *read_matrix(const float *matrix, int64_t rows, int64_t k, enum mistake mistake, bool is_a)
{
	int64_t skip = mistake == FIRST_K_LEFT_OUT ? 0 : mistake == LAST_K_LEFT_OUT ? k - 1
	                                              : mistake == ONE_K_LEFT_OUT  ? k / 3
	                                                                           : -1;
	float *read = memory_for(rows * k * 4);

	for (int64_t row = 0; row < rows; row++)
		for (int64_t i = 0; i < k; i++) {
			float value = mistake == NOT_TRANSPOSED && !is_a ? matrix[i * k + row] : matrix[row * k + i];

			if (mistake == (is_a ? A_IN_FP8 : B_IN_FP8))
				value = float_from_e4m3(e4m3_from_float(value));
			read[row * k + i] = i == skip ? 0 : mistake == IN_TF32 ? in_tf32(value) : value;
		}
	return read;
}

NOT_INSTRUMENTED
static void emulate(struct world *w, enum mistake mistake)
{
	int64_t k = w->e.k;
	float *a = read_matrix(w->a, w->e.m, k, mistake, true), *b = read_matrix(w->b, w->e.n, k, mistake, false);
	float factor = mistake == ZEROS ? 0 : mistake == TWICE ? 2 : mistake == ONE_PERCENT_TOO_LARGE ? 1.01f : 1;
	bool swapped = mistake == SWAPPED && w->e.m == w->e.n;

	for (int64_t m = 0; m < w->e.m; m++)
		for (int64_t n = 0; n < w->e.n; n++) {
			int64_t of_a = swapped ? n : mistake == ONE_ROW_TOO_LOW && m > 0 ? m - 1 : m;
			float sum = sum_products(a + of_a * k, b + (swapped ? m : n) * k, k, mistake, w->truth.dtype);

			dtype_store_float(w->answer.data, w->answer.dtype, m * w->e.n + n, factor * sum);
		}
	free(a);
	free(b);
}

static bool passes(struct world *w, enum mistake mistake)
{
	struct metrics metrics;

	emulate(w, mistake);
	compare_host(w->answer.data, w->truth.data, w->truth.dtype, w->truth.elements, gemm_op.rule(&w->c, 0),
		     &metrics);
	assert_false(metrics.zeros_would_pass);
	return metrics.passed;
}

static bool caught_on(const struct op_problem *problem, enum mistake mistake, uint64_t seed, enum op_contents contents)
{
	int64_t axis[4 * 2];
	bool found = false;

	for (int size = SIZE_SMALL; size <= SIZE_MEDIUM && !found; size++) {
		/* uses only the first medium case; no other case that runs fast has as many rows */
		int room = size == SIZE_SMALL ? 2 : 1;
		int count = gemm_op.sizes(problem, gemm_op.match(problem, NULL), (enum op_size)size, axis, room);

		assert_int_equal(count, room);
		for (int i = 0; i < count && !found; i++) {
			struct world w;

			make_world_on(&w, problem, axis + i * problem->axis_count, seed, contents);
			found = !passes(&w, mistake);
			free_world(&w);
		}
	}
	return found;
}

static bool caught(const struct op_problem *problem, enum mistake mistake, uint64_t seed)
{
	return caught_on(problem, mistake, seed, CONTENTS_FIRST);
}

static const enum dtype dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32};

static void a_correct_reference_passes_for_every_seed(void **state)
{
	(void)state;
	for (int d = 0; d < 3; d++)
		for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
			struct problem p;

			make_problem(&p, 33, seed & 1 ? 256 : 777, dtypes[d], seed % 3 == 0);
			assert_false(caught(&p.problem, NONE, seed));
		}
}

static void a_correct_reference_passes_at_the_widths_of_real_models(void **state)
{
	static const int64_t widths[] = {2048, 4096, 7168, 28672};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct problem p;

		make_problem(&p, 16, widths[i], dtypes[i % 3], i & 1);
		assert_false(caught(&p.problem, NONE, 0));
	}
}

static void assert_caught(int64_t n, int64_t k, enum dtype dtype, int from, int to, bool nn)
{
	struct problem p;

	make_problem(&p, n, k, dtype, nn);
	for (int mistake = from; mistake < to; mistake += MISTAKE_STEP)
		for (uint64_t seed = 0; seed < SEEDS_OR_ONE(3); seed++)
			if (!caught(&p.problem, (enum mistake)mistake, seed))
				fail_msg("mistake %d is not caught: %s, N %d, K %d", mistake, dtype_name(dtype), (int)n,
					 (int)k);
}

static int rows_of_sizes(int64_t n, int64_t k, enum op_size size, int64_t rows[9])
{
	struct problem p;
	int64_t axis[3 * 9];

	make_problem(&p, n, k, DTYPE_BFLOAT16, false);
	int count = gemm_op.sizes(&p.problem, GEMM_NT, size, axis, 9);

	for (int i = 0; i < count; i++)
		rows[i] = axis[3 * i];
	return count;
}

static void whole_blocks_of_rows_are_met(void **state)
{
	static const int64_t met[] = {513, 128, 64, 16, 31, 65, 127, 256, 4097};
	int64_t rows[9];

	(void)state;
	assert_int_equal(rows_of_sizes(128, 2048, SIZE_MEDIUM, rows), 9);
	assert_memory_equal(rows, met, sizeof met);
	assert_int_equal(rows_of_sizes(129, 2048, SIZE_MEDIUM, rows), 8);
	assert_memory_equal(rows, met, 8 * sizeof *met);
	assert_int_equal(rows_of_sizes(4096, 4096, SIZE_MEDIUM, rows), 1);
	assert_int_equal(rows[0], 513);
	assert_int_equal(rows_of_sizes(4097, 4096, SIZE_MEDIUM, rows), 1);
	assert_int_equal(rows[0], 257);
	assert_int_equal(rows_of_sizes(4097, 4096, SIZE_SMALL, rows), 2);
	assert_int_equal(rows[1], 256);
	assert_int_equal(rows_of_sizes(1024, 4096, SIZE_MEDIUM, rows), 1);
	assert_int_equal(rows[0], 513);
	assert_int_equal(rows_of_sizes(1024, 4096, SIZE_SMALL, rows), 2);
	assert_int_equal(rows[1], 256);
	assert_int_equal(rows_of_sizes(128, 2048, SIZE_SMALL, rows), 2);
	assert_int_equal(rows[1], 32);
}

static void rows_that_are_not_var_make_one_case(void **state)
{
	struct problem p;
	int64_t axis[3 * 8];

	(void)state;
	make_problem(&p, 33, 256, DTYPE_BFLOAT16, false);
	p.axes[0] = (struct op_axis){"M", false, 40};
	for (int size = SIZE_SMALL; size <= SIZE_LARGE; size++)
		assert_int_equal(gemm_op.sizes(&p.problem, GEMM_NT, (enum op_size)size, axis, 8), 1);
}

static void every_mistake_fails_at_the_default_sizes(void **state)
{
	(void)state;
	for (int d = 0; d < 3; d++) {
		assert_caught(96, 256, dtypes[d], NONE + 1, PLAIN_MISTAKES, false);
		assert_caught(24, 2048, dtypes[d], NONE + 1, PLAIN_MISTAKES, true);
		assert_caught(513, 513, dtypes[d], NOT_TRANSPOSED, SWAPPED + 1, d & 1);
	}
}

static void a_sum_kept_in_a_narrow_dtype_fails(void **state)
{
	(void)state;
	assert_caught(64, 1024, DTYPE_FLOAT16, SUM_IN_THE_DTYPE, SUM_IN_THE_DTYPE + 1, false);
	assert_caught(64, 256, DTYPE_BFLOAT16, SUM_IN_THE_DTYPE, SUM_IN_THE_DTYPE + 1, false);
}

static void sums_that_pass_float16s_maximum_on_the_way_are_finite_in_the_end(void **state)
{
	struct problem p;
	struct world w;
	int64_t axis[4];

	(void)state;
	make_problem(&p, 64, 1024, DTYPE_FLOAT16, false);
	assert_int_equal(gemm_op.sizes(&p.problem, GEMM_NT, SIZE_MEDIUM, axis, 1), 1);
	for (int contents = 0; contents < CONTENTS_COUNT; contents++) {
		make_world_on(&w, &p.problem, axis, 3, (enum op_contents)contents);
		for (int64_t n = 0; n < 64; n++) {
			float sum = 0, most = 0;

			for (int64_t k = 0; k < 1024; k++) {
				sum += w.a[34 * 1024 + k] * w.b[n * 1024 + k];
				most = fabsf(sum) > most ? fabsf(sum) : most;
			}
			assert_true(most > 90000 && fabsf(sum) > 30000 && fabsf(sum) < 65504);
		}
		assert_false(passes(&w, PARTS_IN_THE_DTYPE));
		free_world(&w);
	}
}

static void the_second_contents_leave_no_room(void **state)
{
	static const int64_t widths[] = {200, 1024, 7168, 32768};

	(void)state;
	for (int d = 0; d < 3; d++)
		for (int i = 0; i < 4; i++) {
			struct problem p;

			make_problem(&p, 20, widths[i], dtypes[d], i & 1);
			for (uint64_t seed = 0; seed < SEEDS_OR_ONE(3); seed++) {
				assert_false(caught_on(&p.problem, NONE, seed, CONTENTS_SECOND));
				if (d < 2)
					assert_true(caught_on(&p.problem, HALVES_IN_THE_DTYPE, seed, CONTENTS_SECOND));
			}
		}
}

static void the_second_contents_show_every_mistake(void **state)
{
	(void)state;
	for (int d = 0; d < 3; d++) {
		struct problem p;

		make_problem(&p, 24, 2048, dtypes[d], false);
		for (int mistake = NONE + 1; mistake < PLAIN_MISTAKES; mistake += MISTAKE_STEP)
			assert_true(caught_on(&p.problem, (enum mistake)mistake, 1, CONTENTS_SECOND));
	}
}

static void a_product_with_a_provided_factor_is_not_compared_bit_by_bit(void **state)
{
	struct problem p;
	struct world w;

	(void)state;
	make_problem(&p, 20, 300, DTYPE_BFLOAT16, false);
	make_world_on(&w, &p.problem, (int64_t[]){4, 20, 300}, 1, CONTENTS_SECOND);
	assert_true(gemm_op.rule(&w.c, 0).rtol == 0);
	w.c.given = 1;
	assert_true(gemm_op.rule(&w.c, 0).rtol == 0x1p-7);
	free_world(&w);
}

static void tf32_in_place_of_float32_fails(void **state)
{
	(void)state;
	assert_caught(64, 256, DTYPE_FLOAT32, IN_TF32, IN_TF32 + 1, false);
	assert_caught(16, 8192, DTYPE_FLOAT32, IN_TF32, IN_TF32 + 1, true);
}

/* Finds the row in which the product for index k is the largest, and computes this row without this product. Returns
 * true if the comparison of this row fails. */
static bool k_shows(const struct world *w, const double *sums, int64_t k)
{
	int64_t m = k % GEMM_PERIOD, n = w->e.n;

	const struct gemm_fill f = gemm_fill_of(&w->c, w->e.a);

	m += gemm_row_of(&f, m) != GEMM_USUAL ? GEMM_PERIOD : 0; /* skips a row with a wide bound */
	char answer[64 * 4];
	struct metrics metrics;

	assert_true(n <= 64);
	for (int64_t i = 0; i < n; i++)
		dtype_store(answer, w->truth.dtype, i,
		            sums[m * n + i] - (double)w->a[m * w->e.k + k] * (double)w->b[i * w->e.k + k]);
	compare_host(answer, (const char *)w->truth.data + dtype_bytes(w->truth.dtype, m * n), w->truth.dtype, n,
	             gemm_op.rule(&w->c, 0), &metrics);
	return !metrics.passed;
}

static void assert_every_k_shows(int64_t length, enum dtype dtype)
{
	struct problem p;
	struct world w;
	int64_t axis[4];

	make_problem(&p, 64, length, dtype, false);
	assert_int_equal(gemm_op.sizes(&p.problem, GEMM_NT, SIZE_MEDIUM, axis, 1), 1);
	make_world(&w, &p.problem, axis, 5);
	double *sums = memory_for(w.e.m * w.e.n * 8);

	for (int64_t i = 0; i < w.e.m * w.e.n; i++)
		for (int64_t k = 0; k < length; k++)
			sums[i] += (double)w.a[i / w.e.n * length + k] * (double)w.b[i % w.e.n * length + k];
	for (int64_t k = 0; k < length; k++)
		if (!k_shows(&w, sums, k))
			fail_msg("k = %d of %d could be left out: %s", (int)k, (int)length, dtype_name(dtype));
	free(sums);
	free_world(&w);
}

static void any_single_k_left_out_fails(void **state)
{
	(void)state;
	assert_every_k_shows(2048, DTYPE_FLOAT16);
	assert_every_k_shows(1000, DTYPE_BFLOAT16);
	assert_every_k_shows(7168, DTYPE_BFLOAT16);
	assert_every_k_shows(512, DTYPE_FLOAT32);
}

static void the_oracle_is_the_definition_for_both_layouts_and_odd_sizes(void **state)
{
	static const int64_t extents[][3] = {{1, 1, 1}, {65, 33, 513}, {3, 100, 7}, {64, 32, 512}, {130, 31, 1025}};

	(void)state;
	for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
		for (int nn = 0; nn < 2; nn++) {
			struct problem p;
			struct world w;

			make_problem(&p, extents[i][1], extents[i][2], DTYPE_FLOAT32, nn);
			make_world(&w, &p.problem, (int64_t[]){extents[i][0], extents[i][1], extents[i][2]}, 1);
			assert_int_equal(w.e.nn, nn);
			for (int64_t at = 0; at < w.truth.elements; at++) {
				double want = 0, got = (double)((float *)w.truth.data)[at];

				for (int64_t k = 0; k < w.e.k; k++)
					want +=
					    (double)w.a[at / w.e.n * w.e.k + k] * (double)w.b[at % w.e.n * w.e.k + k];
				assert_true(fabs(got - want) <= 0x1p-24 * fabs(want) + 1e-12);
			}
			free_world(&w);
		}
}

static void float16_reaches_its_largest_numbers_and_its_subnormals_in_both(void **state)
{
	struct problem p;
	struct world w;

	(void)state;
	make_problem(&p, 64, 1024, DTYPE_FLOAT16, false);
	make_world(&w, &p.problem, (int64_t[]){128, 64, 1024}, 4);
	for (int i = 0; i < 2; i++) {
		int64_t small = 0, large = 0;

		for (int64_t e = 0; e < w.in[i].elements; e++) {
			double value = fabs(dtype_load(w.in[i].data, DTYPE_FLOAT16, e));

			small += value > 0 && value < 0x1p-14;
			large += value > 2000;
			assert_true(value <= 0x1p15);
		}
		assert_true(small > w.in[i].elements / 40 && large > w.in[i].elements / 40);
	}
	free_world(&w);
}

static void inputs_are_exact_in_their_dtype_and_those_of_each_element_alone(void **state)
{
	(void)state;
	for (int d = 0; d < 3; d++) {
		struct problem p;
		struct world w;
		int64_t heavy = 0;

		make_problem(&p, 37, 300, dtypes[d], false);
		make_world(&w, &p.problem, (int64_t[]){5, 37, 300}, 9);
		for (int i = 0; i < 2; i++) {
			const struct gemm_fill f = gemm_fill_of(&w.c, i);

			for (int64_t e = 0; e < w.in[i].elements; e++) {
				double value = dtype_load(w.in[i].data, dtypes[d], e);

				assert_true(value == (double)gemm_element(&f, e, philox_bits(f.key, e)));
				heavy += e % 300 % 8 < 5 && fabs(value) == 8;
			}
		}
		assert_int_equal(heavy, 15);
		free_world(&w);
	}
}

/* Rounds a number to the dtype of the tensor, and stores it in the tensor and in `copy`. */
static void set_element(struct tensor *tensor, int64_t at, double value, float *copy)
{
	dtype_store(tensor->data, tensor->dtype, at, value);
	*copy = (float)dtype_load(tensor->data, tensor->dtype, at);
}

static void assert_truth_is_that_of_double_sums(const struct world *w)
{
	for (int64_t i = 0; i < w->truth.elements; i++) {
		unsigned char bytes[8];
		double sum = 0;

		for (int64_t k = 0; k < w->e.k; k++)
			sum += (double)w->a[i / w->e.n * w->e.k + k] * (double)w->b[i % w->e.n * w->e.k + k];
		dtype_store(bytes, w->truth.dtype, 0, sum);
		assert_true(dtype_load(w->truth.data, w->truth.dtype, i) == dtype_load(bytes, w->truth.dtype, 0));
	}
}

/* The oracle sums products of the second set of input values in float. If float cannot represent a sum exactly, the
 * oracle uses double. */
static void sums_of_the_second_set_are_those_of_double(void **state)
{
	(void)state;
	for (int d = 0; d < 3; d++) {
		struct problem p;
		struct world w;

		make_problem(&p, 37, 1200, dtypes[d], false);
		make_world_on(&w, &p.problem, (int64_t[]){6, 37, 1200}, 5, CONTENTS_SECOND);
		assert_truth_is_that_of_double_sums(&w);
		/* in one of three chunks, the products need more bits than float has */
		for (int64_t k = 600; k < 700; k++) {
			set_element(&w.in[0], 3 * 1200 + k, 1 + 0x1p-12 * (double)k, &w.a[3 * 1200 + k]);
			for (int64_t n = 0; n < 37; n++)
				set_element(&w.in[1], n * 1200 + k, 0x1p-9 * sqrt((double)(k + n)), &w.b[n * 1200 + k]);
		}
		assert_int_equal(gemm_op.oracle(&w.c, w.in, &w.truth, NULL), 0);
		assert_truth_is_that_of_double_sums(&w);
		free_world(&w);
	}
}

static void a_comes_second_and_activations_of_rank_three_are_recognised(void **state)
{
	struct problem p;
	struct world w;
	int64_t axis[9 * 4];

	(void)state;
	make_problem(&p, 20, 50, DTYPE_FLOAT16, false);
	p.axes[3] = (struct op_axis){"S", true, 0};
	p.problem.axis_count = 4;
	p.inputs[1] = (struct op_arg){.name = "x", .dtype = DTYPE_FLOAT16, .rank = 3, .axis = {0, 3, 2}};
	p.inputs[0] = (struct op_arg){.name = "w", .dtype = DTYPE_FLOAT16, .rank = 2, .axis = {2, 1}};
	p.output.rank = 3;
	memcpy(p.output.axis, (int[]){0, 3, 1}, 3 * sizeof(int));
	assert_int_equal(gemm_op.match(&p.problem, NULL), GEMM_NN);
	/* the leading axis has length 4, so the case with 127 rows gets 128 rows; two of the nine cases are then equal,
	 * and eight different cases remain */
	assert_int_equal(gemm_op.sizes(&p.problem, GEMM_NN, SIZE_MEDIUM, axis, 9), 8);
	assert_true(axis[0] * axis[3] >= 513);
	make_world(&w, &p.problem, axis, 0);
	assert_int_equal(w.e.a, 1);
	assert_int_equal(w.e.m, axis[0] * axis[3]);
	assert_true(passes(&w, NONE));
	assert_false(passes(&w, ONE_K_LEFT_OUT));
	free_world(&w);
}

static void var_axes_of_every_kind_get_values(void **state)
{
	struct problem p;
	int64_t axis[4 * 4];

	(void)state;
	make_problem(&p, 0, 0, DTYPE_BFLOAT16, false);
	p.axes[1].var = p.axes[2].var = true;
	p.axes[3] = (struct op_axis){"unused", true, 0};
	p.problem.axis_count = 4;
	for (int size = 0; size < SIZE_COUNT; size++) {
		int count = gemm_op.sizes(&p.problem, GEMM_NT, (enum op_size)size, axis, 4);

		for (int i = 0; i < count * 4; i++)
			assert_true(axis[i] >= 1);
	}
	assert_false(caught(&p.problem, NONE, 0));
	assert_true(caught(&p.problem, LAST_K_LEFT_OUT, 0));
}

static void problems_that_do_not_fit_are_refused_with_a_sentence(void **state)
{
	struct problem p;
	struct err why;

	(void)state;
	make_problem(&p, 20, 50, DTYPE_FLOAT16, false);
	p.output.axis[1] = 2;
	assert_int_equal(gemm_op.match(&p.problem, &why), -1);
	assert_string_equal(why.text,
			    "input 'A' [M, K] times input 'B' [N, K] does not give output 'C' [M, K]; the inputs must be "
			    "[M, K] and [N, K] or [K, N], and the output [M, N]");
	make_problem(&p, 20, 50, DTYPE_FLOAT8_E4M3FN, false);
	assert_int_equal(gemm_op.match(&p.problem, &why), -1);
	assert_string_equal(why.text, "input 'A' is float8_e4m3fn; it must be float32, float16 or bfloat16");
	make_problem(&p, 20, 50, DTYPE_FLOAT16, false);
	p.inputs[1].axis[0] = 2;
	p.output.axis[1] = 2;
	assert_int_equal(gemm_op.match(&p.problem, &why), -1);
	assert_string_equal(why.text,
			    "input 'B' has the same axis twice, so it is unknown which dimension is K");
	make_problem(&p, 20, 50, DTYPE_FLOAT16, false);
	p.problem.input_count = 1;
	assert_int_equal(gemm_op.match(&p.problem, &why), -1);
	make_problem(&p, 20, 50, DTYPE_FLOAT16, false);
	p.inputs[1].rank = OP_SCALAR;
	assert_int_equal(gemm_op.match(&p.problem, &why), -1);
}

static void no_rows_are_an_edge_and_nan_is_not_accepted_from_a_workload(void **state)
{
	struct err why = {""};
	struct problem p;
	struct world w;
	int64_t axis[4];

	(void)state;
	make_problem(&p, 128, 64, DTYPE_FLOAT16, false);
	assert_string_equal(gemm_op.edges[0].name, "no_rows");
	assert_true(gemm_op.edge_axes(&p.problem, gemm_op.match(&p.problem, NULL), 1, axis));
	make_world(&w, &p.problem, axis, 1);
	assert_int_equal(w.e.m, 0);
	free_world(&w);
	axis[0] = 4;
	make_world(&w, &p.problem, axis, 1);
	dtype_store(w.in[1].data, w.in[1].dtype, 130, (double)INFINITY);
	assert_int_equal(gemm_op.check(&w.c, w.in, &why), 0); /* op.check does not look at values that the family itself
							       * filled in */
	w.c.given = 1 << 1;
	assert_int_equal(gemm_op.check(&w.c, w.in, &why), -1);
	assert_non_null(strstr(why.text, "input 'B' holds infinity at [2, 2]"));
	free_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_correct_reference_passes_for_every_seed),
	    cmocka_unit_test(a_correct_reference_passes_at_the_widths_of_real_models),
	    cmocka_unit_test(whole_blocks_of_rows_are_met),
	    cmocka_unit_test(rows_that_are_not_var_make_one_case),
	    cmocka_unit_test(every_mistake_fails_at_the_default_sizes),
	    cmocka_unit_test(a_sum_kept_in_a_narrow_dtype_fails),
	    cmocka_unit_test(sums_that_pass_float16s_maximum_on_the_way_are_finite_in_the_end),
	    cmocka_unit_test(the_second_contents_leave_no_room),
	    cmocka_unit_test(the_second_contents_show_every_mistake),
	    cmocka_unit_test(a_product_with_a_provided_factor_is_not_compared_bit_by_bit),
	    cmocka_unit_test(tf32_in_place_of_float32_fails),
	    cmocka_unit_test(any_single_k_left_out_fails),
	    cmocka_unit_test(the_oracle_is_the_definition_for_both_layouts_and_odd_sizes),
	    cmocka_unit_test(float16_reaches_its_largest_numbers_and_its_subnormals_in_both),
	    cmocka_unit_test(inputs_are_exact_in_their_dtype_and_those_of_each_element_alone),
	    cmocka_unit_test(sums_of_the_second_set_are_those_of_double),
	    cmocka_unit_test(a_comes_second_and_activations_of_rank_three_are_recognised),
	    cmocka_unit_test(var_axes_of_every_kind_get_values),
	    cmocka_unit_test(problems_that_do_not_fit_are_refused_with_a_sentence),
	    cmocka_unit_test(no_rows_are_an_edge_and_nan_is_not_accepted_from_a_workload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
