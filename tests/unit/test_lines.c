/* test_lines - lines of limited length: the lines do not depend on the pieces in which the bytes arrive, and only a
 * line that is too long is lost. */
#include "fleet/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Appends each line that lines_next returns to `out`: "[line]N", or "!N" for a line that is too long. N is the number
 * of the line. */
static void take_all(struct lines *lines, struct buf *out)
{
	const char *line;
	size_t length;
	enum line_kind kind;

	while ((kind = lines_next(lines, &line, &length)) != LINE_NONE) {
		if (kind == LINE_TOO_LONG)
			buf_printf(out, "!%d", (int)lines->number);
		else
			buf_printf(out, "[%.*s]%d", (int)length, line, (int)lines->number);
	}
}

/* Passes `text` to the parser in pieces of `step` bytes, and compares the lines. */
static void check(const char *text, size_t step, const char *expected)
{
	struct lines lines = {.most = 4};
	struct buf out = {0};
	size_t length = strlen(text);

	buf_text(&out, "");
	for (size_t at = 0; at < length; at += step) {
		lines_add(&lines, text + at, at + step < length ? step : length - at, at + step >= length);
		take_all(&lines, &out);
	}
	assert_string_equal(out.data, expected);
	assert_int_equal(lines.buf.length, lines.at);
	buf_free(&out);
	lines_free(&lines);
}

static void lines_do_not_depend_on_how_bytes_arrive(void **state)
{
	static const struct {
		const char *text, *expected;
	} rows[] = {
	    {"a\nbcd\n", "[a]1[bcd]2"},
	    {"\n\nx", "[]1[]2[x]3"},
	    {"abcd\n", "[abcd]1"},
	    {"abcde\nf\n", "!1[f]2"},
	    {"abcdefghijklmn\nf\nabcdefgh\n\ng", "!1[f]2!3[]4[g]5"},
	    {"abcdefgh", "!1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (size_t step = 1; step < 20; step++)
			check(rows[i].text, step, rows[i].expected);
}

/* If a line is too long, the memory does not grow with the length of the line. */
static void a_line_that_is_too_long_is_not_kept(void **state)
{
	struct lines lines = {.most = 4};
	struct buf out = {0};

	(void)state;
	buf_text(&out, "");
	for (int i = 0; i < 1000; i++) {
		lines_add(&lines, "xxxxxxxx", 8, false);
		take_all(&lines, &out);
	}
	lines_add(&lines, "\nok\n", 4, true);
	take_all(&lines, &out);
	assert_string_equal(out.data, "!1[ok]2");
	assert_true(lines.buf.room < 1024);
	buf_free(&out);
	lines_free(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lines_do_not_depend_on_how_bytes_arrive),
					   cmocka_unit_test(a_line_that_is_too_long_is_not_kept)};

	return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
