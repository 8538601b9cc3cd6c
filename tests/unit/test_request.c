/* test_request - requests to `reftest work`: which requests are accepted, and the message for each kind of invalid
 * request. */
#include "fleet/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

#define HEX "00112233445566778899aabbccddeeff"
#define HEAD "{\"id\": \"7\", \"definition\": \"rmsnorm/one\", \"content\": \"" HEX "\", "

static int read_it(const char *text, struct arena *arena, struct work_request *out, struct err *err)
{
	err->text[0] = '\0';
	return request_read(text, strlen(text), 3, arena, out, err);
}

static void a_request_is_read(void **state)
{
	struct arena arena = {0};
	struct work_request request;
	struct err err;
	char hex[DIGEST_HEX];

	(void)state;
	assert_int_equal(read_it(HEAD "\"cases\": [{\"id\": \"small:a=1\", \"seconds\": 0.5}, {\"id\": \"b\"}]}", &arena,
				 &request, &err), 0);
	assert_string_equal(request.id, "7");
	assert_string_equal(request.definition, "rmsnorm/one");
	digest_hex(&request.content, hex);
	assert_string_equal(hex, HEX);
	assert_string_equal(request.cases[0], "small:a=1");
	assert_string_equal(request.cases[1], "b");
	assert_null(request.cases[2]);
	assert_int_equal(read_it(HEAD "\"whole\": true, \"cases\": [{\"id\": \"a\"}]}", &arena, &request, &err), 0);
	assert_null(request.cases);
	arena_free(&arena);
}

static void a_bad_request_gets_a_sentence(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
	    {"", "request:3:1: expected"},
	    {"[]", "expected a request, which is an object"},
	    {"{}", "expected the name of a definition, as in \"rmsnorm/rmsnorm_h4096\""},
	    {"{\"id\": 7}", "expected a text of 1 to 128 bytes, found 7"},
	    {HEAD "\"definitoin\": 1}", "unknown field 'definitoin'"},
	    {"{\"definition\": \"one\"}", "expected the name of a definition"},
	    {"{\"definition\": \"../one\"}", "expected the name of a definition"},
	    {"{\"definition\": \"a/../../b\"}", "expected the name of a definition"},
	    {"{\"definition\": \"rmsnorm/.hidden\"}", "expected the name of a definition"},
	    {"{\"definition\": \"a/b\", \"content\": \"00\"}", "32 hexadecimal digits"},
	    {HEAD "\"whole\": 1}", "expected true or false"},
	    {HEAD "\"whole\": false}", "the request names no cases; give \"cases\", or \"whole\": true"},
	    {HEAD "\"cases\": []}", "expected a list of 1 to 16384 cases"},
	    {HEAD "\"cases\": [\"a\"]}", "expected an object with the \"id\" of a case"},
	    {HEAD "\"cases\": [{\"id\": \"\"}]}", "expected the id of a case"},
	    {HEAD "\"cases\": [{\"id\": \"a\", \"size\": 1}]}", "unknown field 'size'"},
	    {HEAD "\"whole\": true} x", "request:3:"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct arena arena = {0};
		struct work_request request;
		struct err err;

		if (read_it(rows[i].text, &arena, &request, &err) == 0)
			fail_msg("%s was accepted", rows[i].text);
		if (strstr(err.text, rows[i].says) == NULL)
			fail_msg("%s: the message is: %s", rows[i].text, err.text);
		arena_free(&arena);
	}
}

/* The answer to an invalid request has the id of the request. */
static void a_bad_request_has_its_id(void **state)
{
	struct arena arena = {0};
	struct work_request request;
	struct err err;

	(void)state;
	assert_int_equal(read_it("{\"definitoin\": 1, \"id\": \"7\"}", &arena, &request, &err), -1);
	assert_string_equal(request.id, "7");
	arena_free(&arena);
}

static void texts_are_bounded(void **state)
{
	struct arena arena = {0};
	struct work_request request;
	struct buf text = {0};
	struct err err;

	(void)state;
	buf_printf(&text, "{\"id\": \"%0*d\", \"definition\": \"a/b\", \"content\": \"" HEX "\", \"whole\": true}",
		   REQUEST_ID_MAX, 0);
	assert_int_equal(read_it(text.data, &arena, &request, &err), 0);
	buf_clear(&text);
	buf_printf(&text, "{\"id\": \"%0*d\", \"definition\": \"a/b\", \"content\": \"" HEX "\", \"whole\": true}",
		   REQUEST_ID_MAX + 1, 0);
	assert_int_equal(read_it(text.data, &arena, &request, &err), -1);
	buf_clear(&text);
	buf_text(&text, HEAD "\"cases\": [");
	for (int i = 0; i <= REQUEST_CASES_MAX; i++)
		buf_text(&text, i > 0 ? ",{\"id\":\"a\"}" : "{\"id\":\"a\"}");
	buf_text(&text, "]}");
	assert_int_equal(read_it(text.data, &arena, &request, &err), -1);
	assert_non_null(strstr(err.text, "a list of 1 to 16384 cases"));
	buf_free(&text);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_request_is_read),
	    cmocka_unit_test(a_bad_request_gets_a_sentence),
	    cmocka_unit_test(a_bad_request_has_its_id),
	    cmocka_unit_test(texts_are_bounded),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
