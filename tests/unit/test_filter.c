/* test_filter - the order of the tokens of a row: more likely tokens come first, and equally likely tokens are in the
 * order of the vocabulary. Every token with a probability above 0 is at the right place, whatever the range of the
 * probabilities and however many of them are equal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "kernels/core/random_inputs.h"
#include "kernels/sampling/filter.h"

enum { VOCAB = 3000 };

enum kind { EVEN, EQUAL, FEW_VALUES, WIDE_RANGE, ONE_BUCKET, EQUAL_IN_BUCKET, MANY_ZEROS, KINDS };

static double value_of(enum kind kind, uint32_t bits)
{
	double part = (double)bits * 0x1p-32;

	switch (kind) {
	case EVEN:
		return part + 0x1p-33;
	case EQUAL:
		return 1.0 / VOCAB;
	case FEW_VALUES:
		return (double)(1 + bits % 7) / VOCAB;
	case WIDE_RANGE: /* more octaves than the buckets cover */
		return ldexp(0.5 + part / 2, -(int)(bits % 1000));
	case ONE_BUCKET: /* the relative differences of the values are below 2^-8 */
		return 0.25 * (1 + part * 0x1p-9);
	case EQUAL_IN_BUCKET:
		return 0.25 * (1 + (double)(bits % 50) * 0x1p-16);
	case MANY_ZEROS:
		return bits % 3 != 0 ? 0 : part + 0x1p-33;
	case KINDS:
		break;
	}
	return 0;
}

/* Returns how many tokens come before `token`: those that are more likely, and those that are equally likely and have a
 * smaller index. */
static int64_t place_of(const double *values, int64_t token)
{
	int64_t place = 0;

	for (int64_t i = 0; i < VOCAB; i++)
		place += values[i] > values[token] || (values[i] == values[token] && i < token);
	return place;
}

static void tokens_are_ordered_by_probability_and_then_by_number(void **state)
{
	const struct filter_bounds all = {.has_min_p = true, .min_p = 0x1p-1060};
	uint32_t words[VOCAB + 4];
	struct filter filter;

	(void)state;
	assert_int_equal(filter_open(&filter, VOCAB, NULL), 0);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		int64_t positive = 0;

		philox_run(17 + kind, 0, VOCAB / 4 + 1, words);
		for (int i = 0; i < VOCAB; i++)
			positive += (filter.value[i] = value_of(kind, words[i])) > 0;
		struct filter_kept kept = filter_row(&filter, &all);

		assert_true(kept.defined && kept.count == positive && filter.ordered == positive);
		for (int64_t i = 0; i < positive; i++)
			if (place_of(filter.value, filter.order[i]) != i)
				fail_msg("kind %d: token %lld is at %lld", (int)kind, (long long)filter.order[i], (long long)i);
		assert_int_equal(filter_most_likely(&filter), filter.order[0]);
	}
	filter_close(&filter);
}

/* If a filter keeps few tokens, only the FILTER_ORDERED most likely tokens are sorted, and they are in the right
 * order. */
static void a_filter_that_needs_few_tokens_sorts_few(void **state)
{
	const struct filter_bounds few = {.has_top_k = true, .top_k = 5};
	uint32_t words[VOCAB + 4];
	struct filter filter;

	(void)state;
	assert_int_equal(filter_open(&filter, VOCAB, NULL), 0);
	philox_run(3, 0, VOCAB / 4 + 1, words);
	for (int i = 0; i < VOCAB; i++)
		filter.value[i] = value_of(EVEN, words[i]);
	struct filter_kept kept = filter_row(&filter, &few);

	assert_true(kept.count == 5 && filter.ordered == FILTER_ORDERED);
	for (int64_t i = 0; i < filter.ordered; i++)
		assert_int_equal(place_of(filter.value, filter.order[i]), i);
	assert_true(kept.threshold == filter.value[filter.order[4]]);
	filter_close(&filter);
}

static void a_row_that_is_no_distribution_is_reported(void **state)
{
	static const double odd[] = {-0x1p-40, (double)INFINITY, (double)NAN};
	const struct filter_bounds few = {.has_top_k = true, .top_k = 2};
	struct filter filter;

	(void)state;
	assert_int_equal(filter_open(&filter, 4, NULL), 0);
	assert_false(filter_row(&filter, &few).defined); /* all probabilities are 0 */
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		const double row[] = {0.5, 0.25, odd[i], 0.25};

		for (int v = 0; v < 4; v++)
			filter.value[v] = row[v];
		assert_false(filter_row(&filter, &few).defined);
	}
	filter_close(&filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tokens_are_ordered_by_probability_and_then_by_number),
	    cmocka_unit_test(a_filter_that_needs_few_tokens_sorts_few),
	    cmocka_unit_test(a_row_that_is_no_distribution_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
