/* test_agreement - if ground truths differ, the wrong one (the outlier) is named, but only if the differences show
 * which one is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workers/judge/agreement.h"

/* The ground truths are a, b, c and d. `answered` has the letters of the ground truths that computed an output.
 * `differ` lists the pairs that differ ("ab bc"). `against` has the letters of the ground truths from which the oracle
 * differs; NULL: the oracle could not compute an output. */
struct row {
	const char *answered, *differ, *against, *says;
};

static const struct row table[] = {
    /* Two ground truths that differ: only the oracle can show which one is the outlier. */
    {"ab", "ab", "a", "a is the outlier, by comparison with the oracle on the CPU"},
    {"ab", "ab", "b", "b is the outlier, by comparison with the oracle on the CPU"},
    {"ab", "ab", NULL, "1 pair of ground truths differs, and no single ground truth is the outlier"},
    {"ab", "ab", "ab", "1 pair of ground truths differs, and no single ground truth is the outlier; the oracle on the CPU differs from all of the ground truths"},
    {"ab", "ab", "", "1 pair of ground truths differs, and no single ground truth is the outlier; the oracle on the CPU differs from none of the ground truths"},
    /* A ground truth that computed no output is not counted and cannot be the outlier. */
    {"ac", "ac", "c", "c is the outlier, by comparison with the oracle on the CPU"},
    {"bd", "bd", NULL, "1 pair of ground truths differs, and no single ground truth is the outlier"},
    {"bcd", "bd cd", NULL, "d is the outlier"},
    {"acd", "ac ad", NULL, "a is the outlier"},
    /* Three ground truths: if two agree, the third is the outlier. */
    {"abc", "ab ac", NULL, "a is the outlier"},
    {"abc", "ab bc", NULL, "b is the outlier"},
    {"abc", "ac bc", NULL, "c is the outlier"},
    {"abc", "ab ac", "bc", "a is the outlier"}, /* b and c agree, so the oracle is not consulted */
    {"abc", "ab", "a", "a is the outlier, by comparison with the oracle on the CPU"}, /* c agrees with both a and b */
    {"abc", "bc", "c", "c is the outlier, by comparison with the oracle on the CPU"},
    {"abc", "ab", NULL, "1 pair of ground truths differs, and no single ground truth is the outlier"},
    {"abc", "ab ac bc", NULL, "3 pairs of ground truths differ, and no single ground truth is the outlier"},
    {"abc", "ab ac bc", "ab", "3 pairs of ground truths differ, and no single ground truth is the outlier: a and b differ from the oracle on the CPU"},
    {"abc", "ab ac bc", "b", "b is the outlier, by comparison with the oracle on the CPU"},
    /* Four ground truths. The cases, in the order of the rows, are: One differs from the other three (two rows). Each
     * of a and b differs from each of c and d (two rows). Only c and d agree. Only b differs, from c and d (two rows).
     * a differs from b, and c differs from d. */
    {"abcd", "ab ac ad", NULL, "a is the outlier"},
    {"abcd", "ad bd cd", NULL, "d is the outlier"},
    {"abcd", "ac ad bc bd", NULL, "4 pairs of ground truths differ, and no single ground truth is the outlier"},
    {"abcd", "ac ad bc bd", "cd", "4 pairs of ground truths differ, and no single ground truth is the outlier: c and d differ from the oracle on the CPU"},
    {"abcd", "ab ac ad bc bd", "ab", "5 pairs of ground truths differ, and no single ground truth is the outlier: a and b differ from the oracle on the CPU"},
    {"abcd", "bc bd", NULL, "2 pairs of ground truths differ, and no single ground truth is the outlier"},
    {"abcd", "bc bd", "b", "b is the outlier, by comparison with the oracle on the CPU"},
    {"abcd", "ab cd", "ac", "2 pairs of ground truths differ, and no single ground truth is the outlier: a and c differ from the oracle on the CPU"},
};

