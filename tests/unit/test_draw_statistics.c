/* test_draw_statistics - the statistical test of samplers: a wrong sampler is found, and the rate of false alarms about
 * correct samplers is as low as promised. Where the exact probability of a false alarm can be computed, the test
 * computes this probability. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "kernels/core/random_inputs.h"
#include "kernels/sampling/draw_statistics.c"
#include "kernels/sampling/draw_suspects.c"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

enum { MOST_ROWS = 1000, ALARMS = QUESTIONS };

static void a_run_of_five_hundred_cases_is_falsely_alarmed_once_in_a_million_at_most(void **state)
{
	const double same = 1e-10; /* the constant false_sameness of judge_samples.c */

	(void)state;
	assert_int_equal(ALARMS, 490);
	assert_true(500 * (3 * false_alarm + false_suspicion + same) <= 1e-6);
}

/* A split divides the tokens into two sides. mean[i] is the probability that the draw of row i is on the first side.
 * Computes the probability of each possible number of draws on the first side, row by row. */
static void count_exactly(const double *mean, int rows, double *probability)
{
	memset(probability, 0, (size_t)(rows + 1) * sizeof *probability);
	probability[0] = 1;
	for (int row = 0; row < rows; row++)
		for (int k = row + 1; k >= 0; k--)
			probability[k] = probability[k] * (1 - mean[row]) + (k > 0 ? probability[k - 1] * mean[row] : 0);
}

/* Returns the probability that one split raises a false alarm about a correct sampler. */
static double alarm_probability(const double *mean, int rows)
{
	double probability[MOST_ROWS + 1], sum = 0, alarm = 0;

	count_exactly(mean, rows, probability);
	for (int row = 0; row < rows; row++)
		sum += mean[row];
	for (int k = 0; k <= rows; k++)
		if (margin_of((double)k / rows, sum / rows, 0, rows) > 1)
			alarm += probability[k];
	return alarm;
}

/* Computes the probability of a false alarm for two kinds of rows: all rows have the same mean, which makes false
 * alarms most frequent, or every third row has another mean. */
static void every_tally_and_split_is_falsely_alarmed_as_rarely_as_was_derived(void **state)
{
	static const int rows[] = {1, 2, 8, 40, 120, 320, MOST_ROWS};
	static const double means[] = {1e-6, 0.01, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9, 0.999};
	double share = 2 * false_alarm / ALARMS, largest = 0, mean[MOST_ROWS];

	(void)state;
	for (int r = 0; r < COUNT(rows); r++)
		for (int m = 0; m < COUNT(means); m++)
			for (int other = 0; other < COUNT(means); other++) {
				for (int row = 0; row < rows[r]; row++)
					mean[row] = row % 3 == 2 ? means[other] : means[m];
				double alarm = alarm_probability(mean, rows[r]);

				if (alarm > share)
					fail_msg("%d rows of %g and %g: %.3g, more than %.3g", rows[r], means[m],
					         means[other], alarm, share);
				largest = fmax(largest, alarm);
			}
	assert_true(largest > share / 100); /* some probability is at least a hundredth of the bound, so the bound is
					     * not far too high */
}

/* Draws from the probabilities {0.4, 0.3, 0.2, 0.1} as a correct sampler does. In row r, the first of them belongs to
 * token r % 4. */
static struct draw draw_one(struct filter *filter, int64_t row, uint64_t key)
{
	static const double p[] = {0.4, 0.3, 0.2, 0.1};
	double u = (double)philox_bits(key, row) * 0x1p-32;
	int i = 0;

	for (int v = 0; v < 4; v++)
		filter->value[(v + row) % 4] = p[v];
	struct filter_kept kept = filter_row(filter, &(struct filter_bounds){.has_top_k = true, .top_k = row % 2 ? 3 : 4});

	u *= kept.mass;
	while (i + 1 < kept.count && u >= p[i])
		u -= p[i++];
	return draw_of(filter, &kept, (i + row) % 4);
}

/* Checks the rate of false alarms with a threshold that allows a false alarm in one of twenty cases. At the real
 * threshold, false alarms are too rare to be counted in a test; both thresholds come from the same formula. */
