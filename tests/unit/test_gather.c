/* Which changes are one batch, without git: the time is the test's own. */
#include "commands/gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Definitions are taken and their batch is worked off at once; true: they belong to an open batch. */
static bool take(struct gather *gather, int64_t now_ms, int names)
{
	bool open = gather_take(gather, now_ms, names, 0);

	gather->done_ms = now_ms;
	return open;
}

static void single_saves_are_never_gathered(void **state)
{
	struct gather gather = {0};

	(void)state;
	for (int64_t now_ms = 1000; now_ms < 2000;
	     now_ms += 7) { /* as fast as verdicts come, and a definition with its workload */
		assert_false(gather_keeps(&gather, now_ms));
		assert_false(take(&gather, now_ms, 1 + (int)(now_ms % 3)));
		gather_rest(&gather, now_ms + 1);
		assert_false(gather_seals(&gather));
	}
}

static void many_that_come_after_a_rest_are_no_rush(void **state)
{
	struct gather gather = {0};

	(void)state;
	assert_false(take(&gather, 1000, 50)); /* all at once, as the first */
	assert_false(take(&gather, 1000 + GATHER_MS, 50));
	assert_false(gather_keeps(&gather, 1001 + GATHER_MS));
}

static void files_that_keep_coming_are_gathered(void **state)
{
	struct gather gather = {0};

	(void)state;
	assert_false(take(&gather, 1000, 1)); /* the first is acted on at once */
	assert_true(take(&gather, 1003, RUSH_NAMES));
	assert_true(gather_keeps(&gather, 1004));
	assert_true(gather_keeps(&gather, 1003 + GATHER_MS - 1));
	assert_false(gather_keeps(&gather, 1003 + GATHER_MS));
	assert_true(take(&gather, 1003 + GATHER_MS, 1)); /* however few */
	assert_int_equal(gather_deadline(&gather), 1003 + GATHER_MS + RUSH_REST_MS);
	gather_rest(&gather, 1003 + GATHER_MS + RUSH_REST_MS - 1);
	assert_false(gather_seals(&gather));
	gather_rest(&gather, 1003 + GATHER_MS + RUSH_REST_MS);
	assert_true(gather_seals(&gather));
	assert_false(gather_seals(&gather)); /* once */
	assert_false(take(&gather, 2000, RUSH_NAMES));
	assert_int_equal(gather_deadline(&gather), INT64_MAX);
}

static void work_that_takes_long_does_not_hide_a_rush(void **state)
{
	struct gather gather = {0};

	(void)state;
	assert_false(gather_take(&gather, 1000, 1, 0));
	gather.done_ms = 1500; /* what came meanwhile came while nobody could look */
	assert_true(gather_take(&gather, 1501, RUSH_NAMES, 0));
}

static void one_more_batch_would_only_wait(void **state)
{
	struct gather gather = {0};

	(void)state;
	assert_false(gather_take(&gather, 1000, 1, RUSH_BATCHES));
	assert_false(gather_take(&gather, 1010, 1, RUSH_BATCHES - 1));
	assert_true(gather_take(&gather, 1020, 1, RUSH_BATCHES));
}

static void a_rush_ends_when_somebody_asks(void **state)
{
	struct gather gather = {0};

	(void)state;
	take(&gather, 1000, 1);
	assert_true(take(&gather, 1001, RUSH_NAMES));
	gather_hurry(&gather);
	assert_false(gather_keeps(&gather, 1002));
	assert_true(gather_seals(&gather));
	gather_hurry(&gather); /* of none there is nothing to end */
	assert_false(gather_seals(&gather));
}

static void no_batch_is_open_for_ever(void **state)
{
	struct gather gather = {0};
	int64_t sealed_ms = 0;

	(void)state;
	take(&gather, 1000, 1);
	for (int64_t now_ms = 1001; now_ms < 1001 + 2 * GATHER_LONGEST_MS && sealed_ms == 0; now_ms += GATHER_MS / 2) {
		if (!gather_keeps(&gather, now_ms))
			take(&gather, now_ms, RUSH_NAMES);
		if (gather_seals(&gather))
			sealed_ms = now_ms;
	}
	assert_in_range(sealed_ms, 1001 + GATHER_LONGEST_MS, 1001 + GATHER_LONGEST_MS + GATHER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(single_saves_are_never_gathered),
	    cmocka_unit_test(many_that_come_after_a_rest_are_no_rush),
	    cmocka_unit_test(files_that_keep_coming_are_gathered),
	    cmocka_unit_test(work_that_takes_long_does_not_hide_a_rush),
	    cmocka_unit_test(one_more_batch_would_only_wait),
	    cmocka_unit_test(a_rush_ends_when_somebody_asks),
	    cmocka_unit_test(no_batch_is_open_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
