/* test_compare_truncation - recognises outputs that are truncated to their dtype instead of rounded. Outputs whose
 * elements have an error of one step of the dtype for another reason do not count as truncated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/random_inputs.h"
#include "kernels/core/compare_truncation.h"

enum { ROWS = 64, COLUMNS = 64, ELEMENTS = ROWS * COLUMNS };

/* How a number is stored in 16 bits. */
enum way { ROUNDED, TRUNCATED, ROUNDED_TWICE, ROW_FACTOR_ROUNDED, ONE_FACTOR_TOO_SMALL };

struct world {
	uint16_t found[ELEMENTS], truth[ELEMENTS];
	struct tensor left, right;
};

static double rounded(enum dtype dtype, double value)
{
	uint16_t bits;

	dtype_store(&bits, dtype, 0, value);
	return dtype_load(&bits, dtype, 0);
}

/* Stores `value` as the number of the dtype that is nearest to it and not farther from zero. */
static void store_truncated(uint16_t *out, enum dtype dtype, int64_t i, double value)
{
	dtype_store(out, dtype, i, value);
	if (fabs(dtype_load(out, dtype, i)) > fabs(value))
		out[i]--;
}

static double number_at(int64_t i)
{
	double sign = philox_bits(1, i) & 1 ? -1 : 1;

	return sign * (0.25 + (double)philox_bits(2, i) * 0x1p-31);
}

static void store(struct world *w, enum way way, enum dtype dtype, int64_t i)
{
	double value = number_at(i), factor = 1 + (double)philox_bits(3, i / COLUMNS) * 0x1p-32;

	dtype_store(w->truth, dtype, i, way == ROW_FACTOR_ROUNDED ? value * factor : way == ROUNDED_TWICE ? value * 1.37 : value);
	switch (way) {
	case TRUNCATED:
		store_truncated(w->found, dtype, i, value);
		break;
	case ROUNDED_TWICE:
		dtype_store(w->found, dtype, i, rounded(dtype, value) * 1.37);
		break;
	case ROW_FACTOR_ROUNDED:
		dtype_store(w->found, dtype, i, value * rounded(dtype, factor));
		break;
	case ONE_FACTOR_TOO_SMALL:
		dtype_store(w->found, dtype, i, value * (1 - (dtype == DTYPE_BFLOAT16 ? 0x1p-11 : 0x1p-14)));
		break;
	default:
		dtype_store(w->found, dtype, i, value);
		break;
	}
}

static void make(struct world *w, enum way way, enum dtype dtype)
{
	for (int64_t i = 0; i < ELEMENTS; i++)
		store(w, way, dtype, i);
	w->left = (struct tensor){.data = w->found, .dtype = dtype, .rank = 2, .shape = {ROWS, COLUMNS}, .elements = ELEMENTS};
	w->right = w->left;
	w->right.data = w->truth;
}

static void only_truncation_is_called_truncation(void **state)
{
	static const enum dtype dtypes[] = {DTYPE_BFLOAT16, DTYPE_FLOAT16};
	static struct world w;

	(void)state;
	for (size_t d = 0; d < 2; d++)
		for (int way = ROUNDED; way <= ONE_FACTOR_TOO_SMALL; way++) {
			struct err why = {""};

			make(&w, (enum way)way, dtypes[d]);
			bool truncated = output_is_truncated("y", &w.left, &w.right, &why);

			if (truncated != (way == TRUNCATED))
				fail_msg("way %d, %s: %s", way, dtype_name(dtypes[d]), truncated ? why.text : "not recognised");
			if (truncated)
				assert_non_null(strstr(why.text, "output 'y' is truncated to"));
		}
}

/* An output with few rows is not examined, because all elements of a few rows may be too near to zero by chance.
 * Outputs of other dtypes than bfloat16 and float16 are not examined, because their bounds are tighter. */
static void few_rows_and_other_dtypes_are_not_examined(void **state)
{
	static struct world w;

	(void)state;
	make(&w, TRUNCATED, DTYPE_BFLOAT16);
	w.left.shape[0] = w.right.shape[0] = TRUNCATED_ROWS - 1;
	w.left.elements = w.right.elements = (TRUNCATED_ROWS - 1) * COLUMNS;
	assert_false(output_is_truncated("y", &w.left, &w.right, NULL));
	w.left.shape[0] = w.right.shape[0] = TRUNCATED_ROWS;
	w.left.elements = w.right.elements = TRUNCATED_ROWS * COLUMNS;
	assert_true(output_is_truncated("y", &w.left, &w.right, NULL));
	w.left.dtype = w.right.dtype = DTYPE_INT16;
	assert_false(output_is_truncated("y", &w.left, &w.right, NULL));
}

/* Elements whose truth is zero or infinite are not counted. Truncation never changes a sign, so an output with wrong
 * signs does not count as truncated. */
static void zeros_infinities_and_signs_are_not_steps(void **state)
{
	static struct world w;

	(void)state;
	make(&w, TRUNCATED, DTYPE_FLOAT16);
	for (int64_t i = 0; i < ELEMENTS / 2; i++)
		w.truth[i] = w.found[i] = i % 2 == 0 ? 0 : 0x7c00;
	assert_true(output_is_truncated("y", &w.left, &w.right, NULL));
	for (int64_t i = ELEMENTS / 2; i < ELEMENTS; i += 4)
		w.found[i] ^= 0x8000;
	assert_false(output_is_truncated("y", &w.left, &w.right, NULL));
}

static void metrics_exclude_most_outputs(void **state)
{
	struct metrics metrics = {.passed = true, .mean_rel = 0x1p-10};

	(void)state;
	assert_true(output_may_be_truncated(DTYPE_BFLOAT16, &metrics));
	assert_false(output_may_be_truncated(DTYPE_FLOAT32, &metrics));
	metrics.passed = false;
	assert_false(output_may_be_truncated(DTYPE_BFLOAT16, &metrics));
	metrics = (struct metrics){.passed = true, .mean_rel = 1e-4};
	assert_true(output_may_be_truncated(DTYPE_BFLOAT16, &metrics)); /* most elements may be 0 */
	metrics = (struct metrics){.passed = true, .mean_rel = 1e-5};
	assert_false(output_may_be_truncated(DTYPE_BFLOAT16, &metrics));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_truncation_is_called_truncation),
	    cmocka_unit_test(few_rows_and_other_dtypes_are_not_examined),
	    cmocka_unit_test(zeros_infinities_and_signs_are_not_steps),
	    cmocka_unit_test(metrics_exclude_most_outputs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
