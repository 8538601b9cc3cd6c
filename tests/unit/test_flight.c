#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "commands/flight.h"

static struct digest digest_number(int n)
{
	return digest_of(&n, sizeof n);
}

static void the_first_case_of_a_subject_runs_and_the_others_wait(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct flights flights = {0};
	struct digest a = digest_number(1), b = digest_number(2);

	assert_true(flight_board(&flights, &a, NULL, 10, &arena));
	assert_true(flight_board(&flights, &b, NULL, 20, &arena));
	assert_false(flight_board(&flights, &a, NULL, 11, &arena));
	assert_false(flight_board(&flights, &a, NULL, 12, &arena));
	const struct passenger *who = flight_land(&flights, &a);

	assert_int_equal(who->case_index, 10);
	int waiting = 0;

	for (who = who->next; who != NULL; who = who->next)
		waiting += who->case_index;
	assert_int_equal(waiting, 11 + 12);
	assert_int_equal(flight_land(&flights, &b)->case_index, 20);
	arena_free(&arena);
}

static void a_landed_subject_is_gone_and_may_fly_again(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct flights flights = {0};
	struct digest a = digest_number(1);

	assert_null(flight_land(&flights, &a));
	assert_true(flight_board(&flights, &a, NULL, 1, &arena));
	assert_non_null(flight_land(&flights, &a));
	assert_null(flight_land(&flights, &a));
	assert_true(flight_board(&flights, &a, NULL, 2, &arena));
	arena_free(&arena);
}

static void thousands_of_subjects_do_not_get_mixed_up(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct flights flights = {0};

	for (int i = 0; i < 5000; i++) {
		struct digest d = digest_number(i);

		assert_true(flight_board(&flights, &d, NULL, i, &arena));
	}
	for (int i = 4999; i >= 0; i--) {
		struct digest d = digest_number(i);

		assert_int_equal(flight_land(&flights, &d)->case_index, i);
	}
	arena_free(&arena);
}

static struct outcome *outcome_number(char *places, int n)
{
	return (struct outcome *)(void *)(places + n);
}

static void who_waits_takes_the_place_of_the_one_that_leaves(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct flights flights = {0};
	struct digest a = digest_number(1), b = digest_number(2);
	char places[3];
	struct outcome *x = outcome_number(places, 0), *y = outcome_number(places, 1), *z = outcome_number(places, 2);

	assert_null(flight_leave(&flights, &a, x, 0));
	assert_true(flight_board(&flights, &a, x, 0, &arena));
	assert_false(flight_board(&flights, &a, y, 1, &arena));
	assert_false(flight_board(&flights, &a, z, 2, &arena));
	assert_null(flight_leave(&flights, &a, y, 7)); /* another case of it */
	assert_null(flight_leave(&flights, &b, x, 0)); /* another subject */
	const struct passenger *next = flight_leave(&flights, &a, x, 0);

	assert_non_null(next);
	assert_ptr_equal(next->outcome, next->case_index == 1 ? y : z);
	struct outcome *left = next->outcome == y ? z : y;

	assert_null(flight_leave(&flights, &a, left, left == y ? 1 : 2)); /* who only waits is missed by nobody */
	next = flight_land(&flights, &a);
	assert_non_null(next);
	assert_null(next->next);
	arena_free(&arena);
}

static void the_last_one_to_leave_ends_the_flight(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct flights flights = {0};
	struct digest a = digest_number(1);
	char places[2];

	assert_true(flight_board(&flights, &a, outcome_number(places, 0), 0, &arena));
	assert_null(flight_leave(&flights, &a, outcome_number(places, 0), 0));
	assert_null(flight_land(&flights, &a));
	assert_true(flight_board(&flights, &a, outcome_number(places, 1), 0, &arena));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(who_waits_takes_the_place_of_the_one_that_leaves),
	    cmocka_unit_test(the_last_one_to_leave_ends_the_flight),
	    cmocka_unit_test(the_first_case_of_a_subject_runs_and_the_others_wait),
	    cmocka_unit_test(a_landed_subject_is_gone_and_may_fly_again),
	    cmocka_unit_test(thousands_of_subjects_do_not_get_mixed_up),
	};

	return cmocka_run_group_tests_name("flight", tests, NULL, NULL);
}
