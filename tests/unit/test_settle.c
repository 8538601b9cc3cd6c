/* test_settle - the watcher reports a changed file when its writer is done. If a file is closed and complete, it is
 * reported immediately. Any other file is reported after a tenth of a second without a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "watcher/fs/settle.h"

/* Every file is complete, except the file whose name is `context`. */
static bool complete(const char *path, void *context)
{
	return context == NULL || strcmp(path, context) != 0;
}

static int turn(struct settle *settle, int64_t now_ms, void *incomplete, char *out, size_t size)
{
	struct arena arena = {0};
	const char *const *paths;
	int count = settle_turn(settle, now_ms, complete, incomplete, &arena, &paths);

	out[0] = '\0';
	for (int i = 0; i < count; i++)
		snprintf(out + strlen(out), size - strlen(out), "%s%s", i > 0 ? " " : "", paths[i]);
	arena_free(&arena);
	return count;
}

static void complete_files_that_were_closed_settle_at_once_sorted_and_once(void **state)
{
	(void)state;
	struct settle settle = {0};
	char out[256];

	assert_true(settle_deadline(&settle) == INT64_MAX);
	settle_touch(&settle, "b", TOUCH_WRITTEN, 5);
	settle_touch(&settle, "a", TOUCH_WRITING, 5);
	settle_touch(&settle, "a", TOUCH_WRITTEN, 6);
	settle_touch(&settle, "b", TOUCH_WRITTEN, 6);
	assert_true(settle_deadline(&settle) <= 6);
	turn(&settle, 6, NULL, out, sizeof out);
	assert_string_equal(out, "a b");
	assert_int_equal(settle.count, 0);
	assert_int_equal(turn(&settle, 1000, NULL, out, sizeof out), 0);
}

static void an_incomplete_file_waits_a_tenth_of_a_second_and_is_then_reported(void **state)
{
	(void)state;
	struct settle settle = {0};
	char out[256];

	settle_touch(&settle, "half", TOUCH_WRITTEN, 0);
	settle_touch(&settle, "whole", TOUCH_WRITTEN, 0);
	turn(&settle, 0, "half", out, sizeof out);
	assert_string_equal(out, "whole");
	assert_true(settle_deadline(&settle) == SETTLE_MS);
	assert_int_equal(turn(&settle, SETTLE_MS - 1, "half", out, sizeof out), 0);
	turn(&settle, SETTLE_MS, "half", out, sizeof out);
	assert_string_equal(out, "half");
}

static void each_touch_gives_a_writer_another_tenth_of_a_second(void **state)
{
	(void)state;
	struct settle settle = {0};
	char out[256];

	settle_touch(&settle, "x", TOUCH_WRITING, 0);
	settle_touch(&settle, "x", TOUCH_WRITING, 90);
	assert_int_equal(turn(&settle, 100, NULL, out, sizeof out), 0);
	settle_touch(&settle, "x", TOUCH_WRITTEN, 150);
	assert_int_equal(turn(&settle, 150, NULL, out, sizeof out), 1);
}

static void a_file_that_vanishes_and_returns_settles_with_its_return(void **state)
{
	(void)state;
	struct settle settle = {0};
	char out[256];

	settle_touch(&settle, "x", TOUCH_GONE, 0);
	assert_int_equal(turn(&settle, 50, NULL, out, sizeof out), 0);
	settle_touch(&settle, "x", TOUCH_WRITTEN, 60);
	assert_int_equal(turn(&settle, 60, NULL, out, sizeof out), 1);
	settle_touch(&settle, "x", TOUCH_GONE, 100);
	assert_int_equal(turn(&settle, 199, NULL, out, sizeof out), 0);
	assert_int_equal(turn(&settle, 200, NULL, out, sizeof out), 1);
}

static void a_writer_that_never_rests_is_looked_at_in_the_end(void **state)
{
	(void)state;
	struct settle settle = {0};
	char out[256];
	int64_t now = 0, settled_at = -1;

	for (; now < 10000 && settled_at < 0; now += 50) {
		settle_touch(&settle, "log", TOUCH_WRITING, now);
		if (turn(&settle, now, NULL, out, sizeof out) == 1)
			settled_at = now;
	}
	assert_int_equal(settled_at, SETTLE_LONGEST_MS);
}

static void freeing_what_waits_leaves_nothing(void **state)
{
	(void)state;
	struct settle settle = {0};
	char name[32];

	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "file %d", i);
		settle_touch(&settle, name, TOUCH_GONE, i);
	}
	assert_int_equal(settle.count, 3000);
	assert_true(settle_deadline(&settle) == SETTLE_MS);
	settle_free(&settle);
	assert_int_equal(settle.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(complete_files_that_were_closed_settle_at_once_sorted_and_once),
	    cmocka_unit_test(an_incomplete_file_waits_a_tenth_of_a_second_and_is_then_reported),
	    cmocka_unit_test(each_touch_gives_a_writer_another_tenth_of_a_second),
	    cmocka_unit_test(a_file_that_vanishes_and_returns_settles_with_its_return),
	    cmocka_unit_test(a_writer_that_never_rests_is_looked_at_in_the_end),
	    cmocka_unit_test(freeing_what_waits_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
