/* test_wrap - lines for terminals are broken at blanks and indented. A command in the text stays in one piece, so that
 * it can be copied. */
#include "base/wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_folded(const char *text, size_t width, const char *expected)
{
	struct buf out = {0};

	wrap_text(text, strlen(text), width, "reftest", &out);
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void lines_that_fit_stay_as_they_are(void **state)
{
	(void)state;
	assert_folded("a b\n  c  d\n\n", 7, "a b\n  c  d\n\n");
	assert_folded("four five", 9, "four five\n");
}

static void others_are_broken_at_blanks_and_indented(void **state)
{
	(void)state;
	assert_folded("four five", 8, "four\n  five\n");
	assert_folded("  one two three\n", 10, "  one two\n    three\n");
	assert_folded("  a one two three\n", 9, "  a one\n    two\n    three\n");
}

static void columns_of_a_table_stay_below_each_other(void **state)
{
	(void)state;
	assert_folded("passed   gemm/wide_name  5 of 5 cases", 30, "passed   gemm/wide_name\n         5 of 5 cases\n");
	assert_folded("  ok  path is here, twelve words  too", 20, "  ok  path is here,\n      twelve words\n      too\n");
	assert_folded("\033[31mFAILED  \033[0m gemm/name  a b c d e", 26, "\033[31mFAILED  \033[0m gemm/name\n         a b c d e\n");
	/* the last column does not fit into one line, so its text breaks at the width and continues below the column */
	assert_folded("ok   a  b c d e f g h i j", 15, "ok   a  b c d e\n     f g h i j\n");
	assert_folded("ok  a  /a/path x", 16, "ok  a  /a/path x\n");
	assert_folded("ok  a  /a/long/path x", 18, "ok  a\n    /a/long/path x\n");
	/* the last column moves to the next line if one of its words does not fit, or if it begins too far to the
	 * right */
	assert_folded("ok       definitions/x y", 20, "ok\n  definitions/x y\n");
	assert_folded("one two three  four five", 20, "one two three\n  four five\n");
	assert_folded("ok   `a b c d e` f", 12, "ok\n  `a b c d e`\n  f\n");
}

static void a_wide_word_stays_whole(void **state)
{
	(void)state;
	assert_folded("definitions/rmsnorm is wide", 8, "definitions/rmsnorm\n  is\n  wide\n");
}

static void a_command_can_still_be_pasted(void **state)
{
	(void)state;
	assert_folded("  reftest verify x --case 'y'", 20, "  reftest verify x \\\n    --case 'y'\n");
	assert_folded("reftests are wide lines", 16, "reftests are\n  wide lines\n");
}

static void words_in_backticks_stay_together(void **state)
{
	(void)state;
	assert_folded("run `reftest cache gc` now", 12, "run\n  `reftest cache gc`\n  now\n");
	assert_folded("  `reftest cache gc` frees it", 14, "  `reftest cache gc`\n    frees it\n");
	assert_folded("use `a b`, or `c d`, or `e f`", 16, "use `a b`, or\n  `c d`, or\n  `e f`\n");
	assert_folded("a`b c` d", 3, "a`b c`\n  d\n");
	/* a single backtick quotes nothing */
	assert_folded("four ` five six", 11, "four ` five\n  six\n");
	assert_folded("four five `", 9, "four five\n  `\n");
}

static void characters_count_once_and_colours_not_at_all(void **state)
{
	(void)state;
	assert_folded("\303\244\303\244\303\244 \303\244", 5, "\303\244\303\244\303\244 \303\244\n");
	assert_folded("\033[31mred\033[0m it", 6, "\033[31mred\033[0m it\n");
	assert_folded("\033[31mred\033[0m it", 5, "\033[31mred\033[0m\n  it\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_that_fit_stay_as_they_are),
	    cmocka_unit_test(others_are_broken_at_blanks_and_indented),
	    cmocka_unit_test(columns_of_a_table_stay_below_each_other),
	    cmocka_unit_test(a_wide_word_stays_whole),
	    cmocka_unit_test(a_command_can_still_be_pasted),
	    cmocka_unit_test(words_in_backticks_stay_together),
	    cmocka_unit_test(characters_count_once_and_colours_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