static void correct_samplers_are_alarmed_no_more_often_than_alpha_says(void **state)
{
	enum { CASES = 2000, ROWS = 120 };
	const double alpha = 0.05, limit = log(ALARMS / alpha) / log(ALARMS / false_alarm);
	struct draw draws[ROWS];
	struct filter filter;
	int alarms = 0;

	(void)state;
	assert_int_equal(filter_open(&filter, 4, NULL), 0);
	for (int i = 0; i < CASES; i++) {
		for (int64_t row = 0; row < ROWS; row++)
			draws[row] = draw_one(&filter, row, (uint64_t)i + 1);
		struct draws sum = draws_count(draws, ROWS);
		struct draws_verdict verdict = draws_judge(&sum, NULL);

		assert_true(verdict.margin < 1);
		alarms += verdict.margin > limit;
	}
	filter_close(&filter);
	assert_true(alarms > 0);
	assert_true(alarms <= alpha * CASES);
}

/* A suspect is a specific wrong sampler (draw_suspects.h). Its odds for a token are the probability that it draws the
 * token, divided by the probability that a correct sampler draws it. Checks that the odds of every suspect have the
 * mean 1 if a correct sampler draws from the `count` probabilities `p`. Sets asked[s] to true if the odds of suspect s
 * differ from 1 for some token. */
static void expect_mean_one(const double *p, int count, const struct filter_bounds *bounds, bool asked[DRAW_SUSPECTS])
{
	double mean[DRAW_SUSPECTS] = {0};
	struct filter filter;

	assert_int_equal(filter_open(&filter, count, NULL), 0);
	memcpy(filter.value, p, (size_t)count * sizeof *p);
	struct filter_kept kept = filter_row(&filter, bounds);

	for (int token = 0; token < count; token++) {
		if (p[token] < kept.threshold)
			continue;
		struct draw draw = draw_of(&filter, &kept, token);

		for (int s = 0; s < DRAW_SUSPECTS; s++) {
			mean[s] += p[token] / kept.mass * exp(draw.suspicion[s]);
			asked[s] = asked[s] || draw.suspicion[s] != 0;
		}
	}
	for (int s = 0; s < DRAW_SUSPECTS; s++)
		assert_true(fabs(mean[s] - 1) < 1e-11);
	filter_close(&filter);
}

/* With a correct sampler, the odds of a suspect have the mean 1, and the product of the odds over several rows has the
 * mean 1, too. Therefore the product is rarely large, and a large product shows a wrong sampler. */
static void a_correct_samplers_odds_have_the_mean_one_for_every_suspect(void **state)
{
	static const struct filter_bounds bounds[] = {
	    {.has_top_k = false},
	    {.has_top_k = true, .top_k = 3},
	    {.has_top_p = true, .top_p = 0.75},
	    {.has_top_p = true, .top_p = 0.6126},
	    {.has_top_p = true, .top_p = 0},
	    {.has_top_k = true, .top_k = 3, .has_top_p = true, .top_p = 0.5},
	    {.has_min_p = true, .min_p = 0.45},
	};
	static const double tied[] = {64. / 256, 32. / 256, 32. / 256, 32. / 256, 32. / 256, 31. / 256, 31. / 256, 2. / 256};
	enum { MANY = DRAW_LIKELIEST_TOKENS + 76, MORE = FILTER_DEEP + 4 };
	static double p[MORE];
	bool asked[DRAW_SUSPECTS] = {false};

	(void)state;
	memcpy(p, (double[]){0.0875, 0.2625, 0.13125, 0.21875, 0.07, 0.105}, 6 * sizeof *p);
	for (int token = 6; token < MANY; token++)
		p[token] = 0.125 / (MANY - 6);
	for (int i = 0; i < COUNT(bounds); i++)
		expect_mean_one(p, MANY, &bounds[i], asked);
	expect_mean_one(tied, COUNT(tied), &(struct filter_bounds){.has_min_p = true, .min_p = 0.5}, asked);
	for (int token = 0; token < MORE; token++)
		p[token] = token < 4 ? 0.125 : 0.5 / (MORE - 4);
	expect_mean_one(p, MORE, &(struct filter_bounds){.has_top_k = false}, asked);
	for (int token = 0; token < MORE; token++)
		p[token] = (1.5 - (token + 0.5) / MORE) / MORE;
	expect_mean_one(p, MORE, &(struct filter_bounds){.has_top_k = false}, asked);
	for (int s = 0; s < DRAW_SUSPECTS; s++)
		assert_true(asked[s] == (s != DRAW_SAME)); /* draw_of looks at one row, but DRAW_SAME compares two
							    * rows */
	assert_true(fabs(0.3 * exp(draw_suspect_same(true, 0.3)) + 0.7 * exp(draw_suspect_same(false, 0.3)) - 1) < 1e-11);
}

