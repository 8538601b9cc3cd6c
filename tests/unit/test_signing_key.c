/* test_signing_key - signing keys: the signatures equal published test vectors, new keys work, and a message about a
 * wrong key does not show the key. */
#include "remote/signing_key.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

static struct signing_key *open_key(const char *text)
{
	struct err err = {""};
	struct signing_key *signer = signing_key_open(text, &err);

	if (signer == NULL)
		fail_msg("%s", err.text);
	return signer;
}

/* Test case 1 of RFC 4231: the key is twenty bytes of 0x0b, and the text is "Hi There". (The key of case 2 has only
 * four bytes, and reftest needs 16.) */
static void hmac_is_that_of_rfc_4231(void **state)
{
	static const unsigned char right[32] = {0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf,
						0xce, 0xaf, 0x0b, 0xf1, 0x2b, 0x88, 0x1d, 0xc2, 0x00, 0xc9, 0x83,
						0x3d, 0xa7, 0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7};
	struct signing_key *signer = open_key("hmac:0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b");
	unsigned char out[SIGNATURE_MAX];

	(void)state;
	assert_int_equal(signing_key_sign(signer, "Hi There", 8, out), 32);
	assert_memory_equal(out, right, 32);
	assert_true(signing_key_check(signer, "Hi There", 8, out, 32));
	signing_key_close(signer);
}

/* Test 2 of RFC 8032, section 7.1: the message is the byte 0x72. */
static void ed25519_is_that_of_rfc_8032(void **state)
{
	static const char secret[] = "ed25519:4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
	static const char public[] = "ed25519-public:3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
	static const unsigned char right[64] = {
	    0x92, 0xa0, 0x09, 0xa9, 0xf0, 0xd4, 0xca, 0xb8, 0x72, 0x0e, 0x82, 0x0b, 0x5f, 0x64, 0x25, 0x40,
	    0xa2, 0xb2, 0x7b, 0x54, 0x16, 0x50, 0x3f, 0x8f, 0xb3, 0x76, 0x22, 0x23, 0xeb, 0xdb, 0x69, 0xda,
	    0x08, 0x5a, 0xc1, 0xe4, 0x3e, 0x15, 0x99, 0x6e, 0x45, 0x8f, 0x36, 0x13, 0xd0, 0xf1, 0x1d, 0x8c,
	    0x38, 0x7b, 0x2e, 0xae, 0xb4, 0x30, 0x2a, 0xee, 0xb0, 0x0d, 0x29, 0x16, 0x12, 0xbb, 0x0c, 0x00};
	struct signing_key *signer = open_key(secret), *reader = open_key(public);
	unsigned char out[SIGNATURE_MAX];
	char text[SIGNING_KEY_TEXT];

	(void)state;
	assert_int_equal(signing_key_sign(signer, "\x72", 1, out), 64);
	assert_memory_equal(out, right, 64);
	assert_int_equal(signing_key_public(signer, text, NULL), 0);
	assert_string_equal(text, public);
	assert_false(signing_key_signs(reader));
	assert_int_equal(signing_key_sign(reader, "\x72", 1, out), 0);
	assert_true(signing_key_check(reader, "\x72", 1, right, 64));
	signing_key_close(signer);
	signing_key_close(reader);
}

static void a_changed_bit_is_seen(void **state)
{
	static const char *const keys[] = {"hmac:000102030405060708090a0b0c0d0e0f",
					   "ed25519:4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct signing_key *signer = open_key(keys[k]);
		unsigned char out[SIGNATURE_MAX];
		char message[] = "a verdict";
		size_t length = signing_key_sign(signer, message, sizeof message, out);

		assert_true(signing_key_check(signer, message, sizeof message, out, length));
		assert_false(signing_key_check(signer, message, sizeof message, out, length - 1));
		assert_false(signing_key_check(signer, message, sizeof message - 1, out, length));
		for (size_t i = 0; i < 8 * length; i++) {
			out[i / 8] = (unsigned char)(out[i / 8] ^ 1u << i % 8);
			assert_false(signing_key_check(signer, message, sizeof message, out, length));
			out[i / 8] = (unsigned char)(out[i / 8] ^ 1u << i % 8);
		}
		message[3] = (char)(message[3] ^ 1);
		assert_false(signing_key_check(signer, message, sizeof message, out, length));
		signing_key_close(signer);
	}
}

static void keys_that_are_made_differ_and_work(void **state)
{
	char one[SIGNING_KEY_TEXT], two[SIGNING_KEY_TEXT];

	(void)state;
	for (int kind = SIGNING_KEY_HMAC_SHA256; kind <= SIGNING_KEY_ED25519; kind++) {
		unsigned char out[SIGNATURE_MAX];

		assert_int_equal(signing_key_make((enum signing_key_kind)kind, one, NULL), 0);
		assert_int_equal(signing_key_make((enum signing_key_kind)kind, two, NULL), 0);
		assert_string_not_equal(one, two);
		struct signing_key *signer = open_key(one), *other = open_key(two);
		size_t length = signing_key_sign(signer, "x", 1, out);

		assert_true(signing_key_check(signer, "x", 1, out, length));
		assert_false(signing_key_check(other, "x", 1, out, length));
		signing_key_close(signer);
		signing_key_close(other);
	}
}

static void a_key_may_lie_in_a_file(void **state)
{
	char path[] = "/tmp/test_seal.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "hmac:000102030405060708090a0b0c0d0e0f\nwhat stands here is a comment\n", 69), 69);
	close(fd);
	signing_key_close(open_key(path));
	unlink(path);
	struct err err = {""};

	assert_null(signing_key_open(path, &err));
	assert_true(strstr(err.text, "that file does not exist") != NULL);
}

static void what_is_no_key_gets_a_sentence_that_does_not_show_it(void **state)
{
	static const char *const bad[] = {
	    "",
	    "hmac:",
	    "hmac:abad1dea",
	    "hmac:abad1deaabad1deaabad1deaabad1dexx",
	    "hmac:abad1deaabad1deaabad1deaabad1dea0",
	    "ed25519:abad1dea",
	    "ed25519-public:abad1deaabad1deaabad1deaabad1dea",
	    "rsa:abad1deaabad1deaabad1deaabad1dea",
	    "abad1deaabad1deaabad1deaabad1dea",
	    "/dev/null",
	    "hmac:abad1dea/abad1dea+abad1dea=", /* a key is in base64, so it may contain the character / */
	    "/dev/null/abad1dea",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err err = {""};

		assert_null(signing_key_open(bad[i], &err));
		assert_true(err.text[0] != '\0');
		assert_true(strstr(err.text, "abad1dea") == NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hmac_is_that_of_rfc_4231),
	    cmocka_unit_test(ed25519_is_that_of_rfc_8032),
	    cmocka_unit_test(a_changed_bit_is_seen),
	    cmocka_unit_test(keys_that_are_made_differ_and_work),
	    cmocka_unit_test(a_key_may_lie_in_a_file),
	    cmocka_unit_test(what_is_no_key_gets_a_sentence_that_does_not_show_it),
	};
	char folder[PATH_MAX];

	/* the signing library is in the build folder, two folders above this test program */
	if (file_program_directory(folder, sizeof folder - 6, NULL) == 0)
		setenv("REFTEST_KERNELS", strcat(folder, "/../.."), 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
