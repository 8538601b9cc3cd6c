/* Blocks of an archive: records come out as they went in, and `agrees` says of each what portable_check says of it,
 * whatever it claims. Octets of a stranger are kept in bounds, and records that share much do not grow without end. */
#include "cache/block.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>

#include "cache/fingerprint.h"
#include "cache/record.h"
#include "dataset/packed.h"
#include "dataset/verdict.h"

enum { RECORDS = 40, MANY = 2000, CLAIMS = 9 };

struct world {
	struct arena arena;
	struct block_writer *writer;
	struct buf raw;
};

static int world_make(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	w->writer = block_new();
	*state = w;
	return 0;
}

static int world_remove(void **state)
{
	struct world *w = *state;

	block_free(w->writer);
	buf_free(&w->raw);
	arena_free(&w->arena);
	free(w);
	return 0;
}

/* Record `number`; six after each other are of one definition. `message` makes its skeleton as long as it is. */
static struct portable record_of(struct world *w, int number, const char *message)
{
	struct fields subject = {0}, all;
	struct output_verdict output = {.name = "output",
					.ground_truth = "builtin",
					.rank = 1,
					.shape = {64},
					.metrics = {.elements = 64, .hits = 64}};
	struct verdict v = {.status = message != NULL ? STATUS_FAILED : STATUS_PASSED,
			    .reason = message != NULL ? REASON_NUMERIC : REASON_NONE,
			    .message = message,
			    .device_class = "sm_90",
			    .device = "cuda:0",
			    .ground_truth = "builtin",
			    .ground_truth_version = number % 7 == 0 ? "8" : "9",
			    .torch = "2.13.0",
			    .cuda = "13.0",
			    .seconds = number / 1000.0,
			    .time = 1795314088 - number % 5,
			    .elements = 64,
			    .outputs = &output,
			    .output_count = 1};
	struct buf json = {0}, packed = {0}, fields = {0};
	struct portable_name *names = arena_array(&w->arena, 2, sizeof *names);
	struct fields witness = {0};

	output.metrics.max_abs = number * 0.1;
	field_printf(&subject, &w->arena, "reference", "run %d", number / 6);
	field_add(&subject, &w->arena, "reference.form", NULL, "what nobody reads", 10);
	field_printf(&subject, &w->arena, "axes.hidden_size", "const %d", number / 12);
	field_printf(&subject, &w->arena, "case.axes.batch_size", "%d", number % 6);
	all = fields_copy(&subject, &w->arena);
	witness_fields(v.ground_truth, v.ground_truth_version, v.device_class, v.torch, v.cuda, &w->arena, &all);
	witness_fields(v.ground_truth, v.ground_truth_version, v.device_class, v.torch, v.cuda, &w->arena, &witness);
	verdict_write(&v, &json);
	assert_true(verdict_pack(json.data, json.length, &packed));
	fields_write(&all, &fields);
	names[0].definition = arena_printf(&w->arena, "rmsnorm/n%d", number / 6);
	names[0].case_id = arena_printf(&w->arena, "small:n=%d", number % 6);
	names[1] = (struct portable_name){"rmsnorm/twin", names[0].case_id};
	struct portable record = {.subject = fields_digest(&subject),
				  .witness = fields_digest(&witness),
				  .made = v.time,
				  .text = arena_copy(&w->arena, packed.data, packed.length),
				  .length = packed.length,
				  .fields = arena_copy(&w->arena, fields.data, fields.length),
				  .fields_length = fields.length,
				  .names = names,
				  .name_count = number % 9 == 0 ? 2 : 1};

	buf_free(&json);
	buf_free(&packed);
	buf_free(&fields);
	return record;
}

static void same(const struct portable *a, const struct portable *b)
{
	assert_true(digest_equal(&a->subject, &b->subject) && digest_equal(&a->witness, &b->witness));
	assert_int_equal(a->made, b->made);
	assert_int_equal(a->length, b->length);
	assert_memory_equal(a->text, b->text, a->length);
	assert_int_equal(a->name_count, b->name_count);
	for (int i = 0; i < a->name_count; i++) {
		assert_string_equal(a->names[i].definition, b->names[i].definition);
		assert_string_equal(a->names[i].case_id, b->names[i].case_id);
	}
	assert_int_equal(a->signature_length, b->signature_length);
	if (a->signature_length > 0)
		assert_memory_equal(a->signature, b->signature, a->signature_length);
}

/* In memory of its own size. */
static int read_copy(struct world *w, const void *bytes, size_t length, int count, struct portable *out,
		     struct err *why)
{
	unsigned char *copy = malloc(length > 0 ? length : 1);
	size_t whole;

	if (length > 0)
		memcpy(copy, bytes, length);
	int taken = block_read(copy, length, (uint32_t)count, &w->arena, out, &whole, why);

