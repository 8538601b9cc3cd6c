/* Portable records: what was written reads back, no flipped bit and no lying length gets through, and a record that
 * does not agree with itself is not believed though its checksum is right. */
#include "cache/portable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <endian.h>
#include <xxhash.h>

#include "cache/fingerprint.h"
#include "cache/record.h"
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

static const struct portable_name names[] = {{"rmsnorm/one", "small:batch_size=1"}, {"rmsnorm/two", "small:rows=1"}};

struct world {
	struct arena arena;
	struct buf text, fields, out;
	struct portable record;
};

static int world_make(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct fields subject = {0}, witness = {0};

	field_text(&subject, &w->arena, "axes.hidden_size", "const 64");
	field_text(&subject, &w->arena, "reference", "def run(): pass");
	witness_fields(verdict.ground_truth, verdict.ground_truth_version, verdict.device_class, verdict.torch,
		       verdict.cuda, &w->arena, &witness);
	struct fields all = fields_copy(&subject, &w->arena);

	witness_fields(verdict.ground_truth, verdict.ground_truth_version, verdict.device_class, verdict.torch,
		       verdict.cuda, &w->arena, &all);
	fields_write(&all, &w->fields);
	verdict_write(&verdict, &w->text);
	w->record = (struct portable){.subject = fields_digest(&subject),
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
	assert_int_equal(portable_write(&w->record, &w->out, &err), 0);
}

/* In memory of its own size, so that a sanitizer sees a step too far. */
static enum portable_answer read_copy(struct world *w, const void *bytes, size_t length, struct portable *out,
				      size_t *used)
{
	unsigned char *copy = malloc(length > 0 ? length : 1);
	struct err err = {""};

	if (length > 0)
		memcpy(copy, bytes, length);
	enum portable_answer answer = portable_read(copy, length, &w->arena, out, used, &err);

	free(copy);
	assert_int_equal(err.text[0] == '\0', answer == PORTABLE_WHOLE || answer == PORTABLE_SHORT);
	return answer;
}

static void a_record_reads_back(void **state)
{
	struct world *w = *state;
	struct portable found;
	size_t used;

	w->record.signature_kind = SIGNATURE_ED25519;
	w->record.signature = "signed";
	w->record.signature_length = 6;
	write_it(w);
	size_t length = w->out.length;

	buf_text(&w->out, "what follows it");
	assert_int_equal(read_copy(w, w->out.data, w->out.length, &found, &used), PORTABLE_WHOLE);
	assert_int_equal(used, length);
	assert_true(digest_equal(&found.subject, &w->record.subject) &&
		    digest_equal(&found.witness, &w->record.witness));
	assert_int_equal(found.made, verdict.time);
	assert_string_equal(found.text, w->text.data);
	assert_int_equal(found.length, w->text.length);
	assert_int_equal(found.fields_length, w->fields.length);
	assert_memory_equal(found.fields, w->fields.data, w->fields.length);
	assert_int_equal(found.name_count, 2);
	assert_string_equal(found.names[1].definition, "rmsnorm/two");
	assert_string_equal(found.names[1].case_id, "small:rows=1");
	assert_int_equal(found.signature_kind, SIGNATURE_ED25519);
	assert_int_equal(found.signature_length, 6);
	assert_memory_equal(found.signature, "signed", 6);
	assert_int_equal(portable_check(&found, NULL), 0);
}

/* The first octets of what is written are the same on every machine. */
static void the_layout_is_the_one_described(void **state)
{
	struct world *w = *state;
	static const unsigned char head[] = {'r', 'f', 'v', 't', 2, 0, 0, 0};

	write_it(w);
	assert_memory_equal(w->out.data, head, sizeof head);
	size_t length = w->out.length - PORTABLE_HEAD - PORTABLE_TAIL;

	assert_int_equal((unsigned char)w->out.data[8], length & 255);
	assert_int_equal((unsigned char)w->out.data[9], length >> 8 & 255);
	assert_int_equal((unsigned char)w->out.data[11], 0);
	assert_memory_equal(w->out.data + PORTABLE_HEAD + 8, w->record.subject.bytes, DIGEST_BYTES);
}

static void one_flipped_bit_anywhere_is_seen(void **state)
{
	struct world *w = *state;
	struct portable found;
	size_t used;

	write_it(w);
	for (size_t i = 0; i < w->out.length * 8; i++) {
		w->out.data[i / 8] = (char)(w->out.data[i / 8] ^ 1 << i % 8);
		if (read_copy(w, w->out.data, w->out.length, &found, &used) == PORTABLE_WHOLE)
			fail_msg("bit %zu of octet %zu was flipped, and nobody saw it", i % 8, i / 8);
		w->out.data[i / 8] = (char)(w->out.data[i / 8] ^ 1 << i % 8);
	}
	assert_int_equal(read_copy(w, w->out.data, w->out.length, &found, &used), PORTABLE_WHOLE);
}

static void a_cut_record_is_short(void **state)
{
	struct world *w = *state;
	struct portable found;
	size_t used;

	write_it(w);
	for (size_t length = 0; length < w->out.length; length++)
		assert_int_equal(read_copy(w, w->out.data, length, &found, &used), PORTABLE_SHORT);
}

/* Makes the checksum right again after the record was changed: what is left then is bounds. */
static void seal(struct world *w)
{
	size_t length = w->out.length - PORTABLE_TAIL;

	w->out.length = length;
	record_put_u64(&w->out, XXH3_64bits_withSeed(w->out.data, length, 0x7265667465737431));
}

static void lying_lengths_are_kept_in_bounds(void **state)
{
	struct world *w = *state;
	static const uint32_t lies[] = {0, 1, 7, 0xFF, 0xFFFF, PORTABLE_MAX, PORTABLE_MAX + 1, 0x7FFFFFFF, 0xFFFFFFFF};

	struct portable found;
	size_t used;

	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
		for (size_t at = 8; at + 4 + PORTABLE_TAIL <= sizeof(uint32_t) + 400; at++) {
			write_it(w);
			uint32_t lie = htole32(lies[i]);

			memcpy(w->out.data + at, &lie, sizeof lie);
			seal(w);
			read_copy(w, w->out.data, w->out.length, &found,
				  &used); /* the sanitizers say if it went astray */
			assert_true(used <= w->out.length);
		}
}

static void expect_unbelieved(struct world *w, const char *why)
{
	struct err err = {""};

	assert_int_equal(portable_check(&w->record, &err), -1);
	if (strstr(err.text, why) == NULL)
		fail_msg("'%s' does not say '%s'", err.text, why);
}

static void what_does_not_agree_with_itself_is_not_believed(void **state)
{
	struct world *w = *state;
	struct portable good = w->record;
	struct portable_name shown[] = {{"rmsnorm/one\033[2J", "small"}};

	assert_int_equal(portable_check(&w->record, NULL), 0);
	w->record.subject.bytes[3] ^= 1;
	expect_unbelieved(w, "another subject");
	w->record = good;
	w->record.witness.bytes[15] ^= 1;
	expect_unbelieved(w, "another witness");
	w->record.fields_length = 0; /* without fields it is the verdict's own words */
	expect_unbelieved(w, "another witness than it says");
	w->record = good;
	w->record.fields_length--;
	expect_unbelieved(w, "fields cannot be read");
	w->record = good;
	w->record.made++;
	expect_unbelieved(w, "made at");
	w->record = good;
	w->record.length--;
	expect_unbelieved(w, "cannot be read");
	w->record = good;
	w->record.names = shown;
	w->record.name_count = 1;
	expect_unbelieved(w, "names no");
	w->record = good;
}

static void a_later_version_is_stepped_over(void **state)
{
	struct world *w = *state;
	struct portable found;
	size_t used;

	write_it(w);
	w->out.data[4] = PORTABLE_VERSION + 1;
	assert_int_equal(read_copy(w, w->out.data, w->out.length, &found, &used), PORTABLE_DAMAGED);
	assert_int_equal(used, w->out.length); /* its length holds, so the next one can be read */
	seal(w);
	assert_int_equal(read_copy(w, w->out.data, w->out.length, &found, &used), PORTABLE_NEWER);
	assert_int_equal(used, w->out.length);
}

static void what_is_too_large_does_not_travel(void **state)
{
	struct world *w = *state;
	struct err err = {""};
	struct portable large = w->record;

	large.fields = calloc(1, PORTABLE_MAX);
	large.fields_length = PORTABLE_MAX;
	assert_int_equal(portable_write(&large, &w->out, &err), -1);
	assert_int_equal(w->out.length, 0);
	assert_non_null(strstr(err.text, "more than travels"));
	free((void *)large.fields);
}

static void the_time_is_found_where_it_stands(void **state)
{
	struct world *w = *state;

	assert_int_equal(portable_made(w->text.data, w->text.length), verdict.time);
	assert_int_equal(portable_made("{}", 2), 0);
	assert_int_equal(portable_made("\"time\": ", 8), 0);
	assert_true(portable_made("\"time\": 99999999999999999999999", 31) > 0);
}

static void a_signature_covers_what_counts(void **state)
{
	struct world *w = *state;
	struct buf one = {0}, two = {0};

	portable_signed(&w->record, &one);
	w->record.name_count = 0;
	w->record.fields_length = 0;
	portable_signed(&w->record, &two);
	assert_int_equal(one.length, two.length);
	assert_memory_equal(one.data, two.data, one.length);
	for (int i = 0; i < 3; i++) {
		buf_clear(&two);
		w->record.subject.bytes[0] ^= (unsigned char)(i == 0);
		w->record.witness.bytes[0] ^= (unsigned char)(i == 1);
		w->record.made ^= i == 2;
		portable_signed(&w->record, &two);
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
	    cmocka_unit_test_setup_teardown(the_layout_is_the_one_described, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(one_flipped_bit_anywhere_is_seen, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_cut_record_is_short, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(lying_lengths_are_kept_in_bounds, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_does_not_agree_with_itself_is_not_believed, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_later_version_is_stepped_over, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_is_too_large_does_not_travel, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(the_time_is_found_where_it_stands, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_signature_covers_what_counts, world_make, world_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
