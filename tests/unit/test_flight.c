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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_first_case_of_a_subject_runs_and_the_others_wait),
	    cmocka_unit_test(a_landed_subject_is_gone_and_may_fly_again),
	    cmocka_unit_test(thousands_of_subjects_do_not_get_mixed_up),
	};

	return cmocka_run_group_tests_name("flight", tests, NULL, NULL);
}