	free(copy);
	return taken;
}

static void records_come_out_as_they_went_in(void **state)
{
	struct world *w = *state;
	struct portable in[RECORDS], out[RECORDS];
	struct err why;

	for (int round = 0; round < 2; round++) { /* the second block remembers nothing of the first */
		for (int i = 0; i < RECORDS; i++) {
			in[i] = record_of(w, i, NULL);
			if (i % 10 == 3) {
				in[i].signature_kind = SIGNATURE_ED25519;
				in[i].signature = "a signature";
				in[i].signature_length = 11;
			}
			assert_int_equal(block_add(w->writer, &in[i], NULL), 0);
		}
		buf_clear(&w->raw);
		block_end(w->writer, &w->raw);
		assert_int_equal(read_copy(w, w->raw.data, w->raw.length, RECORDS, out, &why), RECORDS);
		assert_string_equal(why.text, "");
		for (int i = 0; i < RECORDS; i++) {
			struct err err = {""};

			same(&in[i], &out[i]);
			assert_int_equal(out[i].fields_length, in[i].fields_length);
			assert_true(out[i].agrees);
			if (portable_check(&out[i], &err) != 0)
				fail_msg("%s", err.text);
		}
	}
	/* Its own octets and its part of the shared ones: far fewer than it has alone. */
	assert_true(w->raw.length < RECORDS * (in[0].length + in[0].fields_length) / 3);
}

static void what_is_claimed_is_held_to_what_is_said(void **state)
{
	struct world *w = *state;
	struct portable in[CLAIMS], out[CLAIMS];
	struct portable_name shown[] = {{"rmsnorm/one\033[2J", "small"}, {"rmsnorm/one", "small"}};
	struct verdict v = {.device_class = "cpu"};
	struct buf json = {0};
	struct err why;

	for (int i = 0; i < CLAIMS; i++)
		in[i] = record_of(w, i + 1, NULL);
	in[1].subject.bytes[3] ^= 1;
	in[2].witness.bytes[15] ^= 1;
	in[3].made++;
	in[4].names = shown;
	in[4].name_count = 2;	     /* the last of them is fit */
	in[5].fields = in[6].fields; /* of another subject */
	in[5].fields_length = in[6].fields_length;
	verdict_write(&v, &json); /* by another witness */
	in[7].text = json.data;
	in[7].length = json.length;
	in[8].witness.bytes[0] ^= 1; /* which its verdict alone can tell */
	in[8].fields_length = 0;
	for (int i = 0; i < CLAIMS; i++)
		assert_int_equal(block_add(w->writer, &in[i], NULL), 0);
	block_end(w->writer, &w->raw);
	assert_int_equal(read_copy(w, w->raw.data, w->raw.length, CLAIMS, out, &why), CLAIMS);
	for (int i = 0; i < CLAIMS; i++) {
		struct err err = {""};

		same(&in[i], &out[i]);
		assert_int_equal(out[i].agrees, i == 0 || i == 6);
		assert_int_equal(portable_check(&out[i], &err) == 0, out[i].agrees);
	}
	buf_free(&json);
}

static void put_field(struct world *w, struct buf *out, const char *tag)
{
	struct fields one = {0};

	field_text(&one, &w->arena, tag, "x");
	field_write(&one.items[0], out);
}

/* A list of fields in another order than theirs digests to a subject that nobody has: it is not believed, though the
 * checksum is made for it. */
static void fields_in_no_order_agree_with_nothing(void **state)
{
	struct world *w = *state;
	struct portable in = record_of(w, 1, NULL), out;
	struct fields fields = {0};
	struct buf list = {0}, aa = {0}, bb = {0}, body = {0};
	struct err why;

	field_text(&fields, &w->arena, "aa", "x");
	field_text(&fields, &w->arena, "bb", "x");
	in.subject = fields_digest(&fields);
	struct digest turned[2] = {fields.items[1].digest, fields.items[0].digest};

	witness_fields("builtin", "9", "sm_90", "2.13.0", "13.0", &w->arena, &fields);
	fields_write(&fields, &list);
	put_field(w, &aa, "aa");
	put_field(w, &bb, "bb");
	in.fields = list.data;
	in.fields_length = list.length;
	assert_int_equal(block_add(w->writer, &in, NULL), 0);
	block_end(w->writer, &w->raw);
	assert_int_equal(read_copy(w, w->raw.data, w->raw.length, 1, &out, &why), 1);
	assert_true(out.agrees);

	/* The pieces change places, and the checksum goes with them. */
	char *one = memmem(w->raw.data, w->raw.length, aa.data, aa.length);
	char *two = memmem(w->raw.data, w->raw.length, bb.data, bb.length);

	assert_true(one != NULL && two != NULL);
	memcpy(one, bb.data, bb.length);
	memcpy(two, aa.data, aa.length);
	buf_clear(&list);
	buf_add(&list, out.fields, out.fields_length);
	one = memmem(list.data, list.length, aa.data, aa.length);
	two = memmem(list.data, list.length, bb.data, bb.length);
	memcpy(one, bb.data, bb.length);
	memcpy(two, aa.data, aa.length);
	out.fields = list.data;
	out.subject = fields_digest_sorted(turned, 2);
	portable_body(&out, &body);
	w->raw.length -= 8;
	record_put_u64(&w->raw, XXH3_64bits_withSeed(body.data, body.length, 0x7265667465737432));
	assert_true(read_copy(w, w->raw.data, w->raw.length, 1, &out, &why) == 0 || !out.agrees);
	buf_free(&list);
	buf_free(&aa);
	buf_free(&bb);
	buf_free(&body);
}

