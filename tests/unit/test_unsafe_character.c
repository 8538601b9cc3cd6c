/* test_unsafe_character - how unsafe characters of a stranger's text are written to a terminal, to JSON, to JUnit XML,
 * to an annotation, to an error message and to a command for the shell. The test is a table: each row is a text, and
 * each column is a destination. */
#include "base/unsafe_character.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/shell_word.h"
#include "base/show.h"
#include "base/utf8.h"
#include "report/github.h"
#include "report/junit.h"

static const struct row {
	const char *text, *terminal, *json;
} rows[] = {
    {"plain \xC3\xA9\xE2\x82\xAC", NULL, "\"plain \xC3\xA9\xE2\x82\xAC\""},
    {"\xF0\x9F\x98\x80", NULL, "\"\xF0\x9F\x98\x80\""},
    {"a\nb\tc", NULL, "\"a\\nb\\tc\""},
    {"\x1b[2J", "\\x1b[2J", "\"\\u001b[2J\""},
    {"\r\x07\x7f", "\\x0d\\x07\\x7f", "\"\\r\\u0007\\u007f\""},
    {"\xC2\x9B" "31m", "\\u009b31m", "\"\\u009b31m\""},
    {"\xC2\xAD", "\\u00ad", "\"\\u00ad\""},
    {"\xD8\x9C", "\\u061c", "\"\\u061c\""},
    {"\xE2\x80\x8B\xE2\x80\x8F", "\\u200b\\u200f", "\"\\u200b\\u200f\""},
    {"\xE2\x80\xA8\xE2\x80\xAE", "\\u2028\\u202e", "\"\\u2028\\u202e\""},
    {"\xE2\x81\xA6\xE2\x81\xA9", "\\u2066\\u2069", "\"\\u2066\\u2069\""},
    {"\xEF\xBB\xBF\xEF\xBF\xBF", "\\ufeff\\uffff", "\"\\ufeff\\uffff\""},
    {"\xF3\xA0\x81\x81", "\\U000e0041", "\"\\udb40\\udc41\""},
    {"\xFF\xC3", "\\xff\\xc3", "\"\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {"\xED\xA0\x80", "\\ud800", "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    {"::set-output name=x::y", "\\x3a:set-output name=x::y", NULL},
    {"a\n \t::debug::x", "a\n \t\\x3a:debug::x", NULL},
    {"\xC2\xA0::debug::x", "\xC2\xA0\\x3a:debug::x", NULL},
    {"a ::b", "a \\x3a:b", NULL},
    {"a::b x[::2] :a", NULL, NULL},
    {"x ##[error]y", "x \\x23#[error]y", "\"x \\u0023#[error]y\""},
    {"##vso[task]", "\\x23#vso[task]", "\"\\u0023#vso[task]\""},
    {"## a heading #[", NULL, "\"## a heading #[\""},
};

static void a_terminal_gets_escapes(void **state)
{
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		buf_clear(&out);
		show_add(&out, rows[i].text, strlen(rows[i].text));
		assert_string_equal(out.data, rows[i].terminal != NULL ? rows[i].terminal : rows[i].text);
	}
	buf_free(&out);
}

static void what_is_printed_is_safe_as_a_whole(void **state)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_non_null(out);
	show_print(out, "%s: %.*s\n", "\x1b", 2, "ab\x1b");
	show_print(out, "%s", "");
	fclose(out);
	assert_string_equal(text, "\\x1b: ab\n");
	free(text);
}

static void json_gets_escapes_that_a_reader_undoes(void **state)
{
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		buf_clear(&out);
		buf_json_string(&out, rows[i].text);
		if (rows[i].json != NULL)
			assert_string_equal(out.data, rows[i].json);
		for (size_t k = 0; k < out.length; k += utf8_length(out.data + k, out.length - k))
			assert_true(utf8_length(out.data + k, out.length - k) > 0);
	}
	buf_free(&out);
}

/* Fails if `text` has an unsafe character other than a newline. Also fails if a line of `text` begins with a command of
 * a CI system. Only the command `ours`, which reftest itself prints, is allowed. */
