/* test_remote_url - the URL of a remote cache is divided into its parts, and a message about a wrong URL does not show
 * the password. */
#include "remote/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct remote_url good(const char *text)
{
	struct remote_url place;
	struct err err = {""};

	if (remote_url_parse(text, &place, &err) != 0)
		fail_msg("%s: %s", text, err.text);
	return place;
}

static void a_redis_server_has_host_port_database_and_password(void **state)
{
	(void)state;
	struct remote_url place = good("redis://cache.example");

	assert_int_equal(place.kind, REMOTE_URL_REDIS);
	assert_string_equal(place.host, "cache.example");
	assert_int_equal(place.port, 6379);
	assert_int_equal(place.database, 0);
	assert_false(place.read_only);
	assert_int_equal(place.timeout_ms, REMOTE_URL_TIMEOUT_MS);
	place = good("redis://ann:p%40ss:w%2Ford@[::1]:7000/12?read-only&timeout=0.5");
	assert_string_equal(place.host, "::1");
	assert_int_equal(place.port, 7000);
	assert_int_equal(place.database, 12);
	assert_string_equal(place.user, "ann");
	assert_string_equal(place.password, "p@ss:w/ord");
	assert_true(place.read_only);
	assert_int_equal(place.timeout_ms, 500);
	assert_string_equal(place.shown, "redis://[::1]:7000/12");
	place = good("redis://:secret@h:1");
	assert_string_equal(place.user, "");
	assert_string_equal(place.password, "secret");
}

static void a_socket_is_a_path(void **state)
{
	(void)state;
	struct remote_url place = good("redis+unix:///run/a%20b.sock?db=3");

	assert_string_equal(place.socket, "/run/a b.sock");
	assert_int_equal(place.database, 3);
	assert_string_equal(good("unix:///run/r.sock").socket, "/run/r.sock");
}

static void an_http_server_has_a_base(void **state)
{
	(void)state;
	struct remote_url place = good("https://ann:secret@cache.example:8080/main/?read-only");

	assert_int_equal(place.kind, REMOTE_URL_HTTP);
	assert_string_equal(place.shown, "https://cache.example:8080/main");
	assert_string_equal(place.password, "secret");
	assert_true(place.read_only);
	assert_string_equal(good("http://h/").shown, "http://h");
	assert_string_equal(good("http://h/a%40b").shown, "http://h/a%40b");
}

static void what_is_no_place_gets_a_sentence_without_the_password(void **state)
{
	static const char *const bad[] = {
	    "",
	    "redis://",
	    "redis://h:0",
	    "redis://h:65536",
	    "redis://h:12x",
	    "redis://h/x",
	    "redis://h/99999999",
	    "redis://[::1",
	    "redis://u:hidden@:6379",
	    "redis://u:hid%0zen@h",
	    "redis://u:hid%00den@h",
	    "rediss://h",
	    "redis+unix://relative/path",
	    "redis+unix:///aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	    "http://",
	    "http:///path",
	    "http://h/a b",
	    "http://h/a\nb",
	    "file:///etc/passwd",
	    "nowhere://h",
	    "http://h?readonly",
	    "http://h?read-only=1",
	    "http://h?timeout=0",
	    "http://h?timeout=nan",
	    "http://h?timeout=1e9",
	    "http://h?db=1",
	    "http://h?password=hidden",
	    "http://user:1?hidden@h",
	    "http://user:1?hidden=1@h",
	    "http://user:1/hidden@h",
	    "redis://user:1/hidden@h",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct remote_url place;
		struct err err = {""};

		if (remote_url_parse(bad[i], &place, &err) == 0)
			fail_msg("%s was taken", bad[i]);
		assert_true(strstr(err.text, "REFTEST_REMOTE") != NULL);
		assert_true(strstr(err.text, "hid") == NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_redis_server_has_host_port_database_and_password),
	    cmocka_unit_test(a_socket_is_a_path),
	    cmocka_unit_test(an_http_server_has_a_base),
	    cmocka_unit_test(what_is_no_place_gets_a_sentence_without_the_password),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