/* If the sum of the kept probabilities is 0 or infinite in float16, a draw is no evidence about samplers that round
 * these sums to float16. */
static void sums_that_a_dtype_cannot_represent_are_no_evidence(void **state)
{
	static const double scales[] = {1e-12, 1e9};
	struct filter filter;

	(void)state;
	assert_int_equal(filter_open(&filter, 4, NULL), 0);
	for (int i = 0; i < COUNT(scales); i++) {
		for (int token = 0; token < 4; token++)
			filter.value[token] = (0.4 - 0.1 * token) * scales[i];
		struct filter_kept kept = filter_row(&filter, &(struct filter_bounds){.has_top_k = true, .top_k = 3});
		struct draw draw = draw_of(&filter, &kept, 1);

		assert_true(draw.suspicion[DRAW_SUMS + DRAW_OF_RAW] == 0 && draw.suspicion[DRAW_SUMS] != 0);
		for (int s = 0; s < DRAW_SUSPECTS; s++)
			assert_true(isfinite(draw.suspicion[s]));
	}
	filter_close(&filter);
}

/* If correct samplers keep different tokens, the odds of a suspect have a mean of at most 1 with each of these
 * samplers. */
static void the_odds_of_limits_have_a_mean_of_at_most_one_if_samplers_keep_different_tokens(void **state)
{
	enum { TOKENS = FILTER_DEEP + 256 };
	static double odds[TOKENS][DRAW_SUSPECTS];
	struct filter_bounds bounds = {.has_top_p = true, .top_p = 0.98};
	struct filter filter;
	double mean[DRAW_SUSPECTS] = {0}, sum = 0, most = 0;
	int64_t count = 0;

	(void)state;
	assert_int_equal(filter_open(&filter, TOKENS, NULL), 0);
	for (int token = 0; token < TOKENS; token++)
		filter.value[token] = (1.5 - (token + 0.5) / TOKENS) / TOKENS;
	struct filter_kept kept = filter_row(&filter, &bounds);

	assert_true(kept.slack > 0 && kept.count > FILTER_DEEP);
	while (count < TOKENS && filter.value[count] >= kept.least)
		most += filter.value[count++];
	assert_true(count > kept.count);
	for (int token = 0; token < count; token++) {
		struct draw draw = draw_of(&filter, &kept, token);

		for (int s = 0; s < DRAW_SUSPECTS; s++)
			odds[token][s] = exp(draw.suspicion[s]);
	}
	/* each sampler keeps one token fewer than the sampler before it */
	for (sum = most; sum > most * (1 - kept.slack) - 1e-9; sum -= filter.value[--count]) {
		memset(mean, 0, sizeof mean);
		for (int token = 0; token < count; token++)
			for (int s = 0; s < DRAW_SUSPECTS; s++)
				mean[s] += filter.value[token] / sum * odds[token][s];
		for (int s = 0; s < DRAW_SUSPECTS; s++)
			assert_true(mean[s] < 1 + 1e-11);
	}
	assert_true(count < kept.count && mean[DRAW_LIKELIEST] > 0.999 && mean[DRAW_LIKELIEST_4096] > 0.999);
	filter_close(&filter);
}

/* If float32 represents the limit of min-p exactly, a token at this limit must be kept. If float32 rounds the limit,
 * the token may be dropped. */
