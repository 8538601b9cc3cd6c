/* test_archive_v2 - files of the previous version are still read. tests/data/older/verdicts-v2 is an exported file of
 * format 2 with 24 verdicts of every form, signed with the key below; verdicts-v2.txt has the subject and the JSON of
 * each verdict. If bytes are damaged, only the verdicts that contain them are lost. Whatever bytes a stranger sends,
 * the reader stays within its buffer. */
#include "cache/archive_v2.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <xxhash.h>
#include <zstd.h>

#include "base/file.h"
#include "cache/export_import.h"
#include "cache/fingerprint.h"
#include "cache/checksummed_record.h"
#include "dataset/verdict.h"
#include "dataset/verdict_internal.h"
#include "remote/signature.h"
#include "tests/unit/seeds.h"

enum { RECORDS = 24 };

static const char key_text[] = "hmac:000102030405060708090a0b0c0d0e0f";

struct world {
	struct buf file, expected;
	char path[PATH_MAX], folder[PATH_MAX];
	int count, sentences;
	int64_t refused;
	bool strict; /* fail if a record is not one of those expected */
	struct digest subject[RECORDS], json[RECORDS];
};

static void data_path(const char *name, char path[PATH_MAX])
{
	char folder[PATH_MAX];

	assert_int_equal(file_program_directory(folder, sizeof folder, NULL), 0);
	assert_true(snprintf(path, PATH_MAX, "%s/../../../tests/data/older/%s", folder, name) < PATH_MAX);
}

/* Reads verdicts-v2.txt: each subject, and its JSON in today's form. */
static void read_expected(struct world *w)
{
	const char *at = w->expected.data;

	for (int i = 0; i < RECORDS; i++) {
		const char *end = strchr(at, '\n');
		struct arena arena = {0};
		struct buf out = {0};
		struct err err;
		char hex[DIGEST_HEX];

		snprintf(hex, sizeof hex, "%s", at);
		assert_true(digest_parse(hex, &w->subject[i]));
		at += DIGEST_HEX;
		const struct verdict *v = verdict_parse(at, (size_t)(end - at), &arena, &err);

		assert_non_null(v);
		verdict_write(v, &out);
		w->json[i] = digest_of(out.data, out.length);
		at = end + 1;
		buf_free(&out);
		arena_free(&arena);
	}
	assert_int_equal(*at, '\0');
}

