/* test_equal_cases - cases with the same subject share one run: one case runs and the others wait for its verdict. If
 * the running case is cancelled, a waiting case runs instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "engine/equal_cases.h"

static struct digest digest_number(int n)
{
	return digest_of(&n, sizeof n);
}

static void the_first_case_of_a_subject_runs_and_the_others_wait(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct equal_cases equal_cases = {0};
	struct digest a = digest_number(1), b = digest_number(2);

	assert_true(equal_cases_join(&equal_cases, &a, NULL, 10, &arena));
	assert_true(equal_cases_join(&equal_cases, &b, NULL, 20, &arena));
	assert_false(equal_cases_join(&equal_cases, &a, NULL, 11, &arena));
	assert_false(equal_cases_join(&equal_cases, &a, NULL, 12, &arena));
	const struct waiter *who = equal_cases_finish(&equal_cases, &a);

	assert_int_equal(who->case_index, 10);
	int waiting = 0;

	for (who = who->next; who != NULL; who = who->next)
		waiting += who->case_index;
	assert_int_equal(waiting, 11 + 12);
	assert_int_equal(equal_cases_finish(&equal_cases, &b)->case_index, 20);
	arena_free(&arena);
}

static void a_finished_subject_is_removed_and_may_run_again(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct equal_cases equal_cases = {0};
	struct digest a = digest_number(1);

	assert_null(equal_cases_finish(&equal_cases, &a));
	assert_true(equal_cases_join(&equal_cases, &a, NULL, 1, &arena));
	assert_non_null(equal_cases_finish(&equal_cases, &a));
	assert_null(equal_cases_finish(&equal_cases, &a));
	assert_true(equal_cases_join(&equal_cases, &a, NULL, 2, &arena));
	arena_free(&arena);
}

static void thousands_of_subjects_do_not_get_mixed_up(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct equal_cases equal_cases = {0};

	for (int i = 0; i < 5000; i++) {
		struct digest d = digest_number(i);

		assert_true(equal_cases_join(&equal_cases, &d, NULL, i, &arena));
	}
	for (int i = 4999; i >= 0; i--) {
		struct digest d = digest_number(i);

		assert_int_equal(equal_cases_finish(&equal_cases, &d)->case_index, i);
	}
	arena_free(&arena);
}

static struct result *result_number(char *places, int n)
{
	return (struct result *)(void *)(places + n);
}

static void a_case_that_waits_replaces_the_one_that_leaves(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct equal_cases equal_cases = {0};
	struct digest a = digest_number(1), b = digest_number(2);
	char places[3];
	struct result *x = result_number(places, 0), *y = result_number(places, 1), *z = result_number(places, 2);

	assert_null(equal_cases_leave(&equal_cases, &a, x, 0));
	assert_true(equal_cases_join(&equal_cases, &a, x, 0, &arena));
	assert_false(equal_cases_join(&equal_cases, &a, y, 1, &arena));
	assert_false(equal_cases_join(&equal_cases, &a, z, 2, &arena));
	/* case 1 of result y waits, and case 7 does not */
	assert_null(equal_cases_leave(&equal_cases, &a, y, 7));
	assert_null(equal_cases_leave(&equal_cases, &b, x, 0)); /* no case of this subject waits */
	const struct waiter *next = equal_cases_leave(&equal_cases, &a, x, 0);

	assert_non_null(next);
	assert_ptr_equal(next->result, next->case_index == 1 ? y : z);
	struct result *left = next->result == y ? z : y;

	/* if a waiting case is cancelled, no other case has to run instead */
	assert_null(equal_cases_leave(&equal_cases, &a, left, left == y ? 1 : 2));
	next = equal_cases_finish(&equal_cases, &a);
	assert_non_null(next);
	assert_null(next->next);
	arena_free(&arena);
}

static void the_last_case_to_leave_ends_the_run(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct equal_cases equal_cases = {0};
	struct digest a = digest_number(1);
	char places[2];

	assert_true(equal_cases_join(&equal_cases, &a, result_number(places, 0), 0, &arena));
	assert_null(equal_cases_leave(&equal_cases, &a, result_number(places, 0), 0));
	assert_null(equal_cases_finish(&equal_cases, &a));
	assert_true(equal_cases_join(&equal_cases, &a, result_number(places, 1), 0, &arena));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_case_that_waits_replaces_the_one_that_leaves),
	    cmocka_unit_test(the_last_case_to_leave_ends_the_run),
	    cmocka_unit_test(the_first_case_of_a_subject_runs_and_the_others_wait),
	    cmocka_unit_test(a_finished_subject_is_removed_and_may_run_again),
	    cmocka_unit_test(thousands_of_subjects_do_not_get_mixed_up),
	};

	return cmocka_run_group_tests_name("flight", tests, NULL, NULL);
}
