/* recall: what was true of contents that are gone is found again, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "commands/recall.h"

static struct summary summary_of(const char *context, int inputs)
{
	return (struct summary){.context = digest_of(context, strlen(context)),
				.inputs = digest_of(&inputs, sizeof inputs),
				.cases = (uint32_t)inputs};
}

static const struct summary *find(const struct recall *recall, const char *path, const char *context, int inputs)
{
	const struct summary wanted = summary_of(context, inputs);

	return recall_find(recall, path, &wanted.context, &wanted.inputs);
}

static void what_was_kept_is_found_by_path_contents_and_context(void **state)
{
	const struct summary one = summary_of("cpu", 1), two = summary_of("cpu", 2);
	struct recall recall = {0};

	(void)state;
	assert_null(find(&recall, "a", "cpu", 1));
	recall_keep(&recall, "a", &one);
	recall_keep(&recall, "a", &two);
	recall_keep(&recall, "a", &two);
	assert_int_equal(recall.count, 2);
	assert_int_equal(find(&recall, "a", "cpu", 1)->cases, 1);
	assert_int_equal(find(&recall, "a", "cpu", 2)->cases, 2);
	assert_null(find(&recall, "b", "cpu", 1));
	assert_null(find(&recall, "a", "cpu", 3));
	assert_null(find(&recall, "a", "cuda", 1));
	recall_free(&recall);
	assert_null(find(&recall, "a", "cpu", 1));
}

static void the_newest_are_kept_and_the_oldest_forgotten(void **state)
{
	struct recall recall = {0};

	(void)state;
	for (int i = 1; i <= 5 * RECALL_MOST / 2; i++) {
		const struct summary summary = summary_of("cpu", i);

		recall_keep(&recall, "a", &summary);
		assert_true(recall.count <= RECALL_MOST);
	}
	for (int i = 3 * RECALL_MOST / 2; i <= 5 * RECALL_MOST / 2; i++)
		if (find(&recall, "a", "cpu", i) == NULL || find(&recall, "a", "cpu", i)->cases != (uint32_t)i)
			fail_msg("%d is forgotten", i);
	assert_null(find(&recall, "a", "cpu", 1));
	recall_free(&recall);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_was_kept_is_found_by_path_contents_and_context),
	    cmocka_unit_test(the_newest_are_kept_and_the_oldest_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
