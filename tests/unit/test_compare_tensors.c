/* test_compare_tensors - the tolerance rule and the figures of a comparison give the same results as a simple second
 * implementation, and each kind of difference is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/compare_tensors.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/random_inputs.h"

static const struct rule all_within = {1e-3, 1e-2, 1};

static struct metrics compared(const void *reference, const void *truth, enum dtype dtype, int64_t elements,
                               struct rule rule)
{
	struct metrics metrics;

	memset(&metrics, 0xff, sizeof metrics);
	compare_host(reference, truth, dtype, elements, rule, &metrics);
	return metrics;
}

static struct metrics compared_floats(const float *reference, const float *truth, int64_t elements, struct rule rule)
{
	return compared(reference, truth, DTYPE_FLOAT32, elements, rule);
}

/* The formulas of compare_tensors.h, computed one element at a time in long double, without blocks or threads. */
static struct metrics plainly(const void *reference, const void *truth, enum dtype dtype, int64_t elements,
                              struct rule rule)
{
	struct metrics m = {.elements = elements};
	long double sum_abs = 0, sum_rel = 0, sum_sq = 0, dot = 0, norm_r = 0, norm_g = 0;
	int64_t finite = 0, unmatched = 0, zero_hits = 0;

	for (int64_t i = 0; i < elements; i++) {
		double r = dtype_load(reference, dtype, i), g = dtype_load(truth, dtype, i), diff = fabs(r - g);
		double bound = rule.atol + rule.rtol * fabs(g), ratio = diff == 0 || r == g ? 0 : diff / bound;

		m.nan_reference += isnan(r) != 0;
		m.nan_ground_truth += isnan(g) != 0;
		m.inf_reference += isinf(r) != 0;
		m.inf_ground_truth += isinf(g) != 0;
		zero_hits += isfinite(g) && fabs(g) <= bound;
		if (!isfinite(r) || !isfinite(g)) {
			m.hits += r == g;
			unmatched += r != g;
			continue;
		}
		finite++;
		m.hits += diff <= bound;
		m.max_abs = fmax(m.max_abs, diff);
		m.max_rel = fmax(m.max_rel, diff / fmax(fabs(g), 1e-8));
		m.margin = fmax(m.margin, ratio);
		sum_abs += diff;
		sum_rel += diff / fmax(fabs(g), 1e-8);
		sum_sq += (long double)diff * diff;
		dot += (long double)r * g;
		norm_r += (long double)r * r;
		norm_g += (long double)g * g;
	}
	m.mean_abs = finite > 0 ? (double)(sum_abs / finite) : 0;
	m.mean_rel = finite > 0 ? (double)(sum_rel / finite) : 0;
	m.mse = finite > 0 ? (double)(sum_sq / finite) : 0;
	m.cosine = norm_r == 0 && norm_g == 0	? 1
		   : norm_r == 0 || norm_g == 0 ? 0
						: (double)(dot / sqrtl(norm_r * norm_g));
	m.margin = unmatched > 0 ? INFINITY : m.margin;
	m.passed = unmatched == 0 && (double)m.hits >= rule.hit_ratio * (double)elements;
	m.zeros_would_pass = m.nan_ground_truth + m.inf_ground_truth == 0 &&
	                     (double)zero_hits >= rule.hit_ratio * (double)elements;
	return m;
}

static void assert_near(double got, double want)
{
	if (isinf(want) || isnan(want))
		assert_true(isnan(want) ? isnan(got) : got == want);
	else
		assert_true(fabs(got - want) <= 1e-12 * fabs(want));
}

static void assert_same_figures(const struct metrics *got, const struct metrics *want)
{
	assert_int_equal(got->elements, want->elements);
	assert_int_equal(got->hits, want->hits);
	assert_int_equal(got->nan_reference, want->nan_reference);
	assert_int_equal(got->nan_ground_truth, want->nan_ground_truth);
	assert_int_equal(got->inf_reference, want->inf_reference);
	assert_int_equal(got->inf_ground_truth, want->inf_ground_truth);
	assert_int_equal(got->passed, want->passed);
	assert_int_equal(got->zeros_would_pass, want->zeros_would_pass);
	assert_true(got->max_abs == want->max_abs);
	assert_near(got->max_rel, want->max_rel);
	assert_near(got->margin, want->margin);
	assert_near(got->mean_abs, want->mean_abs);
	assert_near(got->mean_rel, want->mean_rel);
	assert_near(got->mse, want->mse);
	assert_true(fabs(got->cosine - want->cosine) <= 1e-12);
}

