/* test_checksummed_record - binary records: a record can be read after it was written, and a damaged, copied or
 * truncated record is rejected. */
#include "cache/checksummed_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char key[] = "subject and witness";
static const char body[] = "{\"status\": \"passed\"}";

static struct buf written(void)
{
	struct buf out = {0};

	assert_int_equal(record_write(RECORD_VERDICT, key, sizeof key, body, sizeof body, &out), 0);
	return out;
}

static bool checks_out(const void *bytes, size_t length)
{
	/* the allocation has exactly this size, so that a sanitizer detects a read beyond the end */
	char *copy = malloc(length + 1);
	struct reader reader;

	memcpy(copy, bytes, length);
	bool good = record_read(RECORD_VERDICT, key, sizeof key, copy, length, &reader);

	free(copy);
	return good;
}

static void a_record_reads_back(void **state)
{
	struct buf out = written();
	struct reader reader;

	(void)state;
	assert_int_equal(out.length, RECORD_HEAD + sizeof body);
	assert_true(record_read(RECORD_VERDICT, key, sizeof key, out.data, out.length, &reader));
	assert_int_equal(reader.left, sizeof body);
	assert_memory_equal(reader.at, body, sizeof body);
	buf_free(&out);
}

static void an_empty_body_is_a_record_too(void **state)
{
	struct buf out = {0};
	struct reader reader;

	(void)state;
	assert_int_equal(record_write(RECORD_FACT, "", 0, NULL, 0, &out), 0);
	assert_true(record_read(RECORD_FACT, "", 0, out.data, out.length, &reader));
	assert_int_equal(reader.left, 0);
	buf_free(&out);
}

static void one_changed_bit_anywhere_is_seen(void **state)
{
	struct buf out = written();

	(void)state;
	assert_true(checks_out(out.data, out.length));
	for (size_t i = 0; i < out.length; i++) {
		for (int bit = 0; bit < 8; bit++) {
			out.data[i] = (char)(out.data[i] ^ (1 << bit));
			assert_false(checks_out(out.data, out.length));
			out.data[i] = (char)(out.data[i] ^ (1 << bit));
		}
	}
	buf_free(&out);
}

static void a_record_cut_or_lengthened_is_seen(void **state)
{
	struct buf out = written();

	(void)state;
	for (size_t length = 0; length < out.length; length++)
		assert_false(checks_out(out.data, length));
	size_t whole = out.length;

	buf_add(&out, "x", 1);
	assert_true(checks_out(out.data, whole));
	assert_false(checks_out(out.data, out.length));
	buf_free(&out);
}

static void a_record_under_another_key_or_of_another_kind_does_not_check_out(void **state)
{
	struct buf out = written();
	struct reader reader;

	(void)state;
	assert_false(record_read(RECORD_VERDICT, "subject and witnesz", sizeof key, out.data, out.length, &reader));
	assert_false(record_read(RECORD_VERDICT, key, sizeof key - 1, out.data, out.length, &reader));
	assert_false(record_read(RECORD_LATEST, key, sizeof key, out.data, out.length, &reader));
	buf_free(&out);
}

static void numbers_are_little_endian_and_read_back(void **state)
{
	struct buf out = {0};

	(void)state;
	record_put_u32(&out, 0x01020304);
	record_put_u64(&out, UINT64_MAX - 1);
	record_put_text(&out, "text");
	assert_memory_equal(out.data, "\4\3\2\1\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\4\0\0\0text", 20);
	struct reader reader = {.at = (unsigned char *)out.data, .left = out.length};
	size_t length;

	assert_int_equal(record_get_u32(&reader), 0x01020304);
	assert_true(record_get_u64(&reader) == UINT64_MAX - 1);
	assert_memory_equal(record_get_bytes(&reader, &length), "text", 4);
	assert_int_equal(length, 4);
	assert_false(reader.bad);
	buf_free(&out);
}

static void reading_past_the_end_gives_zeros_and_stays_bad(void **state)
{
	static const unsigned char bytes[] = {9, 0, 0, 0, 'a', 'b'};
	struct reader reader = {.at = bytes, .left = sizeof bytes};
	struct digest zero = {{0}};
	size_t length = 5;

	(void)state;
	assert_null(record_get_bytes(&reader, &length)); /* the length field is 9, but only 2 bytes follow */
	assert_int_equal(length, 0);
	assert_true(reader.bad);
	reader.left = sizeof bytes;
	reader.at = bytes;
	assert_int_equal(record_get_u32(&reader), 0);
	assert_true(record_get_u64(&reader) == 0);
	struct digest digest = record_get_digest(&reader);

	assert_true(digest_equal(&digest, &zero));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_record_reads_back),
	    cmocka_unit_test(an_empty_body_is_a_record_too),
	    cmocka_unit_test(one_changed_bit_anywhere_is_seen),
	    cmocka_unit_test(a_record_cut_or_lengthened_is_seen),
	    cmocka_unit_test(a_record_under_another_key_or_of_another_kind_does_not_check_out),
	    cmocka_unit_test(numbers_are_little_endian_and_read_back),
	    cmocka_unit_test(reading_past_the_end_gives_zeros_and_stays_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
