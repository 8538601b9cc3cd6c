/* test_signature - a signature covers every part of a verdict that a run uses. A verdict without a signature, or with
 * another kind of signature than expected, is rejected. */
#include "remote/signature.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "cache/fingerprint.h"
#include "cache/witness.h"

static const char *const keys[] = {"hmac:000102030405060708090a0b0c0d0e0f",
				   "ed25519:4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"};

static struct signing_key *key(const char *text)
{
	struct signing_key *signer = NULL;

	assert_int_equal(signature_open(text, &signer, NULL), 1);
	return signer;
}

static struct verdict_line record(void)
{
	static const char text[] = "{\"status\": \"passed\"}";

	return (struct verdict_line){.subject = digest_of("s", 1),
				 .witness = digest_of("w", 1),
				 .made = 1700000000,
				 .text = text,
				 .length = sizeof text - 1};
}

static void whatever_decides_is_signed(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct signing_key *signer = key(keys[k]);
		struct verdict_line signed_one = record();
		struct err err;

		signature_sign(signer, &signed_one);
		assert_int_equal(signature_check(signer, &signed_one, &err), 0);
		struct verdict_line changed[5];

		for (int i = 0; i < 5; i++)
			changed[i] = signed_one;
		changed[0].subject.bytes[15] ^= 1;
		changed[1].witness.bytes[0] ^= 1;
		changed[2].made++;
		changed[3].text = "{\"status\": \"failed\"}";
		changed[4].length--;
		for (int i = 0; i < 5; i++) {
			assert_int_equal(signature_check(signer, &changed[i], &err), -1);
			assert_true(strstr(err.text, "signature") != NULL);
		}
		signing_key_close(signer);
	}
}

/* If a part of a record is replaced, the signature of the record and the checksum of its line are wrong. */
static void an_edited_containment_is_noticed(void **state)
{
	static const char old[] = "\"containment\": \"files,disk\"", new[] = "\"containment\": \"full\"      ";
	struct verdict_line made = record(), edited = made;
	struct signing_key *signer = key(keys[1]);
	struct verdict verdict = {.status = STATUS_PASSED, .time = 1700000000, .containment = "files,disk"};
	struct buf text = {0}, line = {0};
	struct arena arena = {0};
	struct err err;

	(void)state;
	assert_int_equal(sizeof old, sizeof new);
	verdict_write(&verdict, &text);
	made.text = text.data;
	made.length = text.length;
	made.witness = verdict_witness(&verdict);
	signature_sign(signer, &made);
	assert_int_equal(signature_check(signer, &made, &err), 0);
	assert_int_equal(verdict_line_write(&made, &line, &err), 0);
	assert_non_null(verdict_line_read(line.data, line.length - 1, &arena, &edited, &err));

	char *at = memmem(line.data, line.length, old, sizeof old - 1);

	assert_non_null(at);
	memcpy(at, new, sizeof new - 1);
	assert_null(verdict_line_read(line.data, line.length - 1, &arena, &edited, &err));
	assert_non_null(strstr(err.text, "checksum"));

	at = memmem(text.data, text.length, old, sizeof old - 1);
	memcpy(at, new, sizeof new - 1);
	const struct verdict *parsed = verdict_parse(text.data, text.length, &arena, &err);

	assert_string_equal(parsed->containment, "full");
	assert_int_equal(signature_check(signer, &made, &err), -1);
	signing_key_close(signer);
	buf_free(&text);
	buf_free(&line);
	arena_free(&arena);
}

static void no_signature_and_another_kind_of_one_are_refused(void **state)
{
	struct signing_key *hmac = key(keys[0]), *pair = key(keys[1]);
	struct verdict_line one = record();
	struct err err;

	(void)state;
	assert_int_equal(signature_check(NULL, &one, &err), 0);
	assert_int_equal(signature_check(hmac, &one, &err), -1);
	assert_true(strstr(err.text, "not signed") != NULL);
	signature_sign(hmac, &one);
	assert_int_equal(signature_check(pair, &one, &err), -1);
	one.signature_kind = SIGNATURE_ED25519; /* the record now claims to have the expected kind of signature */
	assert_int_equal(signature_check(pair, &one, &err), -1);
	one.signature_kind = SIGNATURE_HMAC_SHA256;
	one.signature_length = 0;
	assert_int_equal(signature_check(hmac, &one, &err), -1);
	signature_sign(NULL, &one);
	assert_int_equal(one.signature_kind, SIGNATURE_NONE);
	assert_int_equal(one.signature_length, 0);
	signing_key_close(hmac);
	signing_key_close(pair);
}

static void an_empty_variable_asks_for_nothing(void **state)
{
	struct signing_key *signer;
	struct err err;

	(void)state;
	assert_int_equal(signature_open(NULL, &signer, &err), 0);
	assert_int_equal(signature_open("", &signer, &err), 0);
	assert_null(signer);
	assert_int_equal(signature_open("nonsense", &signer, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(whatever_decides_is_signed),
	    cmocka_unit_test(an_edited_containment_is_noticed),
	    cmocka_unit_test(no_signature_and_another_kind_of_one_are_refused),
	    cmocka_unit_test(an_empty_variable_asks_for_nothing),
	};
	char folder[PATH_MAX];

	/* the signing library is in the build folder, two folders above this test program */
	if (file_program_directory(folder, sizeof folder - 6, NULL) == 0)
		setenv("REFTEST_KERNELS", strcat(folder, "/../.."), 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