/* Fills two tensors of a dtype with values near each other. If `odd` is above 0, about one element of every `odd`
 * elements is NaN or infinite. */
static void make_pair(void *a, void *b, enum dtype dtype, int64_t elements, int odd)
{
	static const double specials[] = {NAN, INFINITY, -INFINITY, 0, 1};

	for (int64_t i = 0; i < elements; i++) {
		uint32_t random = philox_bits(3, i), other = philox_bits(4, i);
		double value = 6 * (double)uniform_signed(random, 20);

		dtype_store(a, dtype, i, value);
		dtype_store(b, dtype, i, other & 7 ? value : value + 0.3 * (double)uniform_signed(other, 20));
		if (odd > 0 && other % (uint32_t)odd == 0) {
			dtype_store(a, dtype, i, specials[random % 5]);
			dtype_store(b, dtype, i, specials[random / 5 % 5]);
		}
		if (i / 1024 % 3 == 1) /* in every third block, both tensors have the same bits */
			dtype_store(b, dtype, i, dtype_load(a, dtype, i));
	}
}

static void figures_agree_with_a_plain_second_implementation(void **state)
{
	static const int64_t lengths[] = {1, 2, 7, 1023, 1024, 1025, 70001, 300000};
	struct rule rules[] = {{1e-3, 1e-2, 1}, {0.02, 0, 1}, {0, 0.01, 0.85}, {0, 0, 1}, {10, 0, 1}};

	(void)state;
	for (int d = 0; d < DTYPE_COUNT; d++)
		for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
			int64_t bytes = dtype_bytes((enum dtype)d, lengths[l]);
			void *a = malloc((size_t)bytes), *b = malloc((size_t)bytes);

			assert_true(a != NULL && b != NULL);
			memset(a, 0, (size_t)bytes);
			memset(b, 0, (size_t)bytes);
			for (int odd = 0; odd <= 4096; odd += 2048) {
				struct rule rule = rules[((size_t)d + l + (size_t)odd / 2048) % 5];

				make_pair(a, b, (enum dtype)d, lengths[l], odd);
				struct metrics got = compared(a, b, (enum dtype)d, lengths[l], rule);
				struct metrics want = plainly(a, b, (enum dtype)d, lengths[l], rule);

				assert_same_figures(&got, &want);
			}
			free(a);
			free(b);
		}
}

static void equal_tensors_pass_with_margin_zero(void **state)
{
	float values[3000];

	(void)state;
	for (int i = 0; i < 3000; i++)
		values[i] = uniform_signed(philox_bits(1, i), 23);
	struct metrics m = compared_floats(values, values, 3000, (struct rule){0, 0, 1});

	assert_true(m.passed && !m.zeros_would_pass && m.margin == 0 && m.max_abs == 0 && m.hits == 3000);
	assert_true(m.cosine > 1 - 1e-15 && m.cosine < 1 + 1e-15);
	assert_int_equal(m.worst_count, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(m.worst[i].index, i);
}

static void one_element_nudged_past_its_bound_fails_wherever_it_is(void **state)
{
	int64_t places[] = {0, 1, 1023, 1024, 65535, 65536, 99998, 99999}, elements = 100000;
	float *truth = malloc((size_t)elements * sizeof *truth),
	      *reference = malloc((size_t)elements * sizeof *reference);

	(void)state;
	assert_true(truth != NULL && reference != NULL);
	for (int64_t i = 0; i < elements; i++)
		reference[i] = truth[i] = 2 + uniform_signed(philox_bits(1, i), 20);
	for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
		int64_t at = places[p];
		double bound = all_within.atol + all_within.rtol * (double)truth[at];

		reference[at] = truth[at] + (float)(bound * 0.999);
		assert_true(compared_floats(reference, truth, elements, all_within).passed);
		reference[at] = truth[at] + (float)(bound * 1.001);
		struct metrics m = compared_floats(reference, truth, elements, all_within);

		assert_true(!m.passed && m.hits == elements - 1 && m.worst[0].index == at);
		assert_true(m.margin > 1 && m.margin < 1.01);
		reference[at] = truth[at];
	}
	free(truth);
	free(reference);
}

