/* test_err - messages: a long message is cut between two characters, text from strangers is printed without control
 * characters, and the program ends with status 4 if it cannot allocate memory. */
#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/utf8.h"

static bool is_utf8(const char *text)
{
	for (size_t left = strlen(text), step; left > 0; left -= step, text += step)
		if ((step = utf8_length(text, left)) == 0)
			return false;
	return true;
}

static void a_sentence_is_kept_and_the_answer_is_minus_one(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(err_set(&err, "%s: %d", "path", 7), -1);
	assert_string_equal(err.text, "path: 7");
	assert_int_equal(err_set(NULL, "nobody asks"), -1);
	assert_int_equal(err_errno(NULL, "nobody asks"), -1);
	errno = ENOENT;
	assert_int_equal(err_errno(&err, "%s: cannot open", "a"), -1);
	assert_string_equal(err.text, "a: cannot open: No such file or directory");
}

static void a_long_sentence_is_cut_between_characters(void **state)
{
	static const char *const characters[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
	char text[4096];
	struct err err;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		for (size_t offset = 0; offset < 4; offset++) { /* cuts the message at every byte of a character */
			size_t width = strlen(characters[i]), length = offset;

			memset(text, 'x', offset);
			while (length + width < sizeof text) {
				memcpy(text + length, characters[i], width);
				length += width;
			}
			text[length] = '\0';
			err_set(&err, "%s", text);
			assert_true(strlen(err.text) < sizeof err.text);
			assert_true(strlen(err.text) >= sizeof err.text - UTF8_MAX);
			assert_true(is_utf8(err.text));
			errno = EACCES;
			err_errno(&err, "%s", text);
			assert_true(is_utf8(err.text));
		}
}

static void strangers_text_is_shown_without_harm(void **state)
{
	char text[200];

	(void)state;
	assert_string_equal(err_show("plain").text, "plain");
	assert_string_equal(err_show("").text, "");
	assert_string_equal(err_show("a\x1b[31m\n\t\x7f" "b").text, "a\\x1b[31m\\x0a\\x09\\x7fb");
	/* the control character CSI (U+009B), encoded as one character */
	assert_string_equal(err_show("\xC2\x9B" "31m").text, "\\u009b31m");
	assert_string_equal(err_show("\xFF\xC3").text, "\\xff\\xc3");
	assert_string_equal(err_show("\xC3\xA9\xE2\x82\xAC").text, "\xC3\xA9\xE2\x82\xAC");
	memset(text, 'y', 80);
	text[80] = '\0';
	assert_string_equal(err_show(text).text, text);
	memcpy(text + 78, "\xE2\x82\xAC", 4); /* three bytes, the last of which is byte 81 */
	char shown[84];

	memset(shown, 'y', 78);
	memcpy(shown + 78, "...", 4);
	assert_string_equal(err_show(text).text, shown);
}

static void out_of_memory_exits_with_4(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		close(STDERR_FILENO);
		die_no_memory();
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_sentence_is_kept_and_the_answer_is_minus_one),
	    cmocka_unit_test(a_long_sentence_is_cut_between_characters),
	    cmocka_unit_test(strangers_text_is_shown_without_harm),
	    cmocka_unit_test(out_of_memory_exits_with_4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
