/* test_verdict_line - verdicts as lines of text: a record is the same after writing and reading. A record with a
 * flipped bit, a missing part or a wrong count is rejected. A record that contradicts itself is rejected even if its
 * checksum is right. */
#include "cache/verdict_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>

#include "cache/fingerprint.h"
#include "cache/witness.h"
#include "cache/checksummed_record.h"
#include "dataset/verdict.h"

static const struct verdict verdict = {
    .status = STATUS_PASSED,
    .message = "it says \"time\": 12 in its message",
    .device_class = "sm_90",
    .device = "cuda:0",
    .ground_truth = "builtin",
    .ground_truth_version = "00112233445566778899aabbccddeeff",
    .torch = "2.13.0",
    .cuda = "13.0",
    .seconds = 0.25,
    .time = 1795314088,
    .elements = 64,
};

static const struct case_name names[] = {{"rmsnorm/one", "small:batch_size=1"}, {"rmsnorm/two", "small:rows=1"}};

struct world {
	struct arena arena;
	struct buf text, fields, out;
	struct verdict_line record;
};

static int world_make(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct fields subject = {0}, witness = {0};

	field_text(&subject, &w->arena, "axes.hidden_size", "64");
	field_text(&subject, &w->arena, "reference", "def run(): pass");
	witness_fields(verdict.ground_truth, verdict.ground_truth_version, verdict.device_class, verdict.torch,
		       verdict.cuda, verdict.python, &w->arena, &witness);
	struct fields all = fields_copy(&subject, &w->arena);

	witness_fields(verdict.ground_truth, verdict.ground_truth_version, verdict.device_class, verdict.torch,
		       verdict.cuda, verdict.python, &w->arena, &all);
	fields_write(&all, &w->fields);
	verdict_write(&verdict, &w->text);
	w->record = (struct verdict_line){.subject = fields_digest(&subject),
				      .witness = fields_digest(&witness),
				      .made = verdict.time,
				      .text = w->text.data,
				      .length = w->text.length,
				      .fields = w->fields.data,
				      .fields_length = w->fields.length,
				      .names = names,
				      .name_count = 2};
	*state = w;
	return 0;
}

static int world_remove(void **state)
{
	struct world *w = *state;

	arena_free(&w->arena);
	buf_free(&w->text);
	buf_free(&w->fields);
	buf_free(&w->out);
	free(w);
	return 0;
}

static void write_it(struct world *w)
{
	struct err err = {""};

	buf_clear(&w->out);
	assert_int_equal(verdict_line_write(&w->record, &w->out, &err), 0);
	assert_int_equal(w->out.data[w->out.length - 1], '\n');
}

/* Reads a copy in an allocation of exactly its size, so that a sanitizer detects a read beyond the end. The copy stays
 * valid until the next call. */
static bool read_copy(struct world *w, const void *bytes, size_t length, struct verdict_line *out, struct err *err)
{
	static char *copy;

	free(copy);
	copy = malloc(length > 0 ? length : 1);
	err->text[0] = '\0';
	if (length > 0)
		memcpy(copy, bytes, length);
	const struct verdict *v = verdict_line_read(copy, length, &w->arena, out, err);

	assert_int_equal(err->text[0] == '\0', v != NULL);
	return v != NULL;
}

static void a_record_reads_back(void **state)
{
	struct world *w = *state;
	struct verdict_line found;
	struct err err;

	for (int round = 0; round < 2; round++) {
		w->record.signature_kind = SIGNATURE_ED25519;
		memcpy(w->record.signature, "signed", 6);
		w->record.signature_length = 6;
		if (round == 1) /* in the second round, the line also has a subject */
			w->record.fields_length = 0;
		write_it(w);
		if (!read_copy(w, w->out.data, w->out.length - 1, &found, &err))
			fail_msg("%s", err.text);
		assert_true(digest_equal(&found.subject, &w->record.subject) &&
			    digest_equal(&found.witness, &w->record.witness));
		assert_int_equal(found.made, verdict.time);
		assert_int_equal(found.length, w->text.length);
		assert_memory_equal(found.text, w->text.data, w->text.length);
		assert_int_equal(found.fields_length, w->record.fields_length);
		assert_memory_equal(found.fields, w->fields.data, w->record.fields_length);
		assert_int_equal(found.name_count, 2);
		assert_string_equal(found.names[1].definition, "rmsnorm/two");
		assert_string_equal(found.names[1].case_id, "small:rows=1");
		assert_int_equal(found.signature_kind, SIGNATURE_ED25519);
		assert_int_equal(found.signature_length, 6);
		assert_memory_equal(found.signature, "signed", 6);
		assert_non_null(verdict_line_check(&found, &w->arena, &err));
	}
}

