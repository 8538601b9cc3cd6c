/* test_unit_distance - compares unit_distance with its definition, which the test computes element by element. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/core/dtype_convert.h"
#include "workers/judge/unit_distance.h"

enum { ELEMENTS = 1536 + 24 }; /* three whole chunks of CHUNK elements (unit_distance.c), and a part of a chunk */

/* Builds a tensor whose memory has exactly its size, so that a sanitizer detects an access beyond the end. */
static struct tensor make(enum dtype dtype, int64_t elements, unsigned seed)
{
	struct tensor tensor = {.dtype = dtype, .rank = 1, .shape = {elements}, .elements = elements};

	tensor.data = calloc(1, (size_t)dtype_bytes(dtype, elements));
	assert_non_null(tensor.data);
	for (int64_t i = 0; i < elements; i++) {
		seed = seed * 1664525u + 1013904223u;
		dtype_store(tensor.data, dtype, i, (double)(int)(seed >> 20) / 512 - 4);
	}
	return tensor;
}

static double at(const struct tensor *tensor, int64_t i)
{
	return dtype_load(tensor->data, tensor->dtype, i);
}

static double mean_square_root(const struct tensor *tensor)
{
	double sum = 0;
	int64_t count = 0;

	for (int64_t i = 0; i < tensor->elements; i++)
		if (isfinite(at(tensor, i))) {
			sum += at(tensor, i) * at(tensor, i);
			count++;
		}
	return count > 0 ? sqrt(sum / (double)count) : 0;
}

/* The rows of a tensor are put in reverse order; if `alone` is true, only the last row is kept instead. Returns the
 * index that element i of the new tensor had in the old tensor. */
static int64_t expected_element(int64_t rows, int64_t inner, bool alone, int64_t i)
{
	int64_t outer = alone ? i / inner : i / inner / rows, row = alone ? rows - 1 : rows - 1 - i / inner % rows;

	return (outer * rows + row) * inner + i % inner;
}

static void check(double found, double expected)
{
	if (isinf(expected))
		assert_true(isinf(found));
	else
		assert_true(fabs(found - expected) <= 1e-9 * expected);
}

static void each_dtype_has_its_unit(void **state)
{
	(void)state;
	for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
		struct tensor a = make((enum dtype)dtype, ELEMENTS, 1), b = make((enum dtype)dtype, ELEMENTS, 2);
		double largest = 0, size = mean_square_root(&b), unit = unit_of((enum dtype)dtype);

		for (int64_t i = 0; i < ELEMENTS; i++) {
			double x = at(&a, i), y = at(&b, i), magnitude = fmax(size, fmax(fabs(x), fabs(y)));

			if (x != y && !(isnan(x) && isnan(y)))
				largest = fmax(largest, unit == 0 || isnan(x) || isnan(y) ? INFINITY : fabs(x - y) / (unit * magnitude));
		}
		check(unit_distance_largest(&a, &b, (enum dtype)dtype, NULL), largest);
		assert_true(unit_distance_largest(&a, &a, (enum dtype)dtype, NULL) == 0);
		assert_true(unit_distance_any(&a, &b) == (largest > 0));
		assert_false(unit_distance_any(&a, &a));
		free(a.data);
		free(b.data);
	}
}

/* If only one element differs, it is found wherever it is. */
static void one_element_is_found_at_each_place(void **state)
{
	(void)state;
	for (int64_t i = 0; i < ELEMENTS; i += 37) {
		struct tensor a = make(DTYPE_FLOAT32, ELEMENTS, 3), b = make(DTYPE_FLOAT32, ELEMENTS, 3);
		float *values = a.data;

		values[i] = 1000;
		check(unit_distance_largest(&a, &b, DTYPE_FLOAT32, NULL), (1000 - at(&b, i)) / (unit_of(DTYPE_FLOAT32) * 1000));
		assert_true(unit_distance_any(&a, &b));
		free(a.data);
		free(b.data);
	}
}

/* A difference is measured relative to the magnitude of the element, or relative to the root mean square of the tensor
 * if the magnitude is less than that. */
