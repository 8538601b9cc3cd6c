/* test_last_statuses - the watcher's table of the last status of each definition: its counts follow every change, and
 * its paths are returned in sorted order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "watcher/last_statuses.h"

static void counts_follow_the_last_word(void **state)
{
	(void)state;
	struct last_statuses table = {0};
	const struct last_status passed = {
	    .status = STATUS_PASSED, .answers = true, .cases = 3, .elements = 100, .batch = 1};
	const struct last_status failed = {.status = STATUS_FAILED, .cases = 2, .elements = 50, .batch = 2};

	last_statuses_invalidate(&table, "definitions/a/x.json");
	assert_int_equal(table.count, 1);
	assert_int_equal(table.known, 0);
	last_statuses_set(&table, "definitions/a/x.json", &passed);
	last_statuses_set(&table, "definitions/a/y.json", &passed);
	last_statuses_set(&table, "definitions/b/z.json", &failed);
	assert_int_equal(table.known, 3);
	assert_int_equal(table.by_status[STATUS_PASSED], 2);
	assert_int_equal(table.answered_cases, 6);
	assert_true(table.answered_elements == 200);
	last_statuses_set(&table, "definitions/b/c.json",
			  &(struct last_status){.status = STATUS_CHECKED, .reason = REASON_UNATTESTED, .checked = CHECKED_UNATTESTED});
	last_statuses_set(&table, "definitions/b/d.json",
			  &(struct last_status){.status = STATUS_CHECKED, .reason = REASON_NO_GROUND_TRUTH});
	assert_int_equal(table.by_status[STATUS_CHECKED], 2);
	assert_int_equal(table.checked[CHECKED_UNATTESTED], 1);
	assert_true(last_statuses_forget(&table, "definitions/b/c.json"));
	assert_true(last_statuses_forget(&table, "definitions/b/d.json"));
	assert_int_equal(table.checked[CHECKED_UNATTESTED], 0);
	last_statuses_set(&table, "definitions/a/y.json", &failed);
	assert_int_equal(table.by_status[STATUS_PASSED], 1);
	assert_int_equal(table.by_status[STATUS_FAILED], 2);
	assert_int_equal(table.answered_cases, 3);
	last_statuses_invalidate(&table, "definitions/a/x.json");
	assert_int_equal(table.by_status[STATUS_PASSED], 0);
	assert_true(table.answered_elements == 0);
	assert_int_equal(last_statuses_find(&table, "definitions/a/x.json")->last.status, STATUS_PASSED);
	assert_true(last_statuses_forget(&table, "definitions/a/x.json"));
	assert_false(last_statuses_forget(&table, "definitions/a/x.json"));
	assert_null(last_statuses_find(&table, "definitions/a/x.json"));
	assert_int_equal(table.count, 2);
	assert_int_equal(table.known, 2);
	last_statuses_free(&table);
}

static void paths_come_sorted_by_prefix_and_by_doubt(void **state)
{
	(void)state;
	struct last_statuses table = {0};
	struct arena arena = {0};
	const struct last_status passed = {.status = STATUS_PASSED};
	const char **paths;
	char path[64];

	for (int i = 9; i >= 0; i--) {
		snprintf(path, sizeof path, "definitions/%c/%d.json", i % 2 ? 'a' : 'b', i);
		last_statuses_set(&table, path, &passed);
	}
	last_statuses_invalidate(&table, "definitions/b/4.json");
	assert_int_equal(last_statuses_paths(&table, "definitions/a/", &arena, &paths), 5);
	assert_string_equal(paths[0], "definitions/a/1.json");
	assert_string_equal(paths[4], "definitions/a/9.json");
	assert_int_equal(last_statuses_paths(&table, "", &arena, &paths), 10);
	assert_int_equal(last_statuses_unverified(&table, &arena, &paths), 1);
	assert_string_equal(paths[0], "definitions/b/4.json");

	/* A definition that is skipped or has no status yet counts as unverified, but not as failed. */
	last_statuses_set(&table, "definitions/a/1.json", &(struct last_status){.status = STATUS_SKIPPED});
	last_statuses_set(&table, "definitions/a/3.json", &(struct last_status){.status = STATUS_ERROR});
	last_statuses_set(&table, "definitions/b/0.json", &(struct last_status){.status = STATUS_INVALID});
	last_statuses_set(&table, "definitions/a/5.json", &(struct last_status){.status = STATUS_FAILED});
	assert_int_equal(last_statuses_unverified(&table, &arena, &paths), 5);
	assert_int_equal(last_statuses_failed(&table, &arena, &paths), 3);
	assert_string_equal(paths[0], "definitions/a/3.json");
	assert_string_equal(paths[1], "definitions/a/5.json");
	assert_string_equal(paths[2], "definitions/b/0.json");
	arena_free(&arena);
	last_statuses_free(&table);
}

/* If the verdicts of a passed definition are not in the store, the watcher does not answer for it. */
static void what_does_not_answer_is_left_to_the_client(void **state)
{
	(void)state;
	struct last_statuses table = {0};
	struct arena arena = {0};
	const struct last_status passed = {.status = STATUS_PASSED, .cases = 3, .elements = 100};
	struct last_status stored = passed;
	const struct status_row **entries;
	const char **paths;

	stored.answers = true;
	last_statuses_set(&table, "definitions/a/not_stored.json", &passed);
	last_statuses_set(&table, "definitions/a/stored.json", &stored);
	assert_int_equal(table.by_status[STATUS_PASSED], 2);
	assert_int_equal(table.answering, 1);
	assert_int_equal(table.answered_cases, 3);
	assert_true(table.answered_elements == 100);
	assert_int_equal(last_statuses_unverified(&table, &arena, &paths), 0);
	assert_int_equal(last_statuses_unanswered(&table, &arena, &paths), 1);
	assert_string_equal(paths[0], "definitions/a/not_stored.json");
	assert_int_equal(last_statuses_answering(&table, &arena, &entries), 1);
	assert_string_equal(entries[0]->path, "definitions/a/stored.json");
	last_statuses_invalidate(&table, "definitions/a/stored.json");
	assert_int_equal(table.answering, 0);
	assert_int_equal(last_statuses_unanswered(&table, &arena, &paths), 2);
	arena_free(&arena);
	last_statuses_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(counts_follow_the_last_word),
	    cmocka_unit_test(paths_come_sorted_by_prefix_and_by_doubt),
	    cmocka_unit_test(what_does_not_answer_is_left_to_the_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
