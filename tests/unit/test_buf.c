/* test_buf - the growing byte buffer: a NUL follows the appended bytes, memory is reserved before it is written, and
 * strings and numbers become valid JSON. */
#include "base/buf.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void bytes_are_appended_and_end_in_nul(void **state)
{
	struct buf buf = {0};

	(void)state;
	buf_text(&buf, "");
	assert_string_equal(buf.data, "");
	for (int i = 0; i < 10000; i++) {
		buf_printf(&buf, "%d,", i % 10);
		assert_int_equal(buf.data[buf.length], '\0');
	}
	assert_int_equal(buf.length, 20000);
	buf_add(&buf, "a\0b", 3);
	assert_memory_equal(buf.data + 20000, "a\0b", 4);
	buf_clear(&buf);
	assert_int_equal(buf.length, 0);
	assert_string_equal(buf.data, "");
	buf_free(&buf);
	assert_null(buf.data);
	buf_clear(&buf);
	buf_free(&buf);
}

static void room_is_there_before_it_is_written_to(void **state)
{
	struct buf buf = {0};

	(void)state;
	buf_text(&buf, "abc");
	buf_reserve(&buf, 100000);
	assert_true(buf.room >= 100004);
	memset(buf.data + 3, 'x', 100001);
	assert_memory_equal(buf.data, "abcx", 4);
	buf_free(&buf);
}

static void dropping_keeps_what_follows(void **state)
{
	struct buf buf = {0};

	(void)state;
	buf_text(&buf, "one two");
	buf_drop(&buf, 4);
	assert_string_equal(buf.data, "two");
	assert_int_equal(buf.length, 3);
	buf_drop(&buf, 0);
	assert_string_equal(buf.data, "two");
	buf_drop(&buf, 9);
	assert_int_equal(buf.length, 0);
	assert_string_equal(buf.data, "");
	buf_free(&buf);
	buf_drop(&buf, 1); /* dropping from an empty buffer changes nothing */
}

static void check_string(const char *text, size_t length, const char *json)
{
	struct buf buf = {0};

	buf_json_bytes(&buf, text, length);
	assert_string_equal(buf.data, json);
	buf_free(&buf);
}

static void strings_become_json(void **state)
{
	struct buf buf = {0};

	(void)state;
	check_string("a\"b\\c\n\t\r\x01\x7f/", 11, "\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u007f/\"");
	check_string("a\0b", 3, "\"a\\u0000b\"");
	check_string("", 0, "\"\"");
	check_string("\xC3\xA9\xF0\x9F\x98\x80", 6, "\"\xC3\xA9\xF0\x9F\x98\x80\"");
	check_string("\xC3", 1, "\"\xEF\xBF\xBD\"");
	check_string("\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
	check_string("a:b ::c#d ##[e", 14, "\"a:b \\u003a:c#d \\u0023#[e\"");
	buf_json_string(&buf, "x");
	assert_string_equal(buf.data, "\"x\"");
	buf_free(&buf);
}

static void numbers_are_short_and_read_back_the_same(void **state)
{
	static const struct {
		double value;
		const char *json;
	} cases[] = {
	    {0, "0.0"},
	    {-0.0, "-0.0"},
	    {1, "1.0"},
	    {0.1, "0.1"},
	    {1e-5, "1e-05"},
	    {1.0 / 3, "0.3333333333333333"},
	    {123456789, "123456789.0"},
	    {1e22, "1e+22"},
	    {DBL_MAX, "1.7976931348623157e+308"},
	    {0x1p-1074, "4.94066e-324"},
	    {NAN, "\"nan\""},
	    {INFINITY, "\"inf\""},
	    {-INFINITY, "\"-inf\""},
	    {-2.5, "-2.5"},
	};
	struct buf buf = {0};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		buf_clear(&buf);
		buf_json_number(&buf, cases[i].value);
		assert_string_equal(buf.data, cases[i].json);
		if (isfinite(cases[i].value)) {
			double back = strtod(buf.data, NULL);

			assert_memory_equal(&back, &cases[i].value, sizeof back);
		}
	}
	buf_free(&buf);
}

/* Writes the number with as few digits as possible, but at least 6, so that reading the text gives the same number. */
static void write_plainly(char text[40], double value)
{
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, 40, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	if (strpbrk(text, ".e") == NULL)
		strcat(text, ".0");
}

static void expect_plain_number(double value)
{
	struct buf buf = {0};
	char text[40];

	if (!isfinite(value))
		return;
	write_plainly(text, value);
	buf_json_number(&buf, value);
	assert_string_equal(buf.data, text);
	buf_free(&buf);
}

static void numbers_have_the_fewest_digits(void **state)
{
	uint64_t bits = 0x9E3779B97F4A7C15;
	double value;

	(void)state;
	for (double power = DBL_MIN; isfinite(power); power *= 2) {
		expect_plain_number(power);
		expect_plain_number(-3 * power);
		expect_plain_number(nextafter(power, 0));
	}
	for (int i = 0; i < 60000; i++) {
		bits = bits * 6364136223846793005u + 1442695040888963407u;
		memcpy(&value, &bits, sizeof value);
		expect_plain_number(value);
		expect_plain_number((double)(float)fmod(value, 1e30));
		expect_plain_number((double)(int64_t)(bits >> (i % 64)));
		expect_plain_number(round(fmod(value, 1e12)) * pow(10, i % 30 - 15));
		expect_plain_number((double)(bits >> 40) * DBL_TRUE_MIN); /* a subnormal number */
	}
}

static void members_and_strings_of_json_are_appended(void **state)
{
	static const char *const list[] = {"a", "\"b\""};
	struct buf buf = {0};

	(void)state;
	buf_text(&buf, "{");
	buf_json_member(&buf, "first", "x");
	buf_json_next_member(&buf, "second", NULL);
	buf_text(&buf, ", \"list\": ");
	buf_json_strings(&buf, list, 2);
	buf_json_strings(&buf, NULL, 0);
	assert_string_equal(buf.data, "{\"first\": \"x\", \"second\": null, \"list\": [\"a\", \"\\\"b\\\"\"][]");
	buf_free(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bytes_are_appended_and_end_in_nul),
	    cmocka_unit_test(room_is_there_before_it_is_written_to),
	    cmocka_unit_test(dropping_keeps_what_follows),
	    cmocka_unit_test(strings_become_json),
	    cmocka_unit_test(numbers_are_short_and_read_back_the_same),
	    cmocka_unit_test(numbers_have_the_fewest_digits),
	    cmocka_unit_test(members_and_strings_of_json_are_appended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
