/* test_suggest - for a misspelled word, the nearest known word is suggested if it is near enough. */
#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void the_nearest_word_is_found_if_it_is_near(void **state)
{
	static const char *const words[] = {"batch_size", "hidden_size", "heads", "K"};
	char longer[100];

	(void)state;
	assert_string_equal(suggest_word("batchsize", words, 4), "batch_size");
	assert_string_equal(suggest_word("hiden_size", words, 4), "hidden_size");
	assert_string_equal(suggest_word("haeds", words, 4), "heads"); /* two swapped letters are one edit */
	assert_null(suggest_word("hasde", words, 4)); /* two edits in a word of five letters are too many */
	assert_string_equal(suggest_word("hidedn_szie", words, 4), "hidden_size");
	assert_string_equal(suggest_word("head", words, 4), "heads");
	assert_string_equal(suggest_word("heads", words, 4), "heads");
	assert_null(suggest_word("M", words, 4));
	assert_null(suggest_word("", words, 4));
	assert_null(suggest_word("tokens", words, 4));
	assert_null(suggest_word("heads", words, 0));
	memset(longer, 'h', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	assert_null(suggest_word(longer, words, 4));
	const char *const itself[] = {longer};

	assert_null(suggest_word("hhhh", itself, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_nearest_word_is_found_if_it_is_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