static void the_bound_itself_passes_and_the_next_double_does_not(void **state)
{
	double truth = 1, on = 1 + 0x1p-7, past = nextafter(on, 2);
	struct rule ulp = {0, 0x1p-7, 1};

	(void)state;
	assert_true(compared(&on, &truth, DTYPE_FLOAT64, 1, ulp).passed);
	assert_false(compared(&past, &truth, DTYPE_FLOAT64, 1, ulp).passed);
	assert_true(compared(&on, &truth, DTYPE_FLOAT64, 1, ulp).margin == 1);
}

static void nan_on_either_side_or_both_fails_even_with_a_hit_ratio(void **state)
{
	static const float cases[][2] = {{NAN, 1},	  {1, NAN},	   {NAN, NAN},
					 {INFINITY, 1},	  {1, INFINITY},   {-INFINITY, INFINITY},
					 {NAN, INFINITY}, {INFINITY, NAN}, {0, -INFINITY}};
	float reference[2000], truth[2000];
	struct rule lax = {1e30, 1e30, 0.5};

	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
		for (int at = 0; at < 2000; at += 1999) {
			for (int i = 0; i < 2000; i++)
				reference[i] = truth[i] = 1;
			reference[at] = cases[c][0];
			truth[at] = cases[c][1];
			struct metrics m = compared_floats(reference, truth, 2000, lax);

			assert_false(m.passed);
			assert_true(isinf(m.margin) && m.hits == 1999 && m.worst[0].index == at);
			assert_int_equal(m.nan_reference + m.inf_reference, !isfinite(cases[c][0]));
			assert_int_equal(m.nan_ground_truth + m.inf_ground_truth, !isfinite(cases[c][1]));
			assert_true(m.max_abs == 0 && m.mse == 0 && m.mean_rel == 0);
			assert_int_equal(m.zeros_would_pass, isfinite(cases[c][1]));
		}
}

static void infinities_that_match_in_sign_are_hits(void **state)
{
	float reference[] = {INFINITY, -INFINITY, 1}, truth[] = {INFINITY, -INFINITY, 1};
	struct metrics m = compared_floats(reference, truth, 3, all_within);

	(void)state;
	assert_true(m.passed && m.hits == 3 && m.margin == 0 && m.inf_reference == 2 && m.inf_ground_truth == 2);
	assert_true(!m.zeros_would_pass && m.worst_count == 3 && m.worst[0].diff == 0);
}

static void a_hit_ratio_lets_that_share_of_finite_misses_through_and_no_more(void **state)
{
	float reference[100], truth[100];
	struct rule most = {0, 0.1, 0.85};

	(void)state;
	for (int i = 0; i < 100; i++) {
		truth[i] = 1;
		reference[i] = i < 15 ? 2 : 1;
	}
	assert_true(compared_floats(reference, truth, 100, most).passed);
	reference[15] = 2;
	assert_false(compared_floats(reference, truth, 100, most).passed);
}

static void zeros_that_would_pass_are_reported(void **state)
{
	float truth[2000], reference[2000];

	(void)state;
	for (int i = 0; i < 2000; i++)
		reference[i] = truth[i] = i & 1 ? 1e-4f : -1e-4f;
	assert_true(compared_floats(reference, truth, 2000, all_within).zeros_would_pass);
	reference[1500] = truth[1500] = 1;
	assert_false(compared_floats(reference, truth, 2000, all_within).zeros_would_pass);
	assert_true(compared_floats(reference, truth, 2000, (struct rule){1e-3, 1e-2, 0.9}).zeros_would_pass);
	assert_true(compared_floats(reference, truth, 0, all_within).zeros_would_pass);
}

static void an_output_of_nothing_passes_and_has_no_places(void **state)
{
	struct metrics m = compared(NULL, NULL, DTYPE_FLOAT32, 0, all_within);

	(void)state;
	assert_true(m.passed && m.zeros_would_pass && m.worst_count == 0 && m.margin == 0 && m.cosine == 1 &&
		    m.mse == 0);
}

static void a_bound_of_zero_is_met_only_by_equality(void **state)
{
	float truth[] = {0, 0, 1}, reference[] = {0, 1e-30f, 1};
	struct metrics m = compared_floats(reference, truth, 3, (struct rule){0, 0, 1});

	(void)state;
	assert_true(!m.passed && m.hits == 2 && isinf(m.margin));
	assert_int_equal(m.worst[0].index, 1);
	assert_int_equal(m.worst[1].index, 0);
	assert_int_equal(m.worst_count, 3);
}

