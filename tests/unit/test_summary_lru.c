/* test_summary_lru - the watcher's table of summaries for earlier contents of files: a summary is found by path,
 * contents and context, and the newest summaries are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/summary_lru.h"

static struct summary summary_of(const char *context, int inputs)
{
	return (struct summary){.context = digest_of(context, strlen(context)),
				.inputs = digest_of(&inputs, sizeof inputs),
				.cases = (uint32_t)inputs};
}

static const struct summary *find(const struct summary_lru *summary_lru, const char *path, const char *context,
				  int inputs)
{
	const struct summary wanted = summary_of(context, inputs);

	return summary_lru_find(summary_lru, path, &wanted.context, &wanted.inputs);
}

static void what_was_kept_is_found_by_path_contents_and_context(void **state)
{
	const struct summary one = summary_of("cpu", 1), two = summary_of("cpu", 2);
	struct summary_lru summary_lru = {0};

	(void)state;
	assert_null(find(&summary_lru, "a", "cpu", 1));
	summary_lru_store(&summary_lru, "a", &one);
	summary_lru_store(&summary_lru, "a", &two);
	summary_lru_store(&summary_lru, "a", &two);
	assert_int_equal(summary_lru.count, 2);
	assert_int_equal(find(&summary_lru, "a", "cpu", 1)->cases, 1);
	assert_int_equal(find(&summary_lru, "a", "cpu", 2)->cases, 2);
	assert_null(find(&summary_lru, "b", "cpu", 1));
	assert_null(find(&summary_lru, "a", "cpu", 3));
	assert_null(find(&summary_lru, "a", "cuda", 1));
	summary_lru_free(&summary_lru);
	assert_null(find(&summary_lru, "a", "cpu", 1));
}

static void the_newest_are_kept_and_the_oldest_forgotten(void **state)
{
	struct summary_lru summary_lru = {0};

	(void)state;
	for (int i = 1; i <= 5 * SUMMARY_LRU_MOST / 2; i++) {
		const struct summary summary = summary_of("cpu", i);

		summary_lru_store(&summary_lru, "a", &summary);
		assert_true(summary_lru.count <= SUMMARY_LRU_MOST);
	}
	for (int i = 3 * SUMMARY_LRU_MOST / 2; i <= 5 * SUMMARY_LRU_MOST / 2; i++)
		if (find(&summary_lru, "a", "cpu", i) == NULL ||
		    find(&summary_lru, "a", "cpu", i)->cases != (uint32_t)i)
			fail_msg("%d is forgotten", i);
	assert_null(find(&summary_lru, "a", "cpu", 1));
	summary_lru_free(&summary_lru);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_was_kept_is_found_by_path_contents_and_context),
	    cmocka_unit_test(the_newest_are_kept_and_the_oldest_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
