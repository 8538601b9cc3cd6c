/* test_miss_pattern - a region is named only if the output differs in the whole region and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kernels/core/miss_pattern.h"

enum { ROWS = 12, COLUMNS = 10 };

static const char *const axes[] = {"row", "column"};

struct output {
	float found[ROWS][COLUMNS], truth[ROWS][COLUMNS];
};

static struct output right(void)
{
	struct output o;

	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < COLUMNS; c++)
			o.found[r][c] = o.truth[r][c] = (float)(1 + r + c);
	return o;
}

/* Returns the name of the region in which the output differs, or "" if no region is named. */
static const char *region(struct output *o)
{
	static char text[256];
	struct tensor found = {o->found, DTYPE_FLOAT32, 2, {ROWS, COLUMNS}, ROWS * COLUMNS}, truth = found;

	truth.data = o->truth;
	return miss_pattern(&found, &truth, (struct rule){1e-3, 1e-3, 1}, axes, text, sizeof text) ? text : "";
}

static void rows_and_columns_are_named(void **state)
{
	struct output o = right();

	(void)state;
	for (int c = 0; c < COLUMNS; c++)
		o.found[ROWS - 1][c] = 0;
	assert_string_equal(region(&o), "is 0 only where row = 11 (the last)");
	for (int r = 4; r < ROWS; r++)
		for (int c = 0; c < COLUMNS; c++)
			o.found[r][c] = NAN;
	assert_string_equal(region(&o), "is NaN only where row >= 4 (the last 8 of 12)");
	o = right();
	for (int r = 0; r < ROWS; r++)
		for (int c = 1; c < COLUMNS; c += 2)
			o.found[r][c] = -7;
	assert_string_equal(region(&o), "differs only where column is odd");
	o = right();
	for (int r = 1; r < ROWS; r += 4)
		o.found[r][0] = -7;
	assert_string_equal(region(&o), "differs only where row = 1 modulo 4 and column = 0 (the first)");
	o = right();
	for (int r = 3; r < 6; r++)
		for (int c = 0; c < 2; c++)
			o.found[r][c] = -7;
	assert_string_equal(region(&o), "differs only where 3 <= row <= 5 and column < 2 (the first 2 of 10)");
}

static void what_differs_everywhere_has_no_region(void **state)
{
	struct output o = right();

	(void)state;
	assert_string_equal(region(&o), "");
	for (int i = 0; i < ROWS * COLUMNS; i++)
		o.found[i / COLUMNS][i % COLUMNS] = -1;
	assert_string_equal(region(&o), "");
	for (int i = 0; i < ROWS * COLUMNS; i++)
		o.found[i / COLUMNS][i % COLUMNS] = 0;
	assert_string_equal(region(&o), "is 0 everywhere");
}

static void a_region_is_not_told_if_it_is_not_exact(void **state)
{
	struct output o = right();

	(void)state;
	for (int r = 0; r < ROWS; r++)
		o.found[r][r % 5] = -1; /* the differences are scattered over half of the columns */
	assert_string_equal(region(&o), "");
	o = right();
	for (int c = 0; c < COLUMNS; c++)
		o.found[7][c] = -1;
	o.found[2][3] = -1; /* one element outside the row also differs */
	assert_string_equal(region(&o), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rows_and_columns_are_named),
	    cmocka_unit_test(what_differs_everywhere_has_no_region),
	    cmocka_unit_test(a_region_is_not_told_if_it_is_not_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
