/* test_json - the JSON parser accepts valid JSON and nothing else, and the message for each mistake has its line and
 * column. */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static struct json_text text_of(const char *bytes, size_t length)
{
	return (struct json_text){.name = "x.json", .text = bytes, .length = length, .first_line = 1};
}

/* Parses a copy in an allocation of exactly `length` bytes, so that the address sanitizer detects a read beyond the
 * end. */
static void check_bytes(const char *bytes, size_t length, const char *sentence)
{
	char *copy = malloc(length);
	struct json_text text = text_of(copy, length);
	struct err err = {""};

	if (length > 0)
		memcpy(copy, bytes, length);
	cJSON *value = json_parse(&text, &err);

	if (sentence == NULL) {
		assert_string_equal(err.text, "");
		assert_non_null(value);
	} else {
		assert_null(value);
		assert_string_equal(err.text, sentence);
	}
	cJSON_Delete(value);
	free(copy);
}

static void check(const char *text, const char *sentence)
{
	check_bytes(text, strlen(text), sentence);
}

static void every_kind_of_value_is_read(void **state)
{
	static const char bytes[] =
	    " {\"a\": [1, -0, 0.5, 1e3, -1.25E-2, true, false, null, \"\\u00e9\\n\\ud83d\\ude00\"],\r\n\t"
	    "\"b\": {}, \"c\": [] } ";
	struct json_text text = text_of(bytes, sizeof bytes - 1);
	struct err err = {""};
	cJSON *value = json_parse(&text, &err);

	(void)state;
	assert_non_null(value);
	const cJSON *a = json_member(value, "a");

	assert_int_equal(cJSON_GetArraySize(a), 9);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(a, 8)), "\xC3\xA9\n\xF0\x9F\x98\x80");
	assert_true(cJSON_GetArrayItem(a, 4)->valuedouble == -0.0125);
	cJSON_Delete(value);
	check("7", NULL);
	check("\"\"", NULL);
	check("null", NULL);
}

static void text_that_is_no_json_is_an_error_with_its_place(void **state)
{
	(void)state;
	check("", "x.json:1:1: expected a value, found an empty file");
	check(" \n ", "x.json:1:1: expected a value, found only spaces");
	check("{\n  \"a\": }", "x.json:2:8: expected a value, found '}'");
	check("[1, 2", "x.json:1:6: expected ',' or ']', found the end of the text");
	check("[", "x.json:1:2: expected a value, found the end of the text");
	check("{\"a\":", "x.json:1:6: expected a value, found the end of the text");
	check("{", "x.json:1:2: expected a key in double quotes, found the end of the text");
	check("{\"a\"", "x.json:1:5: expected ':' after a key, found the end of the text");
	check("{\"a", "x.json:1:2: expected a string, found no closing quote before the end of the text");
	check("{\"a\": 1", "x.json:1:8: expected ',' or '}', found the end of the text");
	check("{\"a\": 1 \"b\": 2}", "x.json:1:9: expected ',' or '}', found '\"'");
	check("[1 2]", "x.json:1:4: expected ',' or ']', found '2'");
	check("[1,]", "x.json:1:4: expected a value, found ']'");
	check("{\"a\": 1,}", "x.json:1:9: expected a key in double quotes, found '}'");
	check("{\"a\" 1}", "x.json:1:6: expected ':' after a key, found '1'");
	check("{a: 1}", "x.json:1:2: expected a key in double quotes, found 'a'");
	check("{'a': 1}",
	      "x.json:1:2: expected a key in double quotes, found a single quote (JSON strings need double quotes)");
	check("[NaN]", "x.json:1:2: expected a value, found 'NaN'");
	check("[True]", "x.json:1:2: expected a value, found 'True'");
	check("[nulls]", "x.json:1:2: expected a value, found 'nulls'");
	check("[tru", "x.json:1:2: expected a value, found 'tru'");
	check("[// no\n1]", "x.json:1:2: expected a value, found '/'");
	check("[1] x", "x.json:1:5: expected nothing after the value, found 'x'");
	check("{} {}", "x.json:1:4: expected nothing after the value, found '{'");
	check("]", "x.json:1:1: expected a value, found ']'");
	check("[1}", "x.json:1:3: expected ',' or ']', found '}'");
	check("\v1", "x.json:1:1: expected a value, found the control character 0x0B");
}

static void columns_count_characters_not_bytes(void **state)
{
	(void)state;
	check("[\"\xC3\xA9\xF0\x9F\x98\x80\", x]", "x.json:1:8: expected a value, found 'x'");
}