static int world_make(void **state)
{
	struct world *w = calloc(1, sizeof *w);

	*state = w;
	data_path("verdicts-v2.txt", w->path);
	assert_int_equal(file_read(AT_FDCWD, w->path, 1 << 20, &w->expected, NULL, NULL), FILE_OK);
	read_expected(w);
	data_path("verdicts-v2", w->path);
	assert_int_equal(file_read(AT_FDCWD, w->path, 1 << 20, &w->file, NULL, NULL), FILE_OK);
	strcpy(w->folder, "/tmp/reftest-v2-XXXXXX");
	return mkdtemp(w->folder) == NULL ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static int world_remove(void **state)
{
	struct world *w = *state;

	nftw(w->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	buf_free(&w->file);
	buf_free(&w->expected);
	free(w);
	return 0;
}

static void expect_record(const struct world *w, const struct digest *subject, const char *text, size_t length)
{
	struct arena arena = {0};
	struct buf out = {0};
	const struct verdict *v = verdict_parse(text, length, &arena, NULL);
	int i = 0;

	assert_non_null(v);
	verdict_write(v, &out);
	struct digest json = digest_of(out.data, out.length);

	while (i < RECORDS && !digest_equal(&w->subject[i], subject))
		i++;
	assert_true(i < RECORDS && digest_equal(&w->json[i], &json));
	buf_free(&out);
	arena_free(&arena);
}

static int take(const struct verdict_line *records, int count, void *context, struct err *err)
{
	struct world *w = context;

	(void)err;
	for (int i = 0; i < count && w->strict; i++)
		expect_record(w, &records[i].subject, records[i].text, records[i].length);
	w->count += count;
	return 0;
}

static void refused(const char *sentence, int64_t count, void *context)
{
	struct world *w = context;

	assert_true(*sentence != '\0');
	w->sentences++;
	w->refused += count;
}

/* Reads a copy of the bytes in an allocation of exactly their size. */
static int read_copy(struct world *w, const void *bytes, size_t length)
{
	char *copy = malloc(length > 0 ? length : 1);
	struct err err = {""};

	if (length > 0)
		memcpy(copy, bytes, length);
	w->count = w->sentences = 0;
	w->refused = 0;
	int answer = archive_v2_is(copy, length) ? archive_v2_read(copy, length, take, refused, w, &err) : -1;

	free(copy);
	return answer;
}

static void every_bit_comes_out_again(void **state)
{
	struct world *w = *state;

	w->strict = true;
	assert_int_equal(read_copy(w, w->file.data, w->file.length), 0);
	assert_int_equal(w->count, RECORDS);
	assert_int_equal(w->sentences, 0);
}

static void one_changed_byte_anywhere_is_reported(void **state)
{
	struct world *w = *state;

	w->strict = true;
	for (size_t i = 0; i < w->file.length; i += BYTE_STEP) {
		w->file.data[i] = (char)(w->file.data[i] ^ 1 << i % 8);
		if (read_copy(w, w->file.data, w->file.length) == 0 && w->sentences == 0)
			fail_msg("bit %zu of byte %zu was flipped, and that was not noticed", i % 8, i);
		w->file.data[i] = (char)(w->file.data[i] ^ 1 << i % 8);
	}
}

static void every_cut_is_reported(void **state)
{
	struct world *w = *state;

	w->strict = true;
	for (size_t length = 0; length < w->file.length; length += BYTE_STEP)
		if (read_copy(w, w->file.data, length) == 0 && w->sentences == 0)
			fail_msg("the record was cut after %zu bytes, and that was not noticed", length);
}

static void random_changes_do_no_harm(void **state)
{
	struct world *w = *state;
	unsigned noise = 3;
	struct buf copy = {0};

	w->strict = true;
	for (int i = 0; i < 3000; i++) {
		buf_clear(&copy);
		buf_add(&copy, w->file.data, w->file.length);
		for (int k = 0; k < 3; k++) {
			noise = noise * 1664525 + 1013904223;
			copy.data[noise / 7919 % copy.length] = (char)(noise >> 24);
		}
		read_copy(w, copy.data, copy.length);
	}
	buf_free(&copy);
}

/* --- bytes from a stranger who computes valid checksums ----------------------------------------------------------- */

enum { HEAD = 8 + 29, BLOCK_HEAD = 8 + 40 };

static void put_frame(struct buf *out, const struct buf *content)
{
	record_put_u32(out, 0x184D2A5F);
	record_put_u32(out, (uint32_t)content->length + 8);
	buf_add(out, content->data, content->length);
	record_put_u64(out, XXH3_64bits(content->data, content->length));
}

static void put_block(struct buf *file, uint32_t records, uint32_t raw, const void *packed, size_t length, uint64_t sum)
{
	struct buf head = {0};

	buf_text(&head, "rfbk");
	record_put_u32(&head, records);
	record_put_u32(&head, raw);
	record_put_u32(&head, (uint32_t)length);
	record_put_u64(&head, sum);
	record_put_u64(&head, XXH3_64bits(packed, length));
	put_frame(file, &head);
	buf_add(file, packed, length);
	buf_free(&head);
}

/* Changes the content of the file's only block, and adapts all checksums and lengths around it. */
static void changed_blocks_are_kept_in_bounds(void **state)
{
	struct world *w = *state;
	size_t room = 1 << 20, packed_room = ZSTD_compressBound(room);
	char *raw = malloc(room), *good = malloc(room), *packed = malloc(packed_room);
	size_t length = ZSTD_decompress(good, room, w->file.data, w->file.length);
	unsigned noise = 1;

	w->strict = true;
	assert_false(ZSTD_isError(length));
	for (int i = 0; i < 5000; i++) {
		struct buf file = {0};
		size_t kept = length;

		memcpy(raw, good, length);
		for (int k = 0; k < 3; k++) {
			noise = noise * 1664525 + 1013904223;
			raw[noise / 7919 % length] = (char)(k == 0 ? 0xFF : noise >> 24);
		}
		if (i % 5 == 0)
			kept = noise / 31 % length;
		buf_add(&file, w->file.data, HEAD);
		size_t size = ZSTD_compress(packed, packed_room, raw, kept, 1);

		put_block(&file, RECORDS, (uint32_t)kept, packed, size, XXH3_64bits(raw, kept));
		assert_int_equal(read_copy(w, file.data, file.length), 0);
		buf_free(&file);
	}
	free(raw);
	free(good);
	free(packed);
}

static void liars_and_bombs_cost_nothing(void **state)
{
	static const uint32_t raws[] = {0, 1, 1000, 9 << 20, 10 << 20, 0xFFFFFFFF};
	static const uint32_t counts[] = {0, 1, 1000, 0x7FFFFFFF, 0xFFFFFFFF};
	struct world *w = *state;
	size_t size = 256 << 20;
	char *zeros = calloc(1, size), *packed = malloc(ZSTD_compressBound(size));
	size_t length = ZSTD_compress(packed, ZSTD_compressBound(size), zeros, size, 1);

	for (size_t i = 0; i < sizeof raws / sizeof *raws; i++)
		for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
			w->file.length = HEAD;
			put_block(&w->file, counts[j], raws[i], packed, length, 0);
			assert_int_equal(read_copy(w, w->file.data, w->file.length), 0);
			assert_true(w->count == 0 && w->sentences > 0);
		}
	w->file.length = HEAD;
	length = ZSTD_compress(packed, ZSTD_compressBound(size), zeros, 9 << 20, 1);
	for (int i = 0; i < 1000; i++)
		put_block(&w->file, 1, 9 << 20, packed, length, 0);
	assert_int_equal(read_copy(w, w->file.data, w->file.length), 0);
	assert_true(w->count == 0 && w->sentences < 1000);
	free(zeros);
	free(packed);
}

static void other_versions_are_refused_by_name(void **state)
{
	struct world *w = *state;

	for (uint32_t version = 0; version < 4; version++) {
		struct buf head = {0}, file = {0};
		struct err err = {""};

		if (version == 2)
			continue;
		buf_text(&head, "reftest verdicts\n");
		record_put_u32(&head, version);
		put_frame(&file, &head);
		assert_int_equal(archive_v2_read(file.data, file.length, take, refused, w, &err), -1);
		assert_non_null(strstr(err.text, "formats 2 and 3"));
		buf_free(&head);
		buf_free(&file);
	}
}

/* --- Packed verdicts ------------------------------------------------------------------------------------------------ */

static int change_packed(const struct verdict_line *records, int count, void *context, struct err *err)
{
	int taken = 0, none = 0;
	unsigned noise = 5;

	(void)context, (void)err;
	for (int i = 0; i < 20000; i++) {
		const struct verdict_line *record = &records[i % count];
		struct arena arena = {0};
		struct buf again = {0};
		struct err why = {""};
		size_t length = i % 8 == 0 ? noise / 31 % (record->length + 1) : record->length;
		unsigned char *copy = malloc(length > 0 ? length : 1);

		memcpy(copy, record->text, length);
		for (int k = i % 4; k > 0 && length > 1; k--) {
			noise = noise * 1664525 + 1013904223;
			copy[1 + noise / 7919 % (length - 1)] = (unsigned char)(noise % 3 == 0 ? 0xFF : noise >> 24);
		}
		const struct verdict *v = verdict_unpack(copy, length, &arena);

		free(copy); /* the parsed result does not point into the copy */
		if (v != NULL) {
			verdict_write(v, &again);
			if (verdict_parse(again.data, again.length, &arena, &why) == NULL)
				fail_msg("verdict_parse rejects the unpacked text: %s", why.text);
		}
		taken += v != NULL;
		none += v == NULL;
		buf_free(&again);
		arena_free(&arena);
	}
	assert_true(taken > 1000 && none > 1000);
	return 0;
}

static void a_strangers_packed_verdict_does_no_harm(void **state)
{
	struct world *w = *state;
	struct packed_parts parts;

	assert_int_equal(archive_v2_read(w->file.data, w->file.length, change_packed, refused, w, NULL), 0);
	assert_false(packed_split("{}", 2, &parts));
	assert_false(packed_split("", 0, &parts));
	assert_false(packed_split("\1\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\1\0", 13, &parts));
}

/* The text of a verdict is displayed: it must be UTF-8 and end at its declared length. */
static int change_text(const struct verdict_line *records, int count, void *context, struct err *err)
{
	int changed = 0;

	(void)context, (void)err;
	for (int i = 0; i < count; i++) {
		struct arena arena = {0};
		char *copy = arena_copy(&arena, records[i].text, records[i].length);
		char *at = memmem(copy, records[i].length, "sm_90", 5);

		for (int k = 0; k < 3 && at != NULL; k++, changed++) {
			*at = "x\xFF\0"[k];
			assert_int_equal(verdict_unpack(copy, records[i].length, &arena) != NULL, k == 0);
		}
		arena_free(&arena);
	}
	assert_true(changed > 0);
	return 0;
}

static void a_text_that_is_none_is_refused(void **state)
{
	struct world *w = *state;

	assert_int_equal(archive_v2_read(w->file.data, w->file.length, change_text, refused, w, NULL), 0);
}

/* --- import into the store ---------------------------------------------------------------------------------------- */

static struct store *open_store(const struct world *w)
{
	struct err note, err = {""};
	struct store *store = store_open(w->folder, &(struct store_options){0}, &note, &err);

	if (store == NULL)
		fail_msg("%s", err.text);
	return store;
}

static void expect_stored(const struct world *w, struct store *store)
{
	struct store_inspected seen;
	struct store_stats stats;
	struct err err;

	assert_int_equal(store_inspect(store, NULL, NULL, &seen, &err), 0);
	assert_int_equal(seen.bad, 0);
	assert_int_equal(store_stats(store, &stats, &err), 0);
	assert_int_equal(stats.verdicts, RECORDS);
	for (int i = 0; i < RECORDS; i++) {
		struct arena arena = {0};
		const struct stored_verdict *found;
		struct fields fields;
		struct latest latest;

		assert_int_equal(store_latest(store, arena_printf(&arena, "norm/n%d", i / 4),
					      arena_printf(&arena, "small:n=%d", i % 4), &arena, &latest, &err),
				 CACHE_HIT);
		assert_int_equal(fields_read(latest.fields, latest.fields_length, &arena, &fields), 0);
		assert_int_equal(fields.count, 9);
		assert_string_equal(fields.items[0].value, arena_printf(&arena, "%d", i / 4));
		assert_string_equal(fields.items[1].value, "short");
		assert_null(fields.items[2].value);
		assert_string_equal(fields.items[3].value, arena_printf(&arena, "%d", i));
		assert_int_equal(store_verdicts(store, &latest.subject, &arena, &found, &err), 1);
		expect_record(w, &latest.subject, found[0].text, found[0].length);
		arena_free(&arena);
	}
}

static void import(struct store *store, const char *path, const char *key, int64_t taken, int64_t not_taken)
{
	struct signing_key *signer;
	struct import_counts in;
	struct world counts = {0};
	struct err err = {""};

	assert_true(signature_open(key, &signer, &err) >= 0);
	struct record_signer how = signature_signer(signer);

	if (import_verdicts(store, path, &how, refused, &counts, &in, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(in.merged.taken + in.merged.kept, taken);
	assert_int_equal(in.refused, not_taken);
	signing_key_close(signer);
}

static void an_older_file_is_imported(void **state)
{
	struct world *w = *state;
	struct store *store = open_store(w);

	import(store, w->path, "hmac:ff0102030405060708090a0b0c0d0e0f", 0, RECORDS);
	import(store, w->path, key_text, RECORDS, 0); /* the signatures of version 2 are accepted */
	import(store, w->path, "", RECORDS, 0);
	expect_stored(w, store);
	store_close(store);
}

static int put_as_it_is(const struct verdict_line *records, int count, void *context, struct err *err)
{
	for (int i = 0; i < count; i++) {
		const struct store_put put = {.subject = records[i].subject,
					      .witness = records[i].witness,
					      .text = records[i].text,
					      .length = records[i].length,
					      .fields = records[i].fields,
					      .fields_length = records[i].fields_length,
					      .definition = records[i].names[0].definition,
					      .case_id = records[i].names[0].case_id,
					      .keep_verdict = true};

		assert_true(verdict_is_packed(put.text, put.length) &&
			    !fields_are_text(put.fields, put.fields_length));
		assert_int_equal(store_put(context, &put, 1, err), 0);
	}
	return 0;
}

/* Rows as the previous version stored them: packed verdicts, and lists of fields in the older format. */
static void a_row_of_an_older_version_is_read_and_exported(void **state)
{
	struct world *w = *state;
	struct store *store = open_store(w);
	struct export_counts out;
	struct err err = {""};
	char path[PATH_MAX];

	assert_int_equal(archive_v2_read(w->file.data, w->file.length, put_as_it_is, refused, store, &err), 0);
	expect_stored(w, store);
	assert_true(snprintf(path, sizeof path, "%.60s/exported", w->folder) > 0);
	assert_int_equal(export_verdicts(store, path, NULL, &out, &err), 0);
	assert_true(out.verdicts == RECORDS && out.left_out == 0);
	store_close(store);
	assert_true(snprintf(w->folder + strlen(w->folder), 4, "/to") == 3);
	assert_int_equal(mkdir(w->folder, 0755), 0);
	store = open_store(w);
	import(store, path, "", RECORDS, 0);
	expect_stored(w, store);
	store_close(store);
	*strrchr(w->folder, '/') = '\0';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(every_bit_comes_out_again, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(one_changed_byte_anywhere_is_reported, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(every_cut_is_reported, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(random_changes_do_no_harm, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(changed_blocks_are_kept_in_bounds, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(liars_and_bombs_cost_nothing, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(other_versions_are_refused_by_name, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_strangers_packed_verdict_does_no_harm, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_text_that_is_none_is_refused, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(an_older_file_is_imported, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_row_of_an_older_version_is_read_and_exported, world_make, world_remove),
	};
	char folder[PATH_MAX];

	/* The library that checks signatures is two folders above the tests of a build, beside the program. */
	if (file_program_directory(folder, sizeof folder - 6, NULL) == 0)
		setenv("REFTEST_KERNELS", strcat(folder, "/../.."), 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
