/* test_action_result - a verdict that was written as an ActionResult can be read again, and damaged bytes never make
 * the reader read beyond its buffer. */
#include "remote/action_result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void what_is_written_is_what_the_published_message_looks_like(void **state)
{
	/* ActionResult { output_files { path: "verdict" digest { hash: … size_bytes: 3 } contents: "abc" } } */
	static const char head[] = "\x12\x54\x0a\x07verdict\x12\x44\x0a\x40", tail[] = "\x10\x03\x2a\x03"
										       "abc";
	struct buf out = {0};

	(void)state;
	action_result_write(hash, "abc", 3, &out);
	assert_int_equal(out.length, sizeof head - 1 + 64 + sizeof tail - 1);
	assert_memory_equal(out.data, head, sizeof head - 1);
	assert_memory_equal(out.data + sizeof head - 1, hash, 64);
	assert_memory_equal(out.data + sizeof head - 1 + 64, tail, sizeof tail - 1);
	buf_free(&out);
}

static void it_reads_back(void **state)
{
	struct action_result result;
	struct buf out = {0};
	char *value = calloc(1, 100000);

	(void)state;
	memset(value, 'v', 100000);
	action_result_write(hash, value, 100000, &out);
	assert_true(action_result_read(out.data, out.length, &result));
	assert_string_equal(result.hash, hash);
	assert_int_equal(result.size, 100000);
	assert_memory_equal(result.value, value, 100000);
	free(value);
	buf_free(&out);
}

/* A server may add fields (exit code, metadata, stdout) and may omit the contents. */
static void fields_that_a_server_adds_are_ignored(void **state)
{
	static const char before[] = "\x20\x00\x2a\x02hi\x4a\x00\x31"
				     "12345678\x35"
				     "1234";
	struct action_result result;
	struct buf out = {0}, digest = {0};

	(void)state;
	buf_add(&out, before, sizeof before - 1);
	buf_add(&digest, "\x0a\x40", 2);
	buf_add(&digest, hash, 64);
	buf_add(&digest, "\x10\x80\x01", 3);
	buf_add(&out, "\x12\x47\x12\x45", 4);
	buf_add(&out, digest.data, digest.length);
	assert_true(action_result_read(out.data, out.length, &result));
	assert_null(result.value);
	assert_int_equal(result.size, 128);
	assert_string_equal(result.hash, hash);
	buf_free(&out);
	buf_free(&digest);
}

/* Copies the bytes into an allocation of exactly their size, so that the address sanitizer sees a read beyond the
 * end. */
static bool reads(const char *bytes, size_t length)
{
	struct action_result result;
	char *alone = malloc(length > 0 ? length : 1);

	memcpy(alone, bytes, length);
	bool read = action_result_read(alone, length, &result);
	volatile unsigned char sum = 0;

	for (size_t i = 0; read && result.value != NULL && i < result.size; i++)
		sum = (unsigned char)(sum + result.value[i]);
	free(alone);
	return read;
}

static void what_is_cut_or_garbled_is_none(void **state)
{
	struct buf out = {0};
	unsigned random = 1;

	(void)state;
	action_result_write(hash, "abc", 3, &out);
	for (size_t length = 0; length < out.length; length++)
		assert_false(reads(out.data, length));
	for (size_t at = 0; at < out.length; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			out.data[at] = (char)(out.data[at] ^ 1 << bit);
			/* the return value is not checked, because the reader accepts some flipped bits (in the path or
			 * the contents) */
			reads(out.data, out.length);
			out.data[at] = (char)(out.data[at] ^ 1 << bit);
		}
	for (int i = 0; i < 20000; i++) {
		char bytes[64];

		for (size_t k = 0; k < sizeof bytes; k++)
			bytes[k] = (char)((random = random * 1103515245 + 12345) >> 16);
		reads(bytes, (size_t)i % sizeof bytes);
	}
	assert_false(reads("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11)); /* a length field of 2^64 - 1 */
	assert_false(reads("\x0b\x0c", 2));					 /* a protobuf group */
	buf_free(&out);
}

static void contents_of_another_length_than_the_digest_says_are_refused(void **state)
{
	struct buf out = {0};

	(void)state;
	action_result_write(hash, "abc", 3, &out);
	out.data[out.length - 6] = 4; /* changes size_bytes from 3 to 4 */
	assert_false(reads(out.data, out.length));
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_written_is_what_the_published_message_looks_like),
	    cmocka_unit_test(it_reads_back),
	    cmocka_unit_test(fields_that_a_server_adds_are_ignored),
	    cmocka_unit_test(what_is_cut_or_garbled_is_none),
	    cmocka_unit_test(contents_of_another_length_than_the_digest_says_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