/* The text must be the same on every machine and in every later version of this format. */
static void the_line_is_the_one_described(void **state)
{
	struct world *w = *state;
	static const char head[] = "7b9\t-\t-\t2\trmsnorm/one\tsmall:batch_size=1\trmsnorm/two\tsmall:rows=1\t7\t"
				   "axes.hidden_size\t=64\treference\t=def run(): pass\twitness.ground_truth\t=builtin\t";

	write_it(w);
	assert_true(w->out.length > 17 && w->out.data[16] == '\t');
	assert_memory_equal(w->out.data + 16, head + 3, sizeof head - 4);
	assert_int_equal(strspn(w->out.data, "0123456789abcdef"), 16);
	assert_memory_equal(w->out.data + w->out.length - 1 - w->text.length, w->text.data, w->text.length);
	assert_null(memchr(w->out.data, '\n', w->out.length - 1));
}

static void one_flipped_bit_anywhere_is_seen(void **state)
{
	struct world *w = *state;
	struct verdict_line found;
	struct err err;

	write_it(w);
	for (size_t i = 0; i < (w->out.length - 1) * 8; i++) {
		w->out.data[i / 8] = (char)(w->out.data[i / 8] ^ 1 << i % 8);
		if (read_copy(w, w->out.data, w->out.length - 1, &found, &err))
			fail_msg("bit %zu of byte %zu was flipped, and that was not noticed", i % 8, i / 8);
		w->out.data[i / 8] = (char)(w->out.data[i / 8] ^ 1 << i % 8);
	}
	assert_true(read_copy(w, w->out.data, w->out.length - 1, &found, &err));
}

static void a_cut_line_is_refused(void **state)
{
	struct world *w = *state;
	struct verdict_line found;
	struct err err;

	write_it(w);
	for (size_t length = 0; length + 1 < w->out.length; length++)
		assert_false(read_copy(w, w->out.data, length, &found, &err));
	/* the line feed is not part of the line */
	assert_false(read_copy(w, w->out.data, w->out.length, &found, &err));
}

/* Sets the checksum that the changed line must have. */
static void seal(struct world *w)
{
	char digits[17];

	snprintf(digits, sizeof digits, "%016llx",
		 (unsigned long long)XXH3_64bits_withSeed(w->out.data + 17, w->out.length - 18, 0x7265667465737433));
	memcpy(w->out.data, digits, 16);
}

/* Replaces `what` by `with` in the line, sets the right checksum, and reads the line. */
static bool read_changed(struct world *w, const char *what, const char *with, struct err *err)
{
	struct verdict_line found;
	struct buf changed = {0};

	write_it(w);
	char *at = memmem(w->out.data, w->out.length, what, strlen(what));

	assert_non_null(at);
	buf_add(&changed, w->out.data, (size_t)(at - w->out.data));
	buf_text(&changed, with);
	at += strlen(what);
	buf_add(&changed, at, (size_t)(w->out.data + w->out.length - at));
	buf_free(&w->out);
	w->out = changed;
	seal(w);
	return read_copy(w, w->out.data, w->out.length - 1, &found, err);
}

