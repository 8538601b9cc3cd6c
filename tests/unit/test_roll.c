#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "commands/roll.h"

static void counts_follow_the_last_word(void **state)
{
	(void)state;
	struct roll roll = {0};
	const struct word passed = {.status = STATUS_PASSED, .cases = 3, .elements = 100, .batch = 1};
	const struct word failed = {.status = STATUS_FAILED, .cases = 2, .elements = 50, .batch = 2};

	roll_doubt(&roll, "definitions/a/x.json");
	assert_int_equal(roll.count, 1);
	assert_int_equal(roll.known, 0);
	roll_set(&roll, "definitions/a/x.json", &passed);
	roll_set(&roll, "definitions/a/y.json", &passed);
	roll_set(&roll, "definitions/b/z.json", &failed);
	assert_int_equal(roll.known, 3);
	assert_int_equal(roll.by_status[STATUS_PASSED], 2);
	assert_int_equal(roll.passed_cases, 6);
	assert_true(roll.passed_elements == 200);
	roll_set(&roll, "definitions/a/y.json", &failed);
	assert_int_equal(roll.by_status[STATUS_PASSED], 1);
	assert_int_equal(roll.by_status[STATUS_FAILED], 2);
	assert_int_equal(roll.passed_cases, 3);
	roll_doubt(&roll, "definitions/a/x.json");
	assert_int_equal(roll.by_status[STATUS_PASSED], 0);
	assert_true(roll.passed_elements == 0);
	assert_int_equal(roll_find(&roll, "definitions/a/x.json")->word.status, STATUS_PASSED);
	assert_true(roll_forget(&roll, "definitions/a/x.json"));
	assert_false(roll_forget(&roll, "definitions/a/x.json"));
	assert_null(roll_find(&roll, "definitions/a/x.json"));
	assert_int_equal(roll.count, 2);
	assert_int_equal(roll.known, 2);
	roll_free(&roll);
}

static void paths_come_sorted_by_prefix_and_by_doubt(void **state)
{
	(void)state;
	struct roll roll = {0};
	struct arena arena = {0};
	const struct word passed = {.status = STATUS_PASSED};
	const char **paths;
	char path[64];

	for (int i = 9; i >= 0; i--) {
		snprintf(path, sizeof path, "definitions/%c/%d.json", i % 2 ? 'a' : 'b', i);
		roll_set(&roll, path, &passed);
	}
	roll_doubt(&roll, "definitions/b/4.json");
	assert_int_equal(roll_paths(&roll, "definitions/a/", &arena, &paths), 5);
	assert_string_equal(paths[0], "definitions/a/1.json");
	assert_string_equal(paths[4], "definitions/a/9.json");
	assert_int_equal(roll_paths(&roll, "", &arena, &paths), 10);
	assert_int_equal(roll_doubtful(&roll, &arena, &paths), 1);
	assert_string_equal(paths[0], "definitions/b/4.json");

	/* What was skipped, and what nobody knows yet, is doubtful and no failure. */
	roll_set(&roll, "definitions/a/1.json", &(struct word){.status = STATUS_SKIPPED});
	roll_set(&roll, "definitions/a/3.json", &(struct word){.status = STATUS_ERROR});
	roll_set(&roll, "definitions/b/0.json", &(struct word){.status = STATUS_INVALID});
	roll_set(&roll, "definitions/a/5.json", &(struct word){.status = STATUS_FAILED});
	assert_int_equal(roll_doubtful(&roll, &arena, &paths), 5);
	assert_int_equal(roll_failed(&roll, &arena, &paths), 3);
	assert_string_equal(paths[0], "definitions/a/3.json");
	assert_string_equal(paths[1], "definitions/a/5.json");
	assert_string_equal(paths[2], "definitions/b/0.json");
	arena_free(&arena);
	roll_free(&roll);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(counts_follow_the_last_word),
	    cmocka_unit_test(paths_come_sorted_by_prefix_and_by_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
