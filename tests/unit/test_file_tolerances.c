/* test_file_tolerances - `generate --tolerance` writes its tolerances as a short tuple of strings below the imports of
 * a test file, and finds them there again. */
#include "testgen/file_tolerances.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/tolerance_text.h"
#include "testgen/test_file.h"

static void written_as(const char *const *words, int count, const char *expected)
{
	struct tolerance by_dtype[DTYPE_COUNT];
	struct buf text = {0};
	struct err err = {""};

	for (int i = 0; i < DTYPE_COUNT; i++)
		by_dtype[i] = (struct tolerance){-1, -1, -1};
	assert_int_equal(tolerance_texts_read(words, count, "--tolerance", by_dtype, &err), 0);
	file_tolerances_write(by_dtype, &text);
	assert_string_equal(text.data == NULL ? "" : text.data, expected);
	buf_free(&text);
}

static void few_texts_say_all_bounds(void **state)
{
	(void)state;
	written_as(NULL, 0, "");
	written_as((const char *[]){"1e-4"}, 1, "\nTOLERANCES = (\n    \"0.0001\",\n)\n");
	written_as((const char *[]){" 0x1p-3,0.5,0.75"}, 1, "\nTOLERANCES = (\n    \"0.125,0.5,0.75\",\n)\n");
	written_as((const char *[]){"bfloat16=0.25", "0.5,0.5"}, 2, "\nTOLERANCES = (\n    \"0.5\",\n    \"bfloat16=0.25\",\n)\n");
	written_as((const char *[]){"bfloat16=0.25", "float16=1,2"}, 2,
		   "\nTOLERANCES = (\n    \"float16=1.0,2.0\",\n    \"bfloat16=0.25\",\n)\n");
}

static void a_tuple_is_found_where_it_was_inserted(void **state)
{
	static const char tuple[] = "\nTOLERANCES = (\n    \"0.5\",\n)\n";
	const struct test_class kept = {.name = "a", .kept = "# definition: \"a\"\nclass TestA:\n    pass\n", .kept_length = 37};
	struct buf body = {0}, plain = {0};
	const char *found;

	(void)state;
	test_file_write("definitions/x", &kept, 1, &body);
	buf_add(&plain, body.data, body.length);
	assert_int_equal(file_tolerances_find(body.data, body.length, &found), 0);
	file_tolerances_insert(tuple, 0, &body); /* an empty tuple inserts nothing */
	assert_string_equal(body.data, plain.data);
	file_tolerances_insert(tuple, sizeof tuple - 1, &body);
	assert_non_null(strstr(body.data, "\n\nimport conftest\n\nTOLERANCES = (\n    \"0.5\",\n)\n\n\n# definition: \"a\"\n"));
	assert_int_equal(body.length, plain.length + sizeof tuple - 1);
	assert_int_equal(file_tolerances_find(body.data, body.length, &found), sizeof tuple - 1);
	assert_memory_equal(found, tuple, sizeof tuple - 1);

	/* The tuple is found only if it is complete and directly below the imports. */
	for (size_t length = 0; length < (size_t)(found - body.data) + sizeof tuple - 1; length++)
		assert_int_equal(file_tolerances_find(body.data, length, &found), 0);
	buf_free(&body);
	buf_free(&plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(few_texts_say_all_bounds),
	    cmocka_unit_test(a_tuple_is_found_where_it_was_inserted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
