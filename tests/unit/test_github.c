/* test_github - annotations for GitHub: at most ten annotations of each level are printed, and no text of a dataset can
 * start a workflow command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "report/github.h"

static void texts_cannot_break_out_of_their_line(void **state)
{
	struct annotation a = {true, "definitions/x,y/a:b.json", 7, "x, y: z%", "one\n::error::two\r100%"};
	struct buf out = {0};

	(void)state;
	annotate_write(&a, 1, &out);
	assert_string_equal(out.data, "::error file=definitions/x%2Cy/a%3Ab.json,line=7,title=x%2C y%3A z%25::"
				      "one%0A::error::two%0D100%25\n");
	buf_free(&out);
}

static int lines_with(const char *text, const char *begin)
{
	int count = 0;

	for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n') + 1)
		count += strncmp(line, begin, strlen(begin)) == 0;
	return count;
}

static void the_tenth_counts_the_rest(void **state)
{
	struct annotation many[25];
	struct buf out = {0};

	(void)state;
	for (int i = 0; i < 25; i++)
		many[i] = (struct annotation){i % 2 == 0, "x.json", 0, "title", "message"};
	annotate_write(many, 25, &out);
	assert_int_equal(lines_with(out.data, "::error "), ANNOTATIONS);
	assert_int_equal(lines_with(out.data, "::warning "), ANNOTATIONS);
	assert_non_null(strstr(out.data, "4 more definitions"));
	buf_clear(&out);
	annotate_write(many, 19, &out);
	assert_int_equal(lines_with(out.data, "::error "), 10);
	assert_null(strstr(out.data, "more definitions"));
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(texts_cannot_break_out_of_their_line),
	    cmocka_unit_test(the_tenth_counts_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
