/* test_miss_map - the map of the differences between an output and the truth has the right error levels, axes and
 * counts. This is also true for long axes, for outputs with one element, and for values that are not finite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kernels/core/miss_map.h"

enum { BATCH = 3, ROWS = 100, COLUMNS = 5, ELEMENTS = BATCH * ROWS * COLUMNS };

static const struct rule one = {1, 0, 1}; /* with this rule, the bound of every element is 1 */

static float found[ELEMENTS], truth[ELEMENTS];

static struct tensor tensor_of(float *data, int rank, int64_t a, int64_t b, int64_t c)
{
	const int64_t shape[] = {a, b, c};
	struct tensor tensor = {.data = data, .dtype = DTYPE_FLOAT32, .rank = rank, .elements = 1};

	for (int d = 0; d < rank; d++) {
		tensor.shape[d] = shape[d];
		tensor.elements *= shape[d];
	}
	return tensor;
}

static struct miss_map map_of(int rank, int64_t a, int64_t b, int64_t c)
{
	struct tensor x = tensor_of(found, rank, a, b, c), y = tensor_of(truth, rank, a, b, c);
	struct miss_map map;

	assert_true(miss_map_make(&x, &y, one, &map));
	return map;
}

static void levels_are_powers_of_two_of_the_bound(void **state)
{
	(void)state;
	assert_int_equal(miss_level(0), 0);
	assert_int_equal(miss_level(1), MISS_BOUND);
	assert_int_equal(miss_level(1.99), MISS_BOUND);
	assert_int_equal(miss_level(2), MISS_BOUND + 1);
	assert_int_equal(miss_level(0.99), MISS_BOUND - 1);
	assert_int_equal(miss_level(1e-30), 1);
	assert_int_equal(miss_level(1e30), MISS_LEVELS - 1);
	assert_int_equal(miss_level((double)INFINITY), MISS_LEVELS - 1);
	assert_int_equal(miss_level((double)NAN), MISS_LEVELS - 1);
}

static void the_worst_two_axes_are_shown(void **state)
{
	(void)state;
	memset(found, 0, sizeof found);
	for (int b = 0; b < BATCH; b++)
		found[(b * ROWS + 99) * COLUMNS + 4] = 4; /* one element of each batch differs: the one in the last row
							   * and the last column */
	struct miss_map map = map_of(3, BATCH, ROWS, COLUMNS);

	assert_int_equal(map.row_axis, 1);
	assert_int_equal(map.column_axis, 2);
	assert_int_equal(map.rows, MISS_SIDE);
	assert_int_equal(map.columns, COLUMNS);
	for (int r = 0; r < map.rows; r++)
		for (int c = 0; c < map.columns; c++)
			assert_int_equal(map.level[r][c], r == MISS_SIDE - 1 && c == 4 ? MISS_BOUND + 2 : 0);
	assert_int_equal(map.histogram[MISS_BOUND + 2], BATCH);
	assert_int_equal(map.histogram[0], ELEMENTS - BATCH);

	memset(found, 0, sizeof found);
	found[ROWS * COLUMNS * 1 + 99 * COLUMNS] = 4; /* only the last row of batch 1 differs */
	for (int c = 0; c < COLUMNS; c++)
		found[ROWS * COLUMNS * 1 + 99 * COLUMNS + c] = 4;
	map = map_of(3, BATCH, ROWS, COLUMNS);
	assert_int_equal(map.row_axis, 0);
	assert_int_equal(map.column_axis, 1);
	assert_int_equal(map.level[1][MISS_SIDE - 1], MISS_BOUND + 2);
	assert_int_equal(map.level[0][MISS_SIDE - 1], 0);
}

static void an_error_at_the_bound_is_within_it(void **state)
{
	(void)state;
	found[0] = 1;
	struct miss_map map = map_of(0, 0, 0, 0);

	assert_int_equal(map.row_axis, -1);
	assert_int_equal(map.column_axis, -1);
	assert_int_equal(map.rows * map.columns, 1);
	assert_int_equal(map.level[0][0], MISS_BOUND - 1);
}

static void values_that_are_not_finite_are_the_worst(void **state)
{
	(void)state;
	memset(found, 0, sizeof found);
	memset(truth, 0, sizeof truth);
	found[0] = NAN;
	found[1] = truth[1] = INFINITY;
	found[2] = INFINITY;
	truth[3] = -INFINITY;
	struct miss_map map = map_of(1, 4, 0, 0);

	assert_int_equal(map.row_axis, -1);
	assert_int_equal(map.column_axis, 0);
	assert_int_equal(map.level[0][0], MISS_LEVELS - 1);
	assert_int_equal(map.level[0][1], 0);
	assert_int_equal(map.level[0][2], MISS_LEVELS - 1);
	assert_int_equal(map.level[0][3], MISS_LEVELS - 1);
	memset(truth, 0, sizeof truth);
}

static void an_output_without_elements_has_no_map(void **state)
{
	struct tensor none = tensor_of(found, 1, 0, 0, 0);
	struct miss_map map;

	(void)state;
	assert_false(miss_map_make(&none, &none, one, &map));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(levels_are_powers_of_two_of_the_bound),  cmocka_unit_test(the_worst_two_axes_are_shown),
	    cmocka_unit_test(an_error_at_the_bound_is_within_it),     cmocka_unit_test(values_that_are_not_finite_are_the_worst),
	    cmocka_unit_test(an_output_without_elements_has_no_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
