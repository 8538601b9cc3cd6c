/* Which verdicts show that the reference keeps nothing from one case to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/case_order.h"
#include "engine/dataset_truth.h"

static void a_stored_verdict_without_an_order_shows_that_nothing_is_kept(void **state)
{
	static const struct verdict ran = {.torch = "2.9.0"}, followed = {.torch = "2.9.0", .after = "none"},
				    ran_nothing = {.status = STATUS_ERROR};
	static const struct own_truth chain = {0}, python = {.program.name = "truths/op/name.py"};
	static const struct row {
		const struct verdict *verdict;
		const struct own_truth *truth;
		bool cached, stateless;
	} rows[] = {
	    {&ran, NULL, true, true},	       {&ran, &chain, true, true},    {&ran, &python, true, false},
	    {&followed, NULL, true, false}, {&ran_nothing, NULL, true, false}, {&ran, NULL, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *row = &rows[i];
		struct case_result only = {.verdict = row->verdict, .cached = row->cached};
		const struct result result = {.cases = &only,
					      .case_count = 1,
					      .planned = 1,
					      .own_truths = row->truth,
					      .own_truth_count = row->truth != NULL};

		assert_int_equal(case_order_is_stateless(&result), row->stateless);
	}
}

/* An attempt with other cases before does not help if a process of the definition itself ended. */
static void a_shared_verdict_of_another_order_breaks_the_order(void **state)
{
	static struct job job;
	static const struct test_case test = {.job = &job};
	static const struct row {
		const char *after;
		bool shared, broken;
	} rows[] = {{"none", false, false}, {"none", true, false}, {"ab12", false, true},
		    {"ab12", true, true},   {AFTER_OTHER, false, false}, {AFTER_OTHER, true, true}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct verdict verdict = {.after = rows[i].after};
		struct case_result only = {
		    .test = &test, .verdict = &verdict, .shared = rows[i].shared, .after_all = "none"};
		const struct result result = {.cases = &only, .case_count = 1, .planned = 1};

		assert_int_equal(case_order_is_broken(&result), rows[i].broken);
	}
}

static void a_reference_that_was_approved_may_keep_something(void **state)
{
	static const struct verdict ran = {.torch = "2.9.0"};
	struct case_result only = {.verdict = &ran, .cached = true};
	const struct result result = {
	    .cases = &only, .case_count = 1, .planned = 1, .approved.truth.program.name = "approved/op/name.json"};

	(void)state;
	assert_false(case_order_is_stateless(&result));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_stored_verdict_without_an_order_shows_that_nothing_is_kept),
	    cmocka_unit_test(a_shared_verdict_of_another_order_breaks_the_order),
	    cmocka_unit_test(a_reference_that_was_approved_may_keep_something),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