static void check_harmless(const char *text, const char *ours)
{
	char escape[ESCAPE_MAX];

	for (const char *at = text; *at != '\0'; at += character_escape(at, strlen(at), escape)) {
		bool line_begins = at == text || at[-1] == '\n';

		character_escape(at, strlen(at), escape);
		if (*at != '\n' && *at != '\t')
			assert_string_equal(escape, "");
		if (line_begins && strncmp(at + strspn(at, " \t"), "::", 2) == 0)
			assert_int_equal(strncmp(at, ours, strlen(ours)), 0);
	}
	assert_null(strstr(text, "##["));
	assert_null(strstr(text, "##vso["));
}

static void reports_for_ci_systems_do_no_harm(void **state)
{
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *text = rows[i].text;
		const struct verdict v = {.status = STATUS_FAILED, .message = text};
		struct junit_case c = {.name = text, .verdict = &v};
		struct junit_suite suite = {.op_type = text, .name = text, .cases = &c, .case_count = 1};
		struct annotation a = {true, text, 0, text, text};

		buf_clear(&out);
		annotate_write(&a, 1, &out);
		check_harmless(out.data, "::error file=");
		assert_ptr_equal(strchr(out.data, '\n') + 1, out.data + out.length);
		buf_clear(&out);
		junit_write(&suite, 1, 0, &out);
		for (const char *at = out.data; *at != '\0';) {
			char escape[ESCAPE_MAX];
			size_t step = character_escape(at, strlen(at), escape);

			assert_true(escape[0] == '\0' || *at == '\n');
			at += step;
		}
	}
	buf_free(&out);
}

static void a_message_gets_escapes(void **state)
{
	char many[3000];
	struct err err;

	(void)state;
	err_set(&err, "%s: \xE2\x80\xAE is bad\n", "\x1b[31m");
	assert_string_equal(err.text, "\\x1b[31m: \\u202e is bad\n");
	memset(many, '\x1b', sizeof many - 1);
	many[sizeof many - 1] = '\0';
	err_set(&err, "%s", many);
	assert_int_equal(strlen(err.text), (sizeof err.text - 1) / 4 * 4);
}

static void a_name_with_such_a_character_is_not_safe(void **state)
{
	(void)state;
	assert_true(text_is_safe("rmsnorm_h4096"));
	assert_true(text_is_safe("\xC3\xA9"));
	assert_true(text_is_safe(""));
	assert_false(text_is_safe("a\nb"));
	assert_false(text_is_safe("a\xE2\x80\xAE"));
	assert_false(text_is_safe("\xFF"));
}

/* Runs `printf %s WORD` in a shell, and checks that it prints the text that WORD stands for. */
static void check_word(const char *text)
{
	struct buf command = {0};
	char found[100] = "";

	buf_text(&command, "printf %s ");
	buf_shell_word(&command, text);
	FILE *out = popen(command.data, "r");

	assert_non_null(out);
	found[fread(found, 1, sizeof found - 1, out)] = '\0';
	assert_int_equal(pclose(out), 0);
	assert_string_equal(found, text);
	buf_free(&command);
}

static void a_shell_reads_a_word_as_it_is(void **state)
{
	static const char *const words[] = {"plain-1.2/x_y", "", "a b", "it's", "$(id)`id`", "'; echo x; '", "a\\b*~", "--x=y"};
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		check_word(words[i]);
	buf_shell_word(&out, "plain-1.2/x_y");
	assert_string_equal(out.data, "plain-1.2/x_y");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_terminal_gets_escapes),
	    cmocka_unit_test(what_is_printed_is_safe_as_a_whole),
	    cmocka_unit_test(json_gets_escapes_that_a_reader_undoes),
	    cmocka_unit_test(reports_for_ci_systems_do_no_harm),
	    cmocka_unit_test(a_message_gets_escapes),
	    cmocka_unit_test(a_name_with_such_a_character_is_not_safe),
	    cmocka_unit_test(a_shell_reads_a_word_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