static void a_token_at_an_exact_limit_of_min_p_must_be_kept(void **state)
{
	struct filter_bounds bounds = {.has_min_p = true, .min_p = 0.5};
	struct filter filter;

	(void)state;
	assert_int_equal(filter_open(&filter, 4, NULL), 0);
	memcpy(filter.value, (double[]){0.5, 0.25, 0.15, 0.1}, 4 * sizeof *filter.value);
	struct filter_kept kept = filter_row(&filter, &bounds);

	assert_int_equal(kept.count, 2);
	assert_true(kept.slack == 0);
	bounds.min_p = (double)0.3f;
	memcpy(filter.value, (double[]){0.5f, 0.25, 0.5f * (double)0.3f, 0.1}, 4 * sizeof *filter.value);
	assert_true(filter_row(&filter, &bounds).slack == 0);
	memcpy(filter.value, (double[]){0.7f, 0.2, 0.7f * (double)0.3f, 0.1}, 4 * sizeof *filter.value);
	assert_true(filter_row(&filter, &bounds).slack > 0);
	filter_close(&filter);
}

/* In a race with the weights {2, 1} and uniform noise, the first token wins if its noise is less than twice the noise
 * of the other token. Therefore the first token wins three quarters of all races. */
static void a_race_with_uniform_noise_is_predicted(void **state)
{
	struct filter filter;

	(void)state;
	assert_int_equal(filter_open(&filter, 2, NULL), 0);
	filter.value[0] = 2;
	filter.value[1] = 1;
	struct filter_kept kept = filter_row(&filter, &(struct filter_bounds){.has_top_k = false});

	assert_true(fabs(race_share(&filter, &kept) - 0.75) < 1e-12);
	filter_close(&filter);
}

static void a_suspicion_is_reported_with_the_suspected_mistake(void **state)
{
	double suspicion[DRAW_SUSPECTS] = {0};
	struct err why = {""};

	(void)state;
	assert_int_equal(DRAW_SUSPECTS, 52); /* the number from which draw_suspects.h computes the threshold */
	suspicion[DRAW_SHORT] = 24.6;
	assert_true(draws_suspect(suspicion, &why) < 1);
	suspicion[DRAW_SHORT] = 24.7;
	assert_true(draws_suspect(suspicion, &why) > 1);
	assert_non_null(strstr(why.text, "the rest of top_p"));
}

/* This wrong sampler returns the most likely token in every second row. The statistical test must find such a sampler
 * wrong after 320 rows. */
static void a_sampler_that_strays_is_alarmed(void **state)
{
	enum { ROWS = 320 };
	struct draw draws[ROWS];
	struct err why = {""};
	struct filter filter;

	(void)state;
	assert_int_equal(filter_open(&filter, 4, NULL), 0);
	for (int64_t row = 0; row < ROWS; row++) {
		draws[row] = draw_one(&filter, row, 1);
		if (row % 2 == 0)
			draws[row].bucket[0] = 0;
	}
	filter_close(&filter);
	struct draws sum = draws_count(draws, ROWS), half = draws_count(draws, ROWS / 2);
	struct draws rest = draws_count(draws + ROWS / 2, ROWS - ROWS / 2);

	assert_true(draws_judge(&sum, &why).margin > 1);
	draws_add(&half, &rest);
	assert_true(fabs(draws_judge(&half, NULL).margin - draws_judge(&sum, NULL).margin) < 1e-9);
	assert_non_null(strstr(why.text, "fewer than one case in 10^9"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_run_of_five_hundred_cases_is_falsely_alarmed_once_in_a_million_at_most),
	    cmocka_unit_test(every_tally_and_split_is_falsely_alarmed_as_rarely_as_was_derived),
	    cmocka_unit_test(correct_samplers_are_alarmed_no_more_often_than_alpha_says),
	    cmocka_unit_test(a_correct_samplers_odds_have_the_mean_one_for_every_suspect),
	    cmocka_unit_test(sums_that_a_dtype_cannot_represent_are_no_evidence),
	    cmocka_unit_test(the_odds_of_limits_have_a_mean_of_at_most_one_if_samplers_keep_different_tokens),
	    cmocka_unit_test(a_token_at_an_exact_limit_of_min_p_must_be_kept),
	    cmocka_unit_test(a_race_with_uniform_noise_is_predicted),
	    cmocka_unit_test(a_suspicion_is_reported_with_the_suspected_mistake),
	    cmocka_unit_test(a_sampler_that_strays_is_alarmed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