static void numbers_keep_to_the_grammar(void **state)
{
	static const struct {
		const char *text, *sentence;
	} cases[] = {
	    {"01", "x.json:1:1: expected a number, found one with leading zeros"},
	    {"-01", "x.json:1:1: expected a number, found one with leading zeros"},
	    {"+1", "x.json:1:1: expected a value, found '+'"},
	    {".5", "x.json:1:1: expected a value, found '.'"},
	    {"1.", "x.json:1:3: expected a digit after the decimal point, found the end of the text"},
	    {"1.e3", "x.json:1:3: expected a digit after the decimal point, found 'e3'"},
	    {"1e", "x.json:1:3: expected a digit of the exponent, found the end of the text"},
	    {"1e+-5", "x.json:1:4: expected a digit of the exponent, found '-'"},
	    {"1e+", "x.json:1:4: expected a digit of the exponent, found the end of the text"},
	    {"-", "x.json:1:2: expected a digit, found the end of the text"},
	    {"--1", "x.json:1:2: expected a digit, found '-'"},
	    {"-Infinity", "x.json:1:2: expected a digit, found 'Infinity'"},
	    {"0x10", "x.json:1:2: expected nothing after the value, found 'x10'"},
	    {"1e999", "x.json:1:1: expected a number that fits a 64-bit float, found 1e999"},
	    {"-0", NULL},
	    {"0e0", NULL},
	    {"1e-999", NULL},
	    {"123456789012345678901234567890123456789012345678901234567890", NULL},
	    {"1234567890123456789012345678901234567890123456789012345678901",
	     "x.json:1:1: expected a number of at most 60 characters, found 61 characters"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(cases[i].text, cases[i].sentence);
}

static void strings_are_utf8_without_nul_or_control_characters(void **state)
{
	static const char *const valid[] = {"\"\xC2\x80\"", "\"\xED\x9F\xBF\"", "\"\xEE\x80\x80\"",
	                                    "\"\xF4\x8F\xBF\xBF\"", "\"\x7F\""};
	static const char *const invalid[] = {
	    "\"\x80\"",             /* a continuation byte without its first byte */
	    "\"\xC0\xAF\"",         /* an overlong form of '/', in two bytes */
	    "\"\xE0\x80\xAF\"",     /* an overlong form of '/', in three bytes */
	    "\"\xF0\x80\x80\xAF\"", /* an overlong form of '/', in four bytes */
	    "\"\xED\xA0\x80\"",     /* the surrogate U+D800 */
	    "\"\xF4\x90\x80\x80\"", /* above U+10FFFF */
	    "\"\xFF\"",             /* 0xFF never occurs in UTF-8 */
	    "\"\xE2\x82\"",         /* the closing quote comes before the last byte of the character */
	    "\"\xE2\x82",           /* the text ends before the last byte of the character */
	};
	char sentence[128];

	(void)state;
	for (size_t i = 0; i < sizeof valid / sizeof *valid; i++)
		check(valid[i], NULL);
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
		snprintf(sentence, sizeof sentence,
		         "x.json:1:2: expected a character, found the byte 0x%02X, which is not UTF-8",
		         (unsigned char)invalid[i][1]);
		check(invalid[i], sentence);
	}
	check("\"a\tb\"", "x.json:1:3: expected a string without control characters (write a line feed as \\n and a tab as "
	                  "\\t), found the control character 0x09");
	check("\"a\nb\"", "x.json:1:3: expected a string without control characters (write a line feed as \\n and a tab as "
	                  "\\t), found the end of the line");
	check_bytes("\"a\0b\"", 5, "x.json:1:3: expected a string without control characters (write a line feed as \\n and a "
	                           "tab as \\t), found the control character 0x00");
	check_bytes("[1]\0", 4, "x.json:1:4: expected nothing after the value, found the control character 0x00");
	check("[\"abc", "x.json:1:2: expected a string, found no closing quote before the end of the text");
	check("[\"abc\\\"", "x.json:1:2: expected a string, found no closing quote before the end of the text");
}

static void escapes_are_checked(void **state)
{
	static const char first[] =
	    "x.json:1:2: expected a character, found the first half of a surrogate pair without the second half";

	(void)state;
	check("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"", NULL);
	check("\"\\x41\"", "x.json:1:3: expected one of \" \\ / b f n r t u after a backslash, found 'x41'");
	check_bytes("\"\\\0\"", 4, "x.json:1:3: expected one of \" \\ / b f n r t u after a backslash, "
	                           "found the control character 0x00");
	check("\"\\", "x.json:1:3: expected one of \" \\ / b f n r t u after a backslash, found the end of the text");
	check("\"\\u12g4\"", "x.json:1:2: expected four hexadecimal digits after \\u");
	check("\"\\u12", "x.json:1:2: expected four hexadecimal digits after \\u");
	check("\"\\u0000\"", "x.json:1:2: expected a character, found \\u0000; NUL characters are not allowed");
	check("\"\\ud800\"", first);
	check("\"\\ud800x\"", first);
	check("\"\\ud800\\n\"", first);
	check("\"\\ud800\\ud800\"", first);
	check("\"\\ud800\\u", first);
	check("\"\\udc00\"",
	      "x.json:1:2: expected a character, found the second half of a surrogate pair without the first half");
	check("\"\\ud800\\udc00\"", NULL);
}

static void a_byte_order_mark_is_refused_with_its_remedy(void **state)
{
	(void)state;
	check("\xEF\xBB\xBF{}",
	      "x.json:1:1: expected a value, found a byte order mark; save the file as UTF-8 without one");
	check_bytes("\xFF\xFE{\0}\0", 6, "x.json:1:1: expected a value, found the byte 0xFF, which is not UTF-8");
}

static void a_key_given_twice_is_refused_however_it_is_written(void **state)
{
	(void)state;
	check("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}", "x.json:3:2: expected each key once, found \"a\" a second time");
	check("{\"a\": 1, \"\\u0061\": 3}", "x.json:1:10: expected each key once, found \"a\" a second time");
	check("{\"\\ud83d\\ude00\": 1, \"\xF0\x9F\x98\x80\": 3}",
	      "x.json:1:21: expected each key once, found \"\xF0\x9F\x98\x80\" a second time");
	check("{\"a\\n\": 1, \"a\\u000a\": 3}", "x.json:1:12: expected each key once, found \"a\\x0a\" a second time");
	check("{\"a\\/\": 1, \"a/\": 3}", "x.json:1:12: expected each key once, found \"a/\" a second time");
	/* With so many members, the check for duplicates sorts the names. The check must still report the first
	 * duplicate in the text. */
	check("{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"j\":0,\"k\":0,\"l\":0,\"m\":0,"
	      "\"n\":0,\"o\":0,\"p\":0,\"q\":0,\"r\":0,\"s\":0,\"t\":0,\"u\":0,\"v\":0,\"w\":0,\"b\":0,\"a\":0}",
	      "x.json:1:140: expected each key once, found \"b\" a second time");
	check("{\"\": 1, \"\": 3}", "x.json:1:9: expected each key once, found \"\" a second time");
	check("[{\"k\": {\"z\": 1, \"z\": 2}}]", "x.json:1:17: expected each key once, found \"z\" a second time");
	check("{\"b\": 1, \"b\": 2, \"a\": 1, \"a\": 2}",
	      "x.json:1:10: expected each key once, found \"b\" a second time");
	check("{\"a\": {\"a\": 1}, \"A\": {\"a\": 1}, \"ab\": 1}", NULL);
}

static void a_hundred_thousand_keys_are_distinguished(void **state)
{
	struct buf text = {0};

	(void)state;
	buf_text(&text, "{");
	for (int i = 0; i < 100000; i++)
		buf_printf(&text, "%s\"key\\u0020%d\":0", i == 0 ? "" : ",", i);
	size_t length = text.length;

	buf_text(&text, "}");
	check_bytes(text.data, text.length, NULL);
	text.length = length;
	buf_text(&text, ",\"key 99\":0}");
	char sentence[128];

	snprintf(sentence, sizeof sentence, "x.json:1:%zu: expected each key once, found \"key 99\" a second time",
	         length + 2);
	check_bytes(text.data, text.length, sentence);
	buf_free(&text);
}

static void nesting_is_bounded(void **state)
{
	struct buf text = {0};

	(void)state;
	for (int i = 0; i < JSON_DEPTH; i++)
		buf_text(&text, "[");
	for (int i = 0; i < JSON_DEPTH; i++)
		buf_text(&text, "]");
	check_bytes(text.data, text.length, NULL);
	buf_clear(&text);
	for (int i = 0; i < 100000; i++)
		buf_text(&text, i % 2 == 0 ? "[" : "{\"a\":");
	check_bytes(text.data, text.length,
	            "x.json:1:193: expected objects and lists that are nested at most 64 levels deep, found deeper nesting");
	buf_free(&text);
}

static void the_number_of_values_is_bounded(void **state)
{
	struct buf text = {0};

	(void)state;
	buf_text(&text, "[0");
	for (int i = 0; i < JSON_VALUES; i++)
		buf_text(&text, ",0");
	buf_text(&text, "]");
	check_bytes(text.data, text.length,
	            "x.json:1:2097152: expected at most 1048576 values in one text, found more");
	buf_free(&text);
}

static void terminals_see_no_control_characters_of_strangers(void **state)
{
	(void)state;
	check("{\"\\u001b[31m\": 1, \"\\u001b[31m\": 2}",
	      "x.json:1:19: expected each key once, found \"\\x1b[31m\" a second time");
	check("[\xC2\x9B]", "x.json:1:2: expected a value, found '\\u009b'");
}

static void lines_of_a_jsonl_file_keep_their_number(void **state)
{
	struct json_text text = {.name = "w.jsonl", .text = "{]", .length = 2, .first_line = 41};
	struct err err = {""};

	(void)state;
	assert_null(json_parse(&text, &err));
	assert_string_equal(err.text, "w.jsonl:41:2: expected a key in double quotes, found ']'");
	text = (struct json_text){.name = "w.jsonl", .text = NULL, .length = 0, .first_line = 42};
	assert_null(json_parse(&text, &err)); /* NULL is valid for zero bytes */
	assert_string_equal(err.text, "w.jsonl:42:1: expected a value, found an empty file");
}

static const char document[] =
    "{\n"
    "  \"\xC3\xA9\": 1, \"in\": {\"q\": {\"shape\": [\"a\", \"b,]}\", 3], \"x\": \"\\\"}\"}},\n"
    "  \"a/b\": [[], {}, [[5]]],\n"
    "  \"t~\\u0031\": -1.5e3 , \"\": {\"\": true}\n"
    "}\n";

static void check_place(const char *path, int line, int column)
{
	struct json_text text = text_of(document, sizeof document - 1);
	int found_line = 0, found_column = 0;
	bool found = json_place(&text, path, &found_line, &found_column);

	assert_int_equal(found, line != 0);
	assert_int_equal(found_line, line);
	assert_int_equal(found_column, column);
}

static void values_are_found_by_their_path(void **state)
{
	(void)state;
	check_place("", 1, 1);
	check_place("\xC3\xA9", 2, 8);
	check_place("in", 2, 17);
	check_place("in/q", 2, 23);
	check_place("in/q/shape", 2, 33);
	check_place("in/q/shape/0", 2, 34);
	check_place("in/q/shape/1", 2, 39);
	check_place("in/q/shape/2", 2, 47);
	check_place("in/q/x", 2, 56);
	check_place("a~1b/0", 3, 11);
	check_place("a~1b/1", 3, 15);
	check_place("a~1b/2/0/0", 3, 21);
	check_place("t~01", 4, 15);
	check_place("/", 4, 33);
	check_place("in/q/shape/3", 0, 0);
	check_place("in/q/shape/x", 0, 0);
	check_place("in/q/shape/!", 0, 0);
	check_place("in/q/shape/0!", 0, 0);
	check_place("in/q/shape/", 0, 0);
	check_place("in/q/shape/0/0", 0, 0);
	check_place("a~1b/0/0", 0, 0);
	check_place("nothing", 0, 0);
}

static void errors_point_at_values(void **state)
{
	struct json_text text = text_of(document, sizeof document - 1);
	struct err err;
	const struct json_step in = {.key = "in"}, q = {.up = &in, .key = "q"}, shape = {.up = &q, .key = "shape"};
	const struct json_step second = {.up = &shape, .index = 1}, ninth = {.up = &shape, .index = 9};
	const struct json_step slash = {.key = "a/b"}, empty = {.key = ""}, inner = {.up = &empty, .key = ""};
	const struct json_step tilde = {.key = "t~1"};

	(void)state;
	assert_int_equal(json_error(&text, "in/q/shape/1", &err, "expected %d", 7), -1);
	assert_string_equal(err.text, "x.json:2:39: expected 7");
	assert_int_equal(json_error(&text, "in/q/dtype", &err, "no dtype"), -1);
	assert_string_equal(err.text, "x.json:2:23: no dtype");
	assert_int_equal(json_error_at(&text, &second, &err, "expected %d", 7), -1);
	assert_string_equal(err.text, "x.json:2:39: expected 7");
	json_error_at(&text, &ninth, &err, "too short");
	assert_string_equal(err.text, "x.json:2:33: too short");
	json_error_at(&text, &slash, &err, "here");
	assert_string_equal(err.text, "x.json:3:10: here");
	json_error_at(&text, &tilde, &err, "here");
	assert_string_equal(err.text, "x.json:4:15: here");
	json_error_at(&text, &inner, &err, "here");
	assert_string_equal(err.text, "x.json:4:33: here");
	json_error_at(&text, NULL, &err, "whole");
	assert_string_equal(err.text, "x.json:1:1: whole");
}

static void what_was_found_is_shown_as_it_was_written(void **state)
{
	static const char bytes[] = "{\"a\": [9007199254740993, 1.50e0, \"s\\u001b\", true, false, null, {}, []]}";
	static const char *const found[] = {"9007199254740993", "1.50e0", "\"s\\x1b\"", "true", "false", "null",
	                                    "an object",        "a list"};
	struct json_text text = text_of(bytes, sizeof bytes - 1);
	const struct json_step a = {.key = "a"};
	cJSON *value = json_parse(&text, NULL);
	struct err err;
	int i = 0;

	(void)state;
	for (const cJSON *item = value->child->child; item != NULL; item = item->next, i++) {
		const struct json_step at = {.up = &a, .index = i};
		char sentence[128];
		int line, column;

		snprintf(sentence, sizeof sentence, "a/%d", i);
		assert_true(json_place(&text, sentence, &line, &column));
		snprintf(sentence, sizeof sentence, "x.json:1:%d: expected that, found %s", column, found[i]);
		assert_int_equal(json_expected(&text, &at, item, &err, "that"), -1);
		assert_string_equal(err.text, sentence);
	}
	assert_int_equal(i, 8);
	json_expected(&text, NULL, NULL, &err, "that");
	assert_string_equal(err.text, "x.json:1:1: expected that, found nothing");
	cJSON_Delete(value);
	text = text_of("-7 ", 3);
	value = json_parse(&text, NULL);
	json_expected(&text, NULL, value, &err, "that");
	assert_string_equal(err.text, "x.json:1:1: expected that, found -7");
	cJSON_Delete(value);
}

static void integers_are_exact_or_refused(void **state)
{
	static const struct {
		const char *text;
		bool integer;
		int64_t value;
	} cases[] = {
	    {"[0]", true, 0},
	    {"[-7]", true, -7},
	    {"[4096.0]", true, 4096},
	    {"[4.096e3]", true, 4096},
	    {"[9007199254740991]", true, 9007199254740991},
	    {"[-9007199254740991]", true, -9007199254740991},
	    {"[9007199254740992]", false, 0},
	    {"[9007199254740993]", false, 0},
	    {"[9223372036854775808]", false, 0},
	    {"[1.5]", false, 0},
	    {"[1e300]", false, 0},
	    {"[\"1\"]", false, 0},
	    {"[true]", false, 0},
	    {"[null]", false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		cJSON *list = cJSON_Parse(cases[i].text);
		int64_t value = 0;

		assert_int_equal(json_integer(list->child, &value), cases[i].integer);
		assert_true(value == cases[i].value);
		cJSON_Delete(list);
	}
	assert_false(json_integer(NULL, &(int64_t){0}));
}

static void members_are_found_by_exact_case(void **state)
{
	cJSON *object = cJSON_Parse("{\"Name\": 1, \"name\": \"x\", \"n\": 2}");

	(void)state;
	assert_string_equal(json_text_of(object, "name"), "x");
	assert_null(json_text_of(object, "n"));
	assert_null(json_member(object, "NAME"));
	assert_null(json_member(NULL, "a"));
	assert_null(json_member(object->child, "a"));
	cJSON_Delete(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_kind_of_value_is_read),
	    cmocka_unit_test(text_that_is_no_json_is_an_error_with_its_place),
	    cmocka_unit_test(columns_count_characters_not_bytes),
	    cmocka_unit_test(numbers_keep_to_the_grammar),
	    cmocka_unit_test(strings_are_utf8_without_nul_or_control_characters),
	    cmocka_unit_test(escapes_are_checked),
	    cmocka_unit_test(a_byte_order_mark_is_refused_with_its_remedy),
	    cmocka_unit_test(a_key_given_twice_is_refused_however_it_is_written),
	    cmocka_unit_test(a_hundred_thousand_keys_are_distinguished),
	    cmocka_unit_test(nesting_is_bounded),
	    cmocka_unit_test(the_number_of_values_is_bounded),
	    cmocka_unit_test(terminals_see_no_control_characters_of_strangers),
	    cmocka_unit_test(lines_of_a_jsonl_file_keep_their_number),
	    cmocka_unit_test(values_are_found_by_their_path),
	    cmocka_unit_test(errors_point_at_values),
	    cmocka_unit_test(what_was_found_is_shown_as_it_was_written),
	    cmocka_unit_test(integers_are_exact_or_refused),
	    cmocka_unit_test(members_are_found_by_exact_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
