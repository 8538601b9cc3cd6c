/* test_hash - digests are those of XXH3-128. The digests are the same on every machine, and do not depend on the pieces
 * in which the bytes are passed. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The expected values are those of XXH3-128 with seed 0, in canonical byte order. A cache can be copied to another
 * machine, so digests must be the same on every machine. */
static void digests_are_those_of_xxh3(void **state)
{
	char hex[DIGEST_HEX];
	struct digest digest = digest_of("", 0);

	(void)state;
	digest_hex(&digest, hex);
	assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
	digest = digest_of(NULL, 0);
	digest_hex(&digest, hex);
	assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
	digest = digest_of("a", 1);
	digest_hex(&digest, hex);
	assert_string_equal(hex, "a96faf705af16834e6c632b61e964e1f");
}

static void parts_have_the_digest_of_the_whole(void **state)
{
	static unsigned char bytes[5000];

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * 31 % 251);
	for (size_t length = 0; length <= sizeof bytes; length += 250)
		for (size_t step = 1; step <= 1000; step = step * 3 + 1) {
			struct digest whole = digest_of(bytes, length), parts;
			struct hash *hash = hash_begin();

			for (size_t at = 0; at < length; at += step)
				hash_add(hash, bytes + at, length - at < step ? length - at : step);
			parts = hash_end(hash);
			assert_true(digest_equal(&whole, &parts));
		}
}

static void equal_bytes_and_only_they_have_equal_digests(void **state)
{
	struct digest a = digest_of("abc", 3), b = digest_of("abc", 3), c = digest_of("abd", 3),
		      d = digest_of("abc", 4);

	(void)state;
	assert_true(digest_equal(&a, &b));
	assert_false(digest_equal(&a, &c));
	assert_false(digest_equal(&a, &d));
}

static void hexadecimal_is_read_back_and_nothing_else(void **state)
{
	static const char *const wrong[] = {"",
	                                    "0123456789abcdef0123456789abcde",
	                                    "0123456789abcdef0123456789abcdef0",
	                                    "0123456789ABCDEF0123456789abcdef",
	                                    "0123456789abcdeg0123456789abcdef",
	                                    " 123456789abcdef0123456789abcdef"};
	char hex[DIGEST_HEX];
	struct digest digest;

	(void)state;
	assert_true(digest_parse("0123456789abcdef0123456789abcdef", &digest));
	assert_int_equal(digest.bytes[7], 0xef);
	digest_hex(&digest, hex);
	assert_string_equal(hex, "0123456789abcdef0123456789abcdef");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(digest_parse(wrong[i], &digest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(digests_are_those_of_xxh3),
	    cmocka_unit_test(parts_have_the_digest_of_the_whole),
	    cmocka_unit_test(equal_bytes_and_only_they_have_equal_digests),
	    cmocka_unit_test(hexadecimal_is_read_back_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
