/* test_python_text - a Python literal that is made from a text has this text as its value, and no text can end the
 * literal early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "testgen/python_text.h"

static void expect_literal(const char *text, const char *literal)
{
	struct buf out = {0};

	python_string(&out, text);
	assert_string_equal(out.data, literal);
	buf_free(&out);
}

static void quotes_backslashes_and_controls_cannot_end_a_string(void **state)
{
	(void)state;
	expect_literal("rmsnorm_h4096", "\"rmsnorm_h4096\"");
	expect_literal("a\"b'c\\", "\"a\\x22b'c\\\\\"");
	expect_literal("1\n2\r3\t4\x01\x7f", "\"1\\n2\\r3\\t4\\x01\\x7f\"");
}

static void what_is_not_ascii_is_written_by_number(void **state)
{
	(void)state;
	expect_literal("\u00e9", "\"\\xe9\"");
	expect_literal("\u202e\u2028", "\"\\u202e\\u2028\"");
	expect_literal("\U0001F600", "\"\\U0001f600\"");
	expect_literal("\xff", "\"\\ufffd\"");
}

static void expect_text(const char *text, const char *literal)
{
	struct buf out = {0};

	python_text(&out, text, strlen(text), "# mark");
	assert_string_equal(out.data, literal);
	buf_free(&out);
}

static void three_quotes_in_a_row_cannot_end_a_text(void **state)
{
	(void)state;
	expect_text("a \"b\" c\n", "\"\"\"\\\na \"b\" c\n\"\"\"");
	expect_text("\"\"\"\"x\n", "\"\"\"\\\n\\\"\\\"\\\"\\\"x\n\"\"\"");
	expect_text("x\"", "\"\"\"\\\nx\\\"\"\"\"");
	expect_text("x\"\"", "\"\"\"\\\nx\\\"\\\"\"\"\"");
	expect_text("x\\", "\"\"\"\\\nx\\\\\"\"\"");
}

static void a_line_that_plays_the_mark_and_blanks_at_line_ends_are_written_by_number(void **state)
{
	(void)state;
	expect_text("# mark 1\nx # mark\n# mar\n", "\"\"\"\\\n\\x23 mark 1\nx # mark\n# mar\n\"\"\"");
	expect_text("a \n b ", "\"\"\"\\\na\\x20\n b\\x20\"\"\"");
}

static void numbers_are_what_ruff_leaves(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {{1e-5, "1e-05"}, {1e6, "1e06"}, {1e300, "1e300"},
		     {8, "8.0"},      {0.5, "0.5"},  {-INFINITY, "float(\"-inf\")"},
		     {NAN, "None"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct buf out = {0};

		python_number(&out, cases[i].value);
		assert_string_equal(out.data, cases[i].text);
		buf_free(&out);
	}
}

static void a_comment_cannot_leave_its_line(void **state)
{
	struct buf out = {0};

	(void)state;
	python_comment(&out, "model:x\nimport os\u2028");
	assert_string_equal(out.data, "model:x?import os???");
	buf_free(&out);
}

static void names_of_files_are_plain_and_classes_are_camel_case(void **state)
{
	struct buf out = {0};

	(void)state;
	assert_true(python_nameable("gqa-paged_h32"));
	assert_false(python_nameable("a/../../b"));
	assert_false(python_nameable("a.b"));
	assert_false(python_nameable("-a"));
	assert_false(python_nameable(""));
	assert_false(python_nameable("\u00e9"));
	python_class_name(&out, "fused_add-rmsnorm__h4096");
	assert_string_equal(out.data, "FusedAddRmsnormH4096");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(quotes_backslashes_and_controls_cannot_end_a_string),
	    cmocka_unit_test(what_is_not_ascii_is_written_by_number),
	    cmocka_unit_test(three_quotes_in_a_row_cannot_end_a_text),
	    cmocka_unit_test(a_line_that_plays_the_mark_and_blanks_at_line_ends_are_written_by_number),
	    cmocka_unit_test(numbers_are_what_ruff_leaves),
	    cmocka_unit_test(a_comment_cannot_leave_its_line),
	    cmocka_unit_test(names_of_files_are_plain_and_classes_are_camel_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