static void a_stranger_that_knows_the_checksum_is_kept_in_bounds(void **state)
{
	static const char *const changes[][2] = {
	    {"\t2\trms", "\t3\trms"},
	    {"\t2\trms", "\t1\trms"},
	    {"\t2\trms", "\t0\trms"},
	    {"\t2\trms", "\t-2\trms"},
	    {"\t2\trms", "\t\trms"},
	    {"\t2\trms", "\t4096\trms"},
	    {"\t2\trms", "\t4097\trms"},
	    {"\t2\trms", "\t99999999999999999999\trms"},
	    {"\t7\taxes", "\t8\taxes"},
	    {"\t7\taxes", "\t6\taxes"},
	    {"\t7\taxes", "\t4096\taxes"},
	    {"\t7\taxes", "\t2147483647\taxes"},
	    {"\t7\taxes", "\t07x\taxes"},
	    {"\t-\t-\t", "\thmac-sha256:0\t-\t"},
	    {"\t-\t-\t", "\thmac-sha256:0g\t-\t"},
	    {"\t-\t-\t", "\trot13:00\t-\t"},
	    {"\t-\t-\t", "\t\t-\t"},
	    {"\t-\t-\t", "\t-\t00\t"},
	    {"\t-\t-\t", "\t-\t00112233445566778899aabbccddeeff\t"},
	    {"rmsnorm/one", ""},
	    {"rmsnorm/one", "rmsnorm/\033[2J"},
	    {"=64", "=\03364"},
	    {"=64", "=65\t\t"},
	    {"=64", "00112233445566778899aabbccddeef"},
	    {"=64", "00112233445566778899aabbccddeeff64"},
	    {"\t=builtin", "\t=other"},
	    {"{\"status\"", "[\"status\""},
	    {"{\"status\"", "\001{\"status\""},
	    {"\"weak\": false", "\"weak\": 0"},
	};
	struct world *w = *state;
	struct err err;

	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		if (read_changed(w, changes[i][0], changes[i][1], &err))
			fail_msg("change %zu was not rejected", i);
	assert_true(read_changed(w, "=64", "=65", &err)); /* the record is valid, but it is the record of another
							   * subject */
	char long_name[VERDICT_LINE_NAME_MAX + 2], long_signature[3 * VERDICT_LINE_SIGNATURE_MAX];

	memset(long_name, 'x', sizeof long_name);
	long_name[sizeof long_name - 1] = '\0';
	assert_false(read_changed(w, "rmsnorm/one", long_name, &err));
	long_name[sizeof long_name - 2] = '\0';
	assert_true(read_changed(w, "rmsnorm/one", long_name, &err));
	int length = snprintf(long_signature, sizeof long_signature, "\ted25519:%0*d\t-\t", 2 * VERDICT_LINE_SIGNATURE_MAX, 0);

	assert_true(length > 0 && read_changed(w, "\t-\t-\t", long_signature, &err));
	snprintf(long_signature, sizeof long_signature, "\ted25519:%0*d\t-\t", 2 * VERDICT_LINE_SIGNATURE_MAX + 2, 0);
	assert_false(read_changed(w, "\t-\t-\t", long_signature, &err));
}

static void random_changes_do_no_harm(void **state)
{
	struct world *w = *state;
	struct verdict_line found;
	unsigned noise = 1, taken = 0;
	struct err err;

	write_it(w);
	char *good = malloc(w->out.length);
	size_t length = w->out.length;

	memcpy(good, w->out.data, length);
	for (int i = 0; i < 20000; i++) {
		memcpy(w->out.data, good, length);
		for (int k = 0; k < 3; k++) {
			noise = noise * 1664525 + 1013904223;
			size_t at = 17 + noise / 7919 % (length - 18);

			w->out.data[at] = (char)(k == 0 ? "\t\n\0\"{}09=-"[noise >> 8 & 7] : (char)(noise >> 24));
		}
		seal(w);
		taken += read_copy(w, w->out.data, length - 1, &found, &err);
		if (i % 500 == 0) {
			arena_free(&w->arena);
			w->record.subject = digest_of("", 0);
		}
	}
	assert_true(taken < 10000);
	free(good);
}

static void expect_refused(struct world *w, const char *why)
{
	struct err err = {""};

	assert_null(verdict_line_check(&w->record, &w->arena, &err));
	if (strstr(err.text, why) == NULL)
		fail_msg("'%s' does not say '%s'", err.text, why);
}