static void small_elements_are_measured_by_the_root_mean_square(void **state)
{
	(void)state;
	struct tensor a = make(DTYPE_FLOAT32, 600, 3), b = make(DTYPE_FLOAT32, 600, 3);

	((float *)a.data)[599] = ((float *)b.data)[599] = 10000;
	((float *)a.data)[0] = 0;
	((float *)b.data)[0] = 1;
	check(unit_distance_largest(&a, &b, DTYPE_FLOAT32, NULL), 1 / (unit_of(DTYPE_FLOAT32) * mean_square_root(&b)));
	free(a.data);
	free(b.data);
}

static void special_values_have_rules(void **state)
{
	(void)state;
	static const struct {
		double a, b;
		bool differs, infinite;
	} rows[] = {
	    {0.0, -0.0, false, false},	   {NAN, NAN, false, false},	   {INFINITY, INFINITY, false, false},
	    {INFINITY, 1, true, true},	   {NAN, 1, true, true},	   {INFINITY, -INFINITY, true, true},
	    {1, 1 + 0x1p-20, true, false},
	};

	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		struct tensor a = make(DTYPE_FLOAT32, 600, 5), b = make(DTYPE_FLOAT32, 600, 5);
		float quiet = (float)rows[k].a, other = (float)rows[k].b;

		((float *)a.data)[599] = quiet;
		((float *)b.data)[599] = other;
		if (isnan(rows[k].a))
			((unsigned char *)a.data)[599 * 4] = 7; /* another bit pattern of NaN */
		assert_true(unit_distance_any(&a, &b) == rows[k].differs);
		assert_true(isinf(unit_distance_largest(&a, &b, DTYPE_FLOAT32, NULL)) == rows[k].infinite);
		assert_true((unit_distance_largest(&a, &b, DTYPE_FLOAT32, NULL) > 0) == rows[k].differs);
		free(a.data);
		free(b.data);
	}
}

/* If the declared dtype is float16, a float64 value above the range of float16 counts as an infinity. */
static void wide_results_are_held_in_the_declared_range(void **state)
{
	(void)state;
	struct tensor wide = make(DTYPE_FLOAT64, 600, 5), narrow = make(DTYPE_FLOAT16, 600, 5);

	for (int64_t i = 0; i < 600; i++)
		((double *)wide.data)[i] = at(&narrow, i);
	((double *)wide.data)[40] = 1e5;
	dtype_store(narrow.data, DTYPE_FLOAT16, 40, INFINITY);
	assert_true(unit_distance_largest(&wide, &narrow, DTYPE_FLOAT16, NULL) == 0);
	((double *)wide.data)[40] = 65504; /* a value that is finite in float16 */
	assert_true(isinf(unit_distance_largest(&wide, &narrow, DTYPE_FLOAT16, NULL)));
	free(wide.data);
	free(narrow.data);
}

static void rows_are_compared_in_their_order(void **state)
{
	static const struct {
		int64_t outer, rows, inner;
	} forms[] = {{1, 4, 600}, {3, 5, 1}, {2, 3, 260}, {1, 2, 1}};

	(void)state;
	for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
		for (int alone = 0; alone < 2; alone++) {
			int64_t rows = forms[k].rows, inner = forms[k].inner, all = forms[k].outer * rows * inner;
			int64_t elements = alone ? all / rows : all;
			struct row_order order = {rows, inner, alone};
			struct tensor expected = make(DTYPE_BFLOAT16, all, 9), found = make(DTYPE_BFLOAT16, elements, 10);

			for (int64_t i = 0; i < elements; i++)
				dtype_store(found.data, DTYPE_BFLOAT16, i, at(&expected, expected_element(rows, inner, alone, i)));
			assert_true(unit_distance_largest(&found, &expected, DTYPE_BFLOAT16, &order) == 0);
			dtype_store(found.data, DTYPE_BFLOAT16, elements - 1, 100);
			assert_true(unit_distance_largest(&found, &expected, DTYPE_BFLOAT16, &order) > 16);
			free(expected.data);
			free(found.data);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_dtype_has_its_unit),
	    cmocka_unit_test(one_element_is_found_at_each_place),
	    cmocka_unit_test(small_elements_are_measured_by_the_root_mean_square),
	    cmocka_unit_test(special_values_have_rules),
	    cmocka_unit_test(wide_results_are_held_in_the_declared_range),
	    cmocka_unit_test(rows_are_compared_in_their_order),
	};

	return cmocka_run_group_tests_name("unit_distance", tests, NULL, NULL);
}
