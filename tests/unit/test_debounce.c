/* test_debounce - which changes of files `watch` puts into one batch. The test sets the time itself and needs no
 * git. */
#include "watcher/debounce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Reports a change of `names` definitions, and then sets the clock of `debounce` as if the last batch had ended at this
 * moment. Returns true if the change must be put into an open batch, to which later changes may be added. */
static bool take(struct debounce *debounce, int64_t now_ms, int names)
{
	bool open = debounce_take(debounce, now_ms, names, 0);

	debounce->done_ms = now_ms;
	return open;
}

static void single_saves_are_never_gathered(void **state)
{
	struct debounce debounce = {0};

	(void)state;
	for (int64_t now_ms = 1000; now_ms < 2000;
	     now_ms += 7) { /* each change arrives after the verdict of the previous one */
		assert_false(debounce_defers(&debounce, now_ms));
		assert_false(take(&debounce, now_ms, 1 + (int)(now_ms % 3)));
		debounce_rest(&debounce, now_ms + 1);
		assert_false(debounce_seals(&debounce));
	}
}

static void many_that_come_after_a_rest_are_no_rush(void **state)
{
	struct debounce debounce = {0};

	(void)state;
	assert_false(take(&debounce, 1000, 50)); /* a change of 50 names starts a batch immediately */
	assert_false(take(&debounce, 1000 + DEBOUNCE_MS, 50));
	assert_false(debounce_defers(&debounce, 1001 + DEBOUNCE_MS));
}

static void files_that_keep_coming_are_gathered(void **state)
{
	struct debounce debounce = {0};

	(void)state;
	assert_false(take(&debounce, 1000, 1)); /* the first change starts a batch immediately */
	assert_true(take(&debounce, 1003, BURST_NAMES));
	assert_true(debounce_defers(&debounce, 1004));
	assert_true(debounce_defers(&debounce, 1003 + DEBOUNCE_MS - 1));
	assert_false(debounce_defers(&debounce, 1003 + DEBOUNCE_MS));
	assert_true(take(&debounce, 1003 + DEBOUNCE_MS, 1)); /* the burst has not ended, so even a change of one name
							      * joins its batch */
	assert_int_equal(debounce_deadline(&debounce), 1003 + DEBOUNCE_MS + BURST_REST_MS);
	debounce_rest(&debounce, 1003 + DEBOUNCE_MS + BURST_REST_MS - 1);
	assert_false(debounce_seals(&debounce));
	debounce_rest(&debounce, 1003 + DEBOUNCE_MS + BURST_REST_MS);
	assert_true(debounce_seals(&debounce));
	assert_false(debounce_seals(&debounce)); /* reports the end of the burst only once */
	assert_false(take(&debounce, 2000, BURST_NAMES));
	assert_int_equal(debounce_deadline(&debounce), INT64_MAX);
}

static void work_that_takes_long_does_not_hide_a_rush(void **state)
{
	struct debounce debounce = {0};

	(void)state;
	assert_false(debounce_take(&debounce, 1000, 1, 0));
	debounce.done_ms = 1500; /* simulates changes that arrived while the previous batch was running */
	assert_true(debounce_take(&debounce, 1501, BURST_NAMES, 0));
}

static void one_more_batch_would_only_wait(void **state)
{
	struct debounce debounce = {0};

	(void)state;
	assert_false(debounce_take(&debounce, 1000, 1, BURST_BATCHES));
	assert_false(debounce_take(&debounce, 1010, 1, BURST_BATCHES - 1));
	assert_true(debounce_take(&debounce, 1020, 1, BURST_BATCHES));
}

static void a_rush_ends_when_somebody_asks(void **state)
{
	struct debounce debounce = {0};

	(void)state;
	take(&debounce, 1000, 1);
	assert_true(take(&debounce, 1001, BURST_NAMES));
	debounce_end_burst(&debounce);
	assert_false(debounce_defers(&debounce, 1002));
	assert_true(debounce_seals(&debounce));
	debounce_end_burst(&debounce); /* ending a burst without changes does nothing */
	assert_false(debounce_seals(&debounce));
}

static void no_batch_is_open_for_ever(void **state)
{
	struct debounce debounce = {0};
	int64_t sealed_ms = 0;

	(void)state;
	take(&debounce, 1000, 1);
	for (int64_t now_ms = 1001; now_ms < 1001 + 2 * DEBOUNCE_LONGEST_MS && sealed_ms == 0;
	     now_ms += DEBOUNCE_MS / 2) {
		if (!debounce_defers(&debounce, now_ms))
			take(&debounce, now_ms, BURST_NAMES);
		if (debounce_seals(&debounce))
			sealed_ms = now_ms;
	}
	assert_in_range(sealed_ms, 1001 + DEBOUNCE_LONGEST_MS, 1001 + DEBOUNCE_LONGEST_MS + DEBOUNCE_MS);
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