/* A flipped bit costs the records that have a part in it, and gives no record that was not there. */
static void a_flipped_bit_gives_no_other_record(void **state)
{
	struct world *w = *state;
	struct portable in[6], out[6];
	size_t unseen = 0;
	struct err why;

	for (int i = 0; i < 6; i++) {
		in[i] = record_of(w, i, NULL);
		block_add(w->writer, &in[i], NULL);
	}
	block_end(w->writer, &w->raw);
	for (size_t i = 0; i < w->raw.length; i++) {
		w->raw.data[i] = (char)(w->raw.data[i] ^ 1 << i % 8);
		int taken = read_copy(w, w->raw.data, w->raw.length, 6, out, &why);

		unseen += taken == 6 && why.text[0] == '\0'; /* another way to refer to the same piece */
		for (int k = 0, of = 0; k < taken; k++, of++) {
			while (of < 6 && !digest_equal(&in[of].subject, &out[k].subject))
				of++;
			assert_true(of < 6);
			same(&in[of], &out[k]);
		}
		w->raw.data[i] = (char)(w->raw.data[i] ^ 1 << i % 8);
		if (i % 50 == 0) {
			arena_free(&w->arena);
			for (int k = 0; k < 6; k++)
				in[k] = record_of(w, k, NULL);
		}
	}
	assert_true(unseen < w->raw.length / 50); /* the archive's checksum over the block sees those, too */
}

static void strangers_octets_are_kept_in_bounds(void **state)
{
	struct world *w = *state;
	struct portable out[RECORDS];
	unsigned noise = 1;
	struct err why;

	for (int i = 0; i < RECORDS; i++) {
		struct portable record = record_of(w, i, NULL);

		block_add(w->writer, &record, NULL);
	}
	block_end(w->writer, &w->raw);
	char *good = malloc(w->raw.length);

	memcpy(good, w->raw.data, w->raw.length);
	for (int i = 0; i < 20000; i++) {
		memcpy(w->raw.data, good, w->raw.length);
		for (int k = 0; k < 3; k++) {
			noise = noise * 1664525 + 1013904223;
			w->raw.data[noise / 7919 % w->raw.length] = (char)(k == 0 ? 0xFF : noise >> 24);
		}
		read_copy(w, w->raw.data, i % 5 == 0 ? noise / 31 % w->raw.length : w->raw.length, RECORDS, out, &why);
		arena_free(&w->arena);
	}
	free(good);
}

/* Two thousand records with one long message: nobody makes all of them out of a few octets. */
static void what_is_shared_does_not_grow_without_end(void **state)
{
	struct world *w = *state;
	char *message = calloc(1, 20001);
	struct portable *out = calloc(MANY, sizeof *out);
	struct err why;

	memset(message, 'x', 20000);
	for (int i = 0; i < MANY; i++) {
		struct portable record = record_of(w, i, message);

		assert_int_equal(block_add(w->writer, &record, NULL), 0);
		if (i % 100 == 99)
			arena_free(&w->arena);
	}
	assert_true(block_whole(w->writer) > BLOCK_WHOLE_MAX && block_octets(w->writer) < 1 << 20);
	block_end(w->writer, &w->raw);
	int taken = read_copy(w, w->raw.data, w->raw.length, MANY, out, &why);

	assert_true(taken > 0 && (size_t)taken * 20000 <= BLOCK_WHOLE_MAX);
	assert_non_null(strstr(why.text, "more than one block holds"));
	free(message);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(records_come_out_as_they_went_in, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_is_claimed_is_held_to_what_is_said, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(fields_in_no_order_agree_with_nothing, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_flipped_bit_gives_no_other_record, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(strangers_octets_are_kept_in_bounds, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_is_shared_does_not_grow_without_end, world_make, world_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