static struct agreement agreement_of(const struct row *row)
{
	struct agreement out = {.count = 4};

	for (const char *c = row->answered; *c != '\0'; c++)
		out.answered[*c - 'a'] = true;
	for (const char *c = row->differ; *c != '\0'; c += c[2] == ' ' ? 3 : 2)
		agreement_differ(&out, c[1] - 'a', c[0] - 'a');
	return out;
}

static struct agreement_vote vote_of(const struct row *row)
{
	struct agreement_vote out = {.cast = row->against != NULL};

	for (const char *c = row->against; c != NULL && *c != '\0'; c++)
		out.against[*c - 'a'] = true;
	return out;
}

static void the_outlier_is_named(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct agreement agreement = agreement_of(&table[i]);
		struct agreement_vote vote = vote_of(&table[i]);
		struct buf text = {0};

		agreement_describe(&agreement, &vote, names, &text);
		if (strcmp(text.data, table[i].says) != 0)
			fail_msg("row %zu: '%s', expected '%s'", i, text.data, table[i].says);
		buf_free(&text);
	}
}

/* The result does not depend on the outlier's place in the list of four ground truths. */
static void the_order_of_ground_truths_does_not_change_the_outlier(void **state)
{
	(void)state;
	for (int first = 0; first < 4; first++) {
		struct agreement agreement = {.count = 4, .answered = {true, true, true, true}};
		struct agreement_vote vote = {.cast = true};

		for (int other = 0; other < 4; other++)
			if (other != first)
				agreement_differ(&agreement, first, other);
		assert_int_equal(agreement_differences(&agreement), 3);
		assert_int_equal(agreement_alone(&agreement), first);
		assert_int_equal(agreement_alone_by(&agreement, &vote), -1);
		vote.against[first] = true;
		assert_int_equal(agreement_alone_by(&agreement, &vote), first);
		agreement.answered[first] = false; /* the vote of the oracle is still against this ground truth, but a
						    * ground truth without an output cannot be the outlier */
		assert_int_equal(agreement_alone_by(&agreement, &vote), -1);
	}
}

static void a_ground_truth_that_agrees_is_no_outlier(void **state)
{
	struct agreement agreement = {.count = 4, .answered = {true, true, true, true}};

	(void)state;
	assert_int_equal(agreement_differences(&agreement), 0);
	assert_int_equal(agreement_alone(&agreement), -1);
	agreement = (struct agreement){.count = 4, .answered = {true}};
	assert_int_equal(agreement_alone(&agreement), -1);
}

/* A coarse ground truth is not enough for a verdict if a finer ground truth was called, too, but computed no output. If
 * no finer ground truth was called, the coarse one is enough. */
static void coarse_outputs_do_not_replace_a_finer_ground_truth_that_failed(void **state)
{
	enum { COARSE, FINE, EXACT, COUNT };
	static const bool coarse[GROUND_TRUTHS_MAX] = {true};
	static const struct {
		bool answered[COUNT];
		int exact;
		bool too_coarse;
	} rows[] = {
	    {{true, false, false}, EXACT, true}, {{true, false, false}, -1, false}, {{true, false, true}, EXACT, false},
	    {{true, true, false}, EXACT, false}, {{false, true, false}, EXACT, false}, {{false, false, false}, EXACT, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct agreement agreement = {.count = COUNT};

		memcpy(agreement.answered, rows[i].answered, sizeof rows[i].answered);
		if (agreement_too_coarse(&agreement, coarse, rows[i].exact) != rows[i].too_coarse)
			fail_msg("row %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_outlier_is_named),
	    cmocka_unit_test(the_order_of_ground_truths_does_not_change_the_outlier),
	    cmocka_unit_test(a_ground_truth_that_agrees_is_no_outlier),
	    cmocka_unit_test(coarse_outputs_do_not_replace_a_finer_ground_truth_that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