/* Checks the list of worst places by brute force: each entry must be the worst of all places that are not in the list
 * yet. */
static void assert_worst_places(const float *reference, const float *truth, int64_t elements, const struct metrics *m)
{
	bool *taken = calloc((size_t)elements, sizeof *taken);

	assert_non_null(taken);
	for (int w = 0; w < 5; w++) {
		int64_t best = -1;
		double most = -1;

		for (int64_t i = 0; i < elements; i++) {
			double diff = fabs((double)reference[i] - (double)truth[i]);
			double ratio = isnan(diff)
					   ? INFINITY
					   : diff / (all_within.atol + all_within.rtol * fabs((double)truth[i]));

			if (!taken[i] && (best < 0 || ratio > most)) {
				best = i;
				most = ratio;
			}
		}
		taken[best] = true;
		assert_int_equal(m->worst[w].index, best);
		assert_true(m->worst[w].reference == (double)reference[best] || isnan(reference[best]));
		assert_true(m->worst[w].ground_truth == (double)truth[best]);
	}
	free(taken);
}

static void the_five_worst_places_are_those_of_a_search_through_all(void **state)
{
	int64_t elements = 200003;
	float *truth = malloc((size_t)elements * sizeof *truth),
	      *reference = malloc((size_t)elements * sizeof *reference);

	(void)state;
	assert_true(truth != NULL && reference != NULL);
	for (uint64_t seed = 0; seed < 6; seed++) {
		for (int64_t i = 0; i < elements; i++) {
			float noise =
			    /* from seed 3 on there are few distinct values, so that there are many ties */
			    uniform_signed(philox_bits(seed, i), seed < 3 ? 20 : 2);

			truth[i] = seed < 3 ? uniform_signed(philox_bits(seed + 100, i), 20) : 1;
			reference[i] = truth[i] + noise / 64;
		}
		if (seed & 1)
			reference[150001] = NAN;
		struct metrics m = compared_floats(reference, truth, elements, all_within);

		assert_worst_places(reference, truth, elements, &m);
	}
	free(truth);
	free(reference);
}

/* Let q be the next double below d / (1 + g). The exact product q * (1 + g) is less than d. Finds numbers g and d for
 * which the rounded product is nevertheless at least d. Both g and d have few binary digits, so g + d is exact. */
static void find_what_rounding_hides(double *g, double *d)
{
	for (*g = 2; *g < 4096; *g += 1)
		for (*d = 1; *d < 1 + 0x1p-10; *d += 0x1p-20) {
			volatile double product = nextafter(*d / (1 + *g), 0) * (1 + *g);

			if (*d <= product)
				return;
		}
	fail_msg("no ratio is hidden by rounding");
}

/* Five places with the ratio q of find_what_rounding_hides fill the list of the worst places. One place in a later
 * block has the ratio d / (1 + g), which is larger, so this place must get into the list. A program that compares
 * products instead of ratios would not see that this ratio is larger than q. */
static void a_place_that_rounding_hides_is_among_the_worst(void **state)
{
	enum { COUNT_OF_ALL = 3000, LATER = 2500 };
	static double reference[COUNT_OF_ALL], truth[COUNT_OF_ALL];
	struct metrics metrics;
	double g, d;

	(void)state;
	find_what_rounding_hides(&g, &d);
	for (int i = 0; i < METRICS_WORST; i++)
		reference[10 * i] = nextafter(d / (1 + g), 0);
	truth[LATER] = g;
	reference[LATER] = g + d;
	assert_true(reference[LATER] - truth[LATER] == d);
	compare_host(reference, truth, DTYPE_FLOAT64, COUNT_OF_ALL, (struct rule){1, 1, 1}, &metrics);
	assert_int_equal(metrics.worst_count, METRICS_WORST);
	assert_int_equal(metrics.worst[0].index, LATER);
	assert_true(metrics.margin == d / (1 + g));
}

static void the_result_does_not_depend_on_the_number_of_threads(void **state)
{
	int64_t elements = 1 << 20;
	uint16_t *a = malloc((size_t)elements * 2), *b = malloc((size_t)elements * 2);
	struct metrics one, many;

	(void)state;
	assert_true(a != NULL && b != NULL);
	make_pair(a, b, DTYPE_BFLOAT16, elements, 100000);
	memset(&one, 0, sizeof one);
	memset(&many, 0, sizeof many);
	omp_set_num_threads(1);
	compare_host(a, b, DTYPE_BFLOAT16, elements, all_within, &one);
	for (int threads = 2; threads <= 7; threads++) {
		omp_set_num_threads(threads);
		compare_host(a, b, DTYPE_BFLOAT16, elements, all_within, &many);
		assert_memory_equal(&one, &many, sizeof one);
	}
	free(a);
	free(b);
}

