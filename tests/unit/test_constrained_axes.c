/* test_constrained_axes - axis values that violate constraints are replaced by nearby values that satisfy them. */
#include "dataset/constrained_axes.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

enum { M, N, C, AXES };

/* Tests a problem with the var axes m and n, the const axis c of length 24, and one int32 tensor [m][n]. */
static bool fits(const char *const *constraints, int count, int64_t m, int64_t n, int64_t *row)
{
	static const struct axis axes[AXES] = {{"m", true, 0}, {"n", true, 0}, {"c", false, 24}};
	static const struct tensor_spec x = {.name = "x", .dtype = DTYPE_INT32, .rank = 2, .axis = {M, N}};
	const struct definition d = {.axes = axes, .axis_count = AXES, .inputs = &x, .input_count = 1,
				     .constraints = constraints, .constraint_count = count};

	row[M] = m;
	row[N] = n;
	row[C] = 24;
	return constrained_axes_fit(&d, row);
}

static void rows_are_fitted(void **state)
{
	static const struct {
		const char *constraints[2];
		int64_t m, n, fitted_m, fitted_n;
	} rows[] = {
	    {{"m >= 1"}, 7, 9, 7, 9},                          /* no constraint is violated */
	    {{"m == 2 * n"}, 8, 4, 8, 4},
	    {{"m == 2 * n"}, 7, 100, 200, 100},                /* the constraint determines m from n */
	    {{"m % 8 == 0"}, 30, 5, 32, 5},                    /* m becomes the nearest multiple of 8 */
	    {{"m in (3, 5)"}, 100, 5, 5, 5},
	    {{"m <= 8", "n >= 16"}, 100, 5, 8, 16},
	    {{"m == c"}, 1, 1, 24, 1},                         /* a const axis does not change */
	    {{"m * n == 96"}, 1, 1000, 1, 96},
	    {{"m > n", "n > 100"}, 1, 1000, 1001, 1000},
	    {{"m == 0", "n % 4 == 0"}, 5, 8, 0, 8},            /* an axis becomes 0 only if a constraint demands it */
	    {{"n==0 "}, 5, 8, 5, 0},
	    {{"m % 5 == 0"}, 1, 8, 5, 8},
	    {{"m % 128 == 0", "n == m * 4096 // 32"}, 4, 4, 128, 16384},
	    {{"m == n * n + 1"}, 10, 3000, 10, 3},             /* n changes, because m = 9000001 is too large */
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		int64_t row[AXES];

		assert_true(fits(rows[i].constraints, rows[i].constraints[1] != NULL ? 2 : 1, rows[i].m, rows[i].n, row));
		assert_int_equal(row[M], rows[i].fitted_m);
		assert_int_equal(row[N], rows[i].fitted_n);
		assert_int_equal(row[C], 24);
	}
}

static void a_row_stays_if_nothing_fits(void **state)
{
	static const char *const impossible[] = {"m == m + 1"}, *const two[] = {"m < 3", "m > 3"},
				*const wide[] = {"m >= 1000000", "n >= 1000000"}, *const zero[] = {"m == n - n", "m >= 0"};
	const char *const *cases[] = {impossible, two, wide, zero};

	(void)state;
	for (int i = 0; i < 4; i++) {
		int64_t row[AXES];

		assert_false(fits(cases[i], i == 0 ? 1 : 2, 17, 19, row));
		assert_true(row[M] == 17 && row[N] == 19);
	}
}

static void contents_of_inputs_are_not_considered(void **state)
{
	static const char *const constraints[] = {"m == x.sum()", "n % 2 == 0"};
	int64_t row[AXES];

	(void)state;
	assert_true(fits(constraints, 2, 5, 7, row));
	assert_int_equal(row[M], 5);
	assert_int_equal(row[N] % 2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rows_are_fitted),
	    cmocka_unit_test(a_row_stays_if_nothing_fits),
	    cmocka_unit_test(contents_of_inputs_are_not_considered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
