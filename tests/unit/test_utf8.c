/* test_utf8 - well-formed UTF-8 is accepted, and nothing else. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Every code point can be written and read again. If only some of the bytes of a character are left, it is not accepted
 * as a character. */
static void every_code_point_is_written_and_read(void **state)
{
	char text[UTF8_MAX];

	(void)state;
	for (uint32_t code = 1; code <= 0x10FFFF; code++) {
		if (code >= 0xD800 && code < 0xE000)
			continue;
		size_t length = utf8_put(text, code);

		if (length != (code < 0x80 ? 1u : code < 0x800 ? 2u : code < 0x10000 ? 3u : 4u))
			fail_msg("U+%04X takes %zu bytes", code, length);
		for (size_t left = 0; left <= length; left++)
			if (utf8_length(text, left) != (left == length ? length : 0))
				fail_msg("U+%04X with %zu bytes left", code, left);
	}
}

/* Counts the accepted sequences of each length. For each length, the count must be the number of code points that have
 * this length. */
static void nothing_else_is_a_character(void **state)
{
	unsigned char bytes[4];
	size_t count[5] = {0};

	(void)state;
	for (uint32_t i = 0; i < 1u << 24; i++) {
		bytes[0] = (unsigned char)(i >> 16);
		bytes[1] = (unsigned char)(i >> 8);
		bytes[2] = (unsigned char)i;
		count[utf8_length((const char *)bytes, 3)]++;
	}
	assert_int_equal(count[1], 128u << 16);
	assert_int_equal(count[2], 1920u << 8);
	assert_int_equal(count[3], 0x10000 - 0x800 - 0x800);
	/* the first bytes are F0 to FF; the third and the fourth byte are fixed */
	for (uint32_t second = 0, total = 0; second < 1u << 16; second++) {
		bytes[0] = (unsigned char)(0xF0 | (second >> 8 & 15));
		bytes[1] = (unsigned char)second;
		bytes[2] = bytes[3] = 0x80;
		total += second < 1u << 12 && utf8_length((const char *)bytes, 4) == 4;
		if (second == (1u << 12) - 1)
			assert_int_equal(total, 0x100000 >> 12);
	}
	assert_int_equal(utf8_length("x", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_code_point_is_written_and_read),
	    cmocka_unit_test(nothing_else_is_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