static void integers_beyond_a_double_are_distinguished(void **state)
{
	int64_t truth[] = {INT64_MAX, INT64_MIN, 1LL << 60, 5},
		reference[] = {INT64_MAX - 1, INT64_MIN, (1LL << 60) + 1, 5};
	struct metrics m = compared(reference, truth, DTYPE_INT64, 4, (struct rule){0, 0, 1});

	(void)state;
	assert_true(!m.passed && m.hits == 2 && m.max_abs == 1);
	reference[0] = INT64_MIN;
	m = compared(reference, truth, DTYPE_INT64, 4, (struct rule){0, 0, 1});
	assert_true(m.max_abs == 0x1p64 && m.worst[0].index == 0);
}

static void orthogonal_and_opposite_tensors_show_in_the_cosine(void **state)
{
	float a[] = {1, 0, 2, 0}, b[] = {0, 3, 0, -1}, zero[] = {0, 0, 0, 0}, c[] = {-2, 0, -4, 0};

	(void)state;
	assert_true(compared_floats(a, b, 4, all_within).cosine == 0);
	assert_near(compared_floats(a, c, 4, all_within).cosine, -1);
	assert_true(compared_floats(a, zero, 4, all_within).cosine == 0);
	assert_true(compared_floats(zero, zero, 4, all_within).cosine == 1);
}

/* The cosine of a tensor with itself is at most 1, even if the three sums are rounded. */
static void a_cosine_never_leaves_its_range(void **state)
{
	const struct rule rule = {.atol = 1, .rtol = 1, .hit_ratio = 1};
	int rounded = 0;

	(void)state;
	for (int i = 1; i < 2000; i++) {
		double norm = 1.0 + i / 3.0;
		struct compare_sums sums = {.elements = 2, .finite = 2, .hits = 2, .dot = norm, .norm_reference = norm,
		                            .norm_ground_truth = norm};
		struct metrics m;

		rounded += sums.dot / (sqrt(norm) * sqrt(norm)) > 1;
		compare_finish(&sums, rule, &m);
		assert_true(m.cosine <= 1);
		sums.dot = -norm;
		compare_finish(&sums, rule, &m);
		assert_true(m.cosine >= -1);
	}
	assert_true(rounded > 0); /* the test needs at least one cosine that was rounded to a value above 1 */
	struct compare_sums overflow = {.elements = 1, .finite = 1, .dot = INFINITY, .norm_reference = INFINITY,
	                                .norm_ground_truth = INFINITY};
	struct metrics m;

	compare_finish(&overflow, rule, &m);
	assert_true(isnan(m.cosine));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(figures_agree_with_a_plain_second_implementation),
	    cmocka_unit_test(equal_tensors_pass_with_margin_zero),
	    cmocka_unit_test(one_element_nudged_past_its_bound_fails_wherever_it_is),
	    cmocka_unit_test(the_bound_itself_passes_and_the_next_double_does_not),
	    cmocka_unit_test(nan_on_either_side_or_both_fails_even_with_a_hit_ratio),
	    cmocka_unit_test(infinities_that_match_in_sign_are_hits),
	    cmocka_unit_test(a_hit_ratio_lets_that_share_of_finite_misses_through_and_no_more),
	    cmocka_unit_test(zeros_that_would_pass_are_reported),
	    cmocka_unit_test(an_output_of_nothing_passes_and_has_no_places),
	    cmocka_unit_test(a_bound_of_zero_is_met_only_by_equality),
	    cmocka_unit_test(the_five_worst_places_are_those_of_a_search_through_all),
	    cmocka_unit_test(a_place_that_rounding_hides_is_among_the_worst),
	    cmocka_unit_test(the_result_does_not_depend_on_the_number_of_threads),
	    cmocka_unit_test(integers_beyond_a_double_are_distinguished),
	    cmocka_unit_test(orthogonal_and_opposite_tensors_show_in_the_cosine),
	    cmocka_unit_test(a_cosine_never_leaves_its_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
