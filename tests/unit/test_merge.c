/* test_merge - a worker's answer is accepted only if its checksum and fields are right, it is signed with the expected
 * key, and it has the checker digest of this build. */
#include "fleet/merge.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "cache/fingerprint.h"
#include "cache/witness.h"
#include "fleet/answer.h"
#include "fleet/outbox.h"
#include "remote/signature.h"

#define KEY "hmac:000102030405060708090a0b0c0d0e0f"
#define OTHER_KEY "hmac:ff0102030405060708090a0b0c0d0e0f"

static const struct verdict verdict = {
    .status = STATUS_PASSED,
    .device_class = "sm_90",
    .device = "cuda:0",
    .ground_truth = "builtin",
    .ground_truth_version = "00112233445566778899aabbccddeeff",
    .torch = "2.13.0",
    .cuda = "13.0",
    .seconds = 0.25,
    .time = 1795314088,
};

/* Appends the answer of a worker. The worker's build has the checker digest `checker`, and the worker signs with `key`
 * (NULL: not at all). */
static void write_answer(const char *checker, const char *key, struct arena *arena, struct buf *out)
{
	struct outbox outbox = {.signer = NULL};
	struct signing_key *signer = key != NULL ? signing_key_open(key, NULL) : NULL;
	struct fields subject = {0};
	struct buf text = {0}, fields = {0};

	field_text(&subject, arena, "checker", checker);
	struct fields all = fields_copy(&subject, arena);

	witness_fields(verdict.ground_truth, verdict.ground_truth_version, verdict.device_class, verdict.torch,
		       verdict.cuda, verdict.python, arena, &all);
	verdict_write(&verdict, &text);
	fields_write(&all, &fields);
	const struct store_put puts[] = {
	    {.definition = "rmsnorm/one", .case_id = "kept by an earlier run"},
	    {.subject = fields_digest(&subject), .witness = verdict_witness(&verdict), .text = text.data,
	     .length = text.length, .definition = "rmsnorm/one", .case_id = "small:a=1", .fields = fields.data,
	     .fields_length = fields.length, .keep_verdict = true}};

	assert_int_equal(key != NULL, signer != NULL);
	outbox.signer = signer;
	const struct run_store store = outbox_store(&outbox);

	assert_int_equal(store.calls->put(store.self, puts, 2, NULL), 0);
	buf_printf(out, "{\"event\": \"answer\", \"id\": \"7\", \"checker\": \"%s\", \"verdicts\": [", checker);
	buf_add(out, outbox.lines.data, outbox.lines.length);
	buf_text(out, "]}");
	signing_key_close(signer);
	outbox_free(&outbox);
	buf_free(&text);
	buf_free(&fields);
}

/* Writes the answer of a worker with write_answer. If `spoil` is true, changes a character of its only verdict. Then
 * calls merge_check for this verdict; the checker digest of this build is "ours". Returns the message, which is "" if
 * the verdict is accepted. */
static struct err check(const char *checker, const char *key, const char *expected_key, bool spoil)
{
	struct arena arena = {0};
	struct buf line = {0};
	struct answer answer;
	struct verdict_line record;
	struct err err = {""};
	struct signing_key *signer = expected_key != NULL ? signing_key_open(expected_key, NULL) : NULL;
	const struct merge_rules rules = {signature_signer(signer), "ours"};

	write_answer(checker, key, &arena, &line);
	assert_int_equal(answer_read(line.data, line.length, 1, &arena, &answer, &err), 0);
	assert_int_equal(answer.verdict_count, 1);
	assert_string_equal(answer.id, "7");
	assert_string_equal(answer.checker, checker);
	char *text = arena_string(&arena, answer.verdicts[0]);

	if (spoil)
		strstr(text, "passed")[0] = 'P';
	int rc = merge_check(&rules, text, &arena, &record, &err);

	assert_int_equal(rc == 0, err.text[0] == '\0');
	signing_key_close(signer);
	buf_free(&line);
	arena_free(&arena);
	return err;
}

static void a_verdict_counts_by_its_signature_and_its_build(void **state)
{
	static const struct {
		const char *checker, *key, *expected_key;
		bool spoil;
		const char *says; /* a part of the message; NULL: the answer is accepted */
	} rows[] = {
	    {"ours", NULL, NULL, false, NULL},
	    {"ours", KEY, KEY, false, NULL},
	    {"ours", KEY, NULL, false, NULL},
	    {"ours", NULL, KEY, false, "is not signed"},
	    {"ours", OTHER_KEY, KEY, false, "was not made with REFTEST_CACHE_KEY"},
	    {"ours", KEY, KEY, true, "checksum"},
	    {"theirs", NULL, NULL, false,
	     "another build of reftest computed the verdict: the digest of its checker is theirs, and the digest of "
	     "this build's checker is ours"},
	    {"theirs", KEY, KEY, false, "another build of reftest computed the verdict"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct err err = check(rows[i].checker, rows[i].key, rows[i].expected_key, rows[i].spoil);

		if (rows[i].says == NULL ? err.text[0] != '\0' : strstr(err.text, rows[i].says) == NULL)
			fail_msg("row %zu: the message is: %s", i, err.text);
	}
}

static void other_lines_are_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
	    {"{\"verdicts\": []}", "is not a line that `reftest work` writes"},
	    {"{\"event\": \"answer\", \"verdicts\": []}", "(\"checker\" is missing)"},
	    {"{\"event\": \"answer\", \"checker\": \"c\"}", "expected a list of verdicts"},
	    {"{\"event\": \"answer\", \"checker\": \"c\", \"verdicts\": [1]}", "expected a verdict, which is a string"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct arena arena = {0};
		struct answer answer;
		struct err err = {""};

		assert_int_equal(answer_read(rows[i].text, strlen(rows[i].text), 1, &arena, &answer, &err), -1);
		if (strstr(err.text, rows[i].says) == NULL)
			fail_msg("row %zu: the message is: %s", i, err.text);
		arena_free(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_verdict_counts_by_its_signature_and_its_build),
	    cmocka_unit_test(other_lines_are_refused),
	};
	char folder[PATH_MAX];

	/* the signing library is in the build folder, two folders above this test program */
	if (file_program_directory(folder, sizeof folder - 6, NULL) == 0)
		setenv("REFTEST_KERNELS", strcat(folder, "/../.."), 1);
	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
