/* test_sha256 - the examples of FIPS 180-4, and inputs of about the length of a block, whose digests are compared with
 * sha256sum. */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_digest(const void *bytes, size_t length, const char *expected)
{
	unsigned char digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256_of(bytes, length, digest);
	for (int i = 0; i < SHA256_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(hex, expected);
}

static void the_published_examples(void **state)
{
	char *million = malloc(1000000);

	(void)state;
	assert_digest("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_digest("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
		      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	assert_non_null(million);
	memset(million, 'a', 1000000);
	assert_digest(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(million);
}

static void every_length_about_a_block_is_as_sha256sum_has_it(void **state)
{
	(void)state;
	for (size_t length = 50; length < 3000; length += length < 140 ? 1 : 97) {
		char path[] = "/tmp/reftest-sha256-XXXXXX", command[80], expected[65] = "", bytes[3000];
		int fd = mkstemp(path);
		FILE *file = fdopen(fd, "w"), *answer;

		for (size_t i = 0; i < length; i++)
			bytes[i] = (char)(7 * i + length);
		fwrite(bytes, 1, length, file);
		fclose(file);
		snprintf(command, sizeof command, "sha256sum <%s", path);
		answer = popen(command, "r");
		assert_non_null(answer);
		assert_int_equal(fread(expected, 1, 64, answer), 64);
		pclose(answer);
		remove(path);
		assert_digest(bytes, length, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_published_examples),
	    cmocka_unit_test(every_length_about_a_block_is_as_sha256sum_has_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
