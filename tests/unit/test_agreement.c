/* Who stands alone, from who answered, who differs from whom, and what the oracle says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workers/agreement.h"


/* Ground truths are a, b, c, d: the letters in `answered` gave an answer, `differ` lists pairs ("ab bc"), `against` those
 * that the oracle differs from; NULL: it could not be asked. */
struct row {
	const char *answered, *differ, *against, *says;
};

static const struct row table[] = {
    /* Two: each is as alone as the other, until the oracle says which. */
    {"ab", "ab", "a", "a stands alone against the oracle on the CPU"},
    {"ab", "ab", "b", "b stands alone against the oracle on the CPU"},
    {"ab", "ab", NULL, "1 pair of ground truths differs and no single one stands alone"},
    {"ab", "ab", "ab", "1 pair of ground truths differs and no single one stands alone; the oracle on the CPU differs from all of them"},
    {"ab", "ab", "", "1 pair of ground truths differs and no single one stands alone; the oracle on the CPU differs from none of them"},
    /* One of them was passed over: it neither counts nor can be named. */
    {"ac", "ac", "c", "c stands alone against the oracle on the CPU"},
    {"bd", "bd", NULL, "1 pair of ground truths differs and no single one stands alone"},
    {"bcd", "bd cd", NULL, "d stands alone"},
    {"acd", "ac ad", NULL, "a stands alone"},
    /* Three: two that agree outvote the third. */
    {"abc", "ab ac", NULL, "a stands alone"},
    {"abc", "ab bc", NULL, "b stands alone"},
    {"abc", "ac bc", NULL, "c stands alone"},
    {"abc", "ab ac", "bc", "a stands alone"}, /* the oracle is asked where counting tells nothing */
    {"abc", "ab", "a", "a stands alone against the oracle on the CPU"}, /* c is within the bounds of both */
    {"abc", "bc", "c", "c stands alone against the oracle on the CPU"},
    {"abc", "ab", NULL, "1 pair of ground truths differs and no single one stands alone"},
    {"abc", "ab ac bc", NULL, "3 pairs of ground truths differ and no single one stands alone"},
    {"abc", "ab ac bc", "ab", "3 pairs of ground truths differ and no single one stands alone: a and b differ from the oracle on the CPU"},
    {"abc", "ab ac bc", "b", "b stands alone against the oracle on the CPU"},
    /* Four: three against one; two against two; one against two with the fourth between them. */
    {"abcd", "ab ac ad", NULL, "a stands alone"},
    {"abcd", "ad bd cd", NULL, "d stands alone"},
    {"abcd", "ac ad bc bd", NULL, "4 pairs of ground truths differ and no single one stands alone"},
    {"abcd", "ac ad bc bd", "cd", "4 pairs of ground truths differ and no single one stands alone: c and d differ from the oracle on the CPU"},
    {"abcd", "ab ac ad bc bd", "ab", "5 pairs of ground truths differ and no single one stands alone: a and b differ from the oracle on the CPU"},
    {"abcd", "bc bd", NULL, "2 pairs of ground truths differ and no single one stands alone"},
    {"abcd", "bc bd", "b", "b stands alone against the oracle on the CPU"},
    {"abcd", "ab cd", "ac", "2 pairs of ground truths differ and no single one stands alone: a and c differ from the oracle on the CPU"},
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

static void who_stands_alone_is_named(void **state)
{
	static const char *const names[] = {"a", "b", "c", "d"};

	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct agreement agreement = agreement_of(&table[i]);
		struct agreement_vote vote = vote_of(&table[i]);
		struct buf text = {0};

		agreement_say(&agreement, &vote, names, &text);
		if (strcmp(text.data, table[i].says) != 0)
			fail_msg("row %zu: '%s', expected '%s'", i, text.data, table[i].says);
		buf_free(&text);
	}
}

/* Whichever places the same answers lie in, the same one is named: by every order of four. */
static void the_order_of_asking_names_nobody_else(void **state)
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
		agreement.answered[first] = false; /* a vote on who said nothing */
		assert_int_equal(agreement_alone_by(&agreement, &vote), -1);
	}
}

static void who_agrees_is_not_alone(void **state)
{
	struct agreement agreement = {.count = 4, .answered = {true, true, true, true}};

	(void)state;
	assert_int_equal(agreement_differences(&agreement), 0);
	assert_int_equal(agreement_alone(&agreement), -1);
	agreement = (struct agreement){.count = 4, .answered = {true}};
	assert_int_equal(agreement_alone(&agreement), -1);
}

/* A coarse one is heard, and alone it does where nobody finer was asked: but not in the place of one who failed. */
static void coarse_answers_do_not_stand_for_a_finer_one_that_failed(void **state)
{
	enum { COARSE, FINE, EXACT, COUNT };
	static const bool coarse[TRUTHS_MAX] = {true};
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
	    cmocka_unit_test(who_stands_alone_is_named),
	    cmocka_unit_test(the_order_of_asking_names_nobody_else),
	    cmocka_unit_test(who_agrees_is_not_alone),
	    cmocka_unit_test(coarse_answers_do_not_stand_for_a_finer_one_that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