static void what_does_not_agree_with_itself_is_refused(void **state)
{
	struct world *w = *state;
	struct verdict_line good = w->record;
	struct case_name shown[] = {{"rmsnorm/one\033[2J", "small"}};
	struct err err;

	assert_non_null(verdict_line_check(&w->record, &w->arena, &err));
	w->record.subject.bytes[3] ^= 1;
	expect_refused(w, "digest of the verified case in the record is wrong");
	w->record = good;
	w->record.witness.bytes[15] ^= 1;
	expect_refused(w, "the device class in the record is wrong");
	w->record.fields_length = 0; /* a wrong witness is refused even if the record has no fields */
	expect_refused(w, "differ in the ground truth");
	w->record = good;
	w->record.fields_length--;
	expect_refused(w, "fields of the record cannot be read");
	w->record = good;
	w->record.made++;
	expect_refused(w, "the time of the record is");
	w->record = good;
	w->record.length--;
	expect_refused(w, "cannot be read");
	w->record = good;
	w->record.names = shown;
	w->record.name_count = 1;
	expect_refused(w, "cannot be printed");
	w->record = good;
	write_it(w); /* a record whose name cannot be printed is not written */
	w->record.names = shown;
	w->record.name_count = 1;
	struct verdict_line found;

	write_it(w);
	assert_true(read_copy(w, w->out.data, w->out.length - 1, &found, &err));
	assert_int_equal(found.name_count, 0);
}

static void what_is_too_large_or_no_json_is_not_written(void **state)
{
	struct world *w = *state;
	struct err err = {""};
	struct verdict_line large = w->record;
	char *text = malloc(VERDICT_LINE_MAX);

	memset(text, ' ', VERDICT_LINE_MAX);
	*text = '{';
	large.text = text;
	large.length = VERDICT_LINE_MAX;
	assert_int_equal(verdict_line_write(&large, &w->out, &err), -1);
	assert_int_equal(w->out.length, 0);
	assert_non_null(strstr(err.text, "too large for a record"));
	large.length = 10;
	for (int i = 0; i < 3; i++) {
		text[i == 0 ? 0 : 5] = "x\n\t"[i];
		assert_int_equal(verdict_line_write(&large, &w->out, &err), -1);
		text[0] = '{';
		text[5] = ' ';
	}
	assert_int_equal(w->out.length, 0);
	free(text);
}

static void the_time_of_a_verdict_is_found(void **state)
{
	struct world *w = *state;

	assert_int_equal(verdict_time(w->text.data, w->text.length), verdict.time);
	assert_int_equal(verdict_time("{}", 2), 0);
	assert_int_equal(verdict_time("\"time\": ", 8), 0);
	assert_true(verdict_time("\"time\": 99999999999999999999999", 31) > 0);
}

static void a_signature_covers_what_counts(void **state)
{
	struct world *w = *state;
	struct buf one = {0}, two = {0};

	verdict_line_signed(&w->record, &one);
	w->record.name_count = 0;
	w->record.fields_length = 0;
	verdict_line_signed(&w->record, &two);
	assert_int_equal(one.length, two.length);
	assert_memory_equal(one.data, two.data, one.length);
	for (int i = 0; i < 3; i++) {
		buf_clear(&two);
		w->record.subject.bytes[0] ^= (unsigned char)(i == 0);
		w->record.witness.bytes[0] ^= (unsigned char)(i == 1);
		w->record.made ^= i == 2;
		verdict_line_signed(&w->record, &two);
		assert_true(one.length == two.length && memcmp(one.data, two.data, one.length) != 0);
		w->record.subject.bytes[0] ^= (unsigned char)(i == 0);
		w->record.witness.bytes[0] ^= (unsigned char)(i == 1);
		w->record.made ^= i == 2;
	}
	buf_free(&one);
	buf_free(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_record_reads_back, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(the_line_is_the_one_described, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(one_flipped_bit_anywhere_is_seen, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_cut_line_is_refused, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_stranger_that_knows_the_checksum_is_kept_in_bounds, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(random_changes_do_no_harm, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_does_not_agree_with_itself_is_refused, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_is_too_large_or_no_json_is_not_written, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(the_time_of_a_verdict_is_found, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_signature_covers_what_counts, world_make, world_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
