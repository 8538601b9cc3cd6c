/* Which definitions a changed path below the dataset belongs to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "watcher/affected_definitions.h"

static void a_path_adds_its_definitions(void **state)
{
	static const struct row {
		const char *path;
		int count;
	} rows[] = {
	    {"definitions/x/a.json", 1}, {"workloads/x/a.jsonl", 1}, {"solutions/bob/x/a/s.json", 1}, {"workloads/x/", 2},
	    {"solutions/bob/", 3},	 {"blob/", 0},		     {"solutions/note.txt", 0},
	};
	static const char *const known[] = {"definitions/x/a.json", "definitions/x/b.json", "definitions/y/c.json"};
	struct last_statuses *table = calloc(1, sizeof *table);
	const struct last_status passed = {0};

	(void)state;
	assert_non_null(table);
	for (int i = 0; i < 3; i++)
		last_statuses_set(table, known[i], &passed);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena arena = {0};
		struct path_list list = {.arena = &arena};

		affected_definitions_add(table, rows[i].path, &list);
		path_list_sort(&list);
		assert_int_equal(list.count, rows[i].count);
		arena_free(&arena);
	}
	for (int i = 0; i < 3; i++)
		last_statuses_forget(table, known[i]);
	free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_path_adds_its_definitions)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
