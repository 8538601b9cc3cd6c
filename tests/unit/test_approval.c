/* test_approval - what is written to the file of an approved reference is read back unchanged, and every later change
 * of the file is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataset/approval.h"

static const char definition[] =
    "{\"name\": \"rows\", \"op_type\": \"oddity\", \"axes\": {\"n\": {\"type\": \"var\"}},\n"
    " \"inputs\": {\"x\": {\"shape\": [\"n\"], \"dtype\": \"float32\"}},\n"
    " \"outputs\": {\"y\": {\"shape\": [\"n\"], \"dtype\": \"float32\"}},\n"
    " \"reference\": \"def run(x):\\n    return x * 2\\n\"}\n\n";

static const char *const cases[] = {"small:n=4", "workload:\"1\""};
static const struct approval given = {
    .date = "2026-11-27", .note = "looked at\nby hand", .device_class = "cpu", .cases = cases, .case_count = 2};

static void write_one(struct buf *out)
{
	assert_int_equal(approval_write(&given, definition, sizeof definition - 1, out, NULL), 0);
}

static const struct approval *load(const char *text, size_t length, struct arena *arena, struct err *err)
{
	err->text[0] = '\0';
	return approval_load("approved/oddity/rows.json", "oddity", "rows", text, length, arena, err);
}

static void what_was_written_is_read(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct buf text = {0};
	struct err err;

	write_one(&text);
	const struct approval *found = load(text.data, text.length, &arena, &err);

	assert_string_equal(err.text, "");
	assert_non_null(found);
	assert_string_equal(found->date, given.date);
	assert_string_equal(found->note, given.note);
	assert_string_equal(found->device_class, "cpu");
	assert_int_equal(found->case_count, 2);
	assert_string_equal(found->cases[1], cases[1]);
	assert_string_equal(found->definition->reference, "def run(x):\n    return x * 2\n");
	buf_free(&text);
	arena_free(&arena);
}

/* A formatter may change the spaces between values. */
static void spacing_does_not_count(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct buf text = {0}, spaced = {0};
	struct err err;

	write_one(&text);
	buf_text(&spaced, " \n");
	for (size_t i = 0; i < text.length; i++)
		buf_printf(&spaced, text.data[i] == ',' && text.data[i + 1] == '\n' ? ",\n\n\t" : "%c", text.data[i]);
	assert_non_null(load(spaced.data, spaced.length, &arena, &err));
	buf_free(&spaced);
	buf_free(&text);
	arena_free(&arena);
}

/* A change of any byte other than a space or line break is an error. */
static void every_change_is_an_error(void **state)
{
	(void)state;
	struct buf text = {0};
	struct err err;

	write_one(&text);
	for (size_t i = 0; i < text.length; i++) {
		struct arena arena = {0};
		char was = text.data[i];

		if (strchr(" \n", was) != NULL)
			continue;
		text.data[i] = was == '1' ? '2' : '1';
		assert_null(load(text.data, text.length, &arena, &err));
		assert_true(strncmp(err.text, "approved/oddity/rows.json", 25) == 0);
		text.data[i] = was;
		arena_free(&arena);
	}
	for (size_t length = 0; length + 2 < text.length; length += 7) {
		struct arena arena = {0};

		assert_null(load(text.data, length, &arena, &err));
		assert_true(err.text[0] != '\0');
		arena_free(&arena);
	}
	buf_free(&text);
}

/* An approval that is copied to the file name of another definition is refused. */
static void the_definition_must_have_its_name(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct buf text = {0};
	struct err err = {""};

	write_one(&text);
	assert_null(approval_load("approved/oddity/other.json", "oddity", "other", text.data, text.length, &arena, &err));
	assert_non_null(strstr(err.text, "\"other\""));
	buf_free(&text);
	arena_free(&arena);
}

static void what_is_no_json_is_not_written(void **state)
{
	(void)state;
	struct buf text = {0};
	struct err err = {""};

	assert_int_equal(approval_write(&given, "{\"name\": ", 9, &text, &err), -1);
	assert_int_equal(approval_write(&given, "{}, \"note\": {}", 14, &text, &err), -1);
	assert_int_equal(text.length, 0);
	assert_true(err.text[0] != '\0');
	assert_int_equal(text.length, 0);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_was_written_is_read),       cmocka_unit_test(spacing_does_not_count),
	    cmocka_unit_test(every_change_is_an_error),       cmocka_unit_test(the_definition_must_have_its_name),
	    cmocka_unit_test(what_is_no_json_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
