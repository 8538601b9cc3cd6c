/* test_export_import - every verdict of an exported file can be imported. In a damaged file, only the verdicts with
 * damaged bytes are lost, and each damage is reported with its line. The memory and the time that an import uses are
 * bounded by the size of the file. */
#include "cache/export_import.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <zstd.h>

#include "base/file.h"
#include "cache/fingerprint.h"
#include "cache/witness.h"
#include "dataset/verdict.h"
#include "tests/unit/seeds.h"

enum { RECORDS = 60, TEXT = 1 << 20 };

struct world {
	char root[64], path[96], other[96];
	struct arena arena;
	struct store *store;
	struct buf file, text; /* an exported file with `RECORDS` verdicts, and its decompressed text */
	struct import_counts in;
	int sentences;
	char first[2048], last[2048];
};

/* Replaces fdatasync by a function that does nothing, because the test needs no durability, and syncing would take most
 * of the test's time. */
__attribute__((visibility("default"))) int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

__attribute__((visibility("default"))) int fsync(int fd)
{
	(void)fd;
	return 0;
}

static struct store *open_store(const char *root)
{
	struct err note, err = {""};
	struct store *store = store_open(root, &(struct store_options){0}, &note, &err);

	if (store == NULL)
		fail_msg("%s", err.text);
	return store;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

/* Builds verdict `number` in the arena; its message contains the number. */
static struct store_put put_of(struct arena *arena, int number)
{
	struct fields all = {0}, subject = {0};
	struct verdict v = {.device_class = "cpu",
			    .ground_truth = "builtin",
			    .ground_truth_version = "1",
			    .torch = "2.13.0",
			    .time = 1700000000 + number,
			    .message = arena_printf(arena, "verdict %d", number)};
	struct buf text = {0}, list = {0};

	field_printf(&subject, arena, "seed", "%d", number);
	field_printf(&all, arena, "seed", "%d", number);
	witness_fields("builtin", "1", "cpu", "2.13.0", NULL, NULL, arena, &all);
	verdict_write(&v, &text);
	fields_write(&all, &list);
	return (struct store_put){.subject = fields_digest(&subject),
				  .witness = verdict_witness(&v),
				  .text = text.data,
				  .length = text.length,
				  .fields = list.data,
				  .fields_length = list.length,
				  .definition = arena_printf(arena, "norm/n%d", number / 6),
				  .case_id = arena_printf(arena, "small:n=%d", number % 6),
				  .keep_verdict = true};
}

static void fill(struct store *store, int from, int to)
{
	for (int i = from; i < to; i++) {
		struct arena arena = {0};
		struct store_put put = put_of(&arena, i);
		struct err err = {""};

		if (store_put(store, &put, 1, &err) != 0)
			fail_msg("%s", err.text);
		free((void *)put.text);
		free((void *)put.fields);
		arena_free(&arena);
	}
}

static void read_into(const char *path, struct buf *out)
{
	buf_clear(out);
	assert_int_equal(file_read(AT_FDCWD, path, EXPORT_FILE_MAX, out, NULL, NULL), FILE_OK);
}

static void unpack(const struct buf *file, struct buf *out)
{
	buf_clear(out);
	buf_reserve(out, TEXT);
	size_t length = ZSTD_decompress(out->data, TEXT, file->data, file->length);

	assert_false(ZSTD_isError(length));
	out->length = length;
}

static int world_make(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct export_counts out;
	struct err err = {""};
	char from[80];

	strcpy(w->root, "/tmp/reftest-export-XXXXXX");
	if (mkdtemp(w->root) == NULL)
		return -1;
	snprintf(w->path, sizeof w->path, "%s/file", w->root);
	snprintf(w->other, sizeof w->other, "%s/to", w->root);
	snprintf(from, sizeof from, "%s/from", w->root);
	mkdir(from, 0755);
	mkdir(w->other, 0755);
	struct store *store = open_store(from);

	fill(store, 0, RECORDS);
	assert_int_equal(export_verdicts(store, w->path, NULL, &out, &err), 0);
	assert_int_equal(out.verdicts, RECORDS);
	store_close(store);
	read_into(w->path, &w->file);
	unpack(&w->file, &w->text);
	w->store = open_store(w->other);
	*state = w;
	return 0;
}

static int world_remove(void **state)
{
	struct world *w = *state;

	store_close(w->store);
	buf_free(&w->file);
	buf_free(&w->text);
	arena_free(&w->arena);
	nftw(w->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(w);
	return 0;
}

static void refused(const char *sentence, int64_t count, void *context)
{
	struct world *w = context;

	(void)count;
	snprintf(w->last, sizeof w->last, "%s", sentence);
	if (w->sentences++ == 0)
		snprintf(w->first, sizeof w->first, "%s", sentence);
}

/* Imports these bytes. Returns 0, or -1 with the message in `first`. */
static int import(struct world *w, const void *bytes, size_t length)
{
	FILE *file = fopen(w->path, "wb");
	struct err err = {""};

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, length, file), length);
	fclose(file);
	w->sentences = 0;
	w->first[0] = w->last[0] = '\0';
	int answer = import_verdicts(w->store, w->path, NULL, refused, w, &w->in, &err);

	assert_int_equal(answer != 0, err.text[0] != '\0');
	if (answer != 0)
		snprintf(w->first, sizeof w->first, "%s", err.text);
	return answer;
}

static int64_t taken(const struct world *w)
{
	return w->in.merged.taken + w->in.merged.replaced + w->in.merged.kept;
}

static void pack(const void *bytes, size_t length, struct buf *out)
{
	ZSTD_CCtx *packer = ZSTD_createCCtx();

	buf_clear(out);
	buf_reserve(out, ZSTD_compressBound(length));
	ZSTD_CCtx_setParameter(packer, ZSTD_c_checksumFlag, 1);
	out->length = ZSTD_compress2(packer, out->data, ZSTD_compressBound(length), bytes, length);
	ZSTD_freeCCtx(packer);
}

static int import_text(struct world *w, const void *text, size_t length)
{
	struct buf file = {0};

	pack(text, length, &file);
	int answer = import(w, file.data, file.length);

	buf_free(&file);
	return answer;
}

/* Checks that the store has no verdict other than those of the exported file. */
static void expect_no_other(struct world *w)
{
	struct store_inspected seen;
	struct err err = {""};

	assert_int_equal(store_inspect(w->store, NULL, NULL, &seen, &err), 0);
	assert_int_equal(seen.bad, 0);
	for (int i = 0; i < RECORDS; i++) {
		struct arena arena = {0};
		struct store_put put = put_of(&arena, i);
		const char *text;
		size_t length;

		if (store_verdict(w->store, &put.subject, &put.witness, &arena, &text, &length, &err) == CACHE_HIT) {
			assert_int_equal(length, put.length);
			assert_memory_equal(text, put.text, length);
			seen.rows -= 2;
		}
		free((void *)put.text);
		free((void *)put.fields);
		arena_free(&arena);
	}
	assert_int_equal(seen.rows, 0);
}

static void what_was_written_is_read(void **state)
{
	struct world *w = *state;

	assert_int_equal(import(w, w->file.data, w->file.length), 0);
	assert_true(w->in.whole && w->in.merged.taken == RECORDS && w->in.refused == 0 && w->sentences == 0);
	expect_no_other(w);
	assert_int_equal(import(w, w->file.data, w->file.length), 0);
	assert_true(w->in.whole && w->in.merged.kept == RECORDS);
}

static void an_empty_store_gives_a_file_without_verdicts(void **state)
{
	struct world *w = *state;
	struct export_counts out;
	struct err err;

	assert_int_equal(export_verdicts(w->store, w->path, NULL, &out, &err), 0);
	read_into(w->path, &w->file);
	unpack(&w->file, &w->text);
	assert_int_equal(w->text.length, strlen("reftest verdicts\t3\t0\nend\t0\n"));
	assert_memory_equal(w->text.data, "reftest verdicts\t3\t0\nend\t0\n", w->text.length);
	assert_int_equal(import(w, w->file.data, w->file.length), 0);
	assert_true(w->in.whole && taken(w) == 0);
}

static void the_text_is_the_one_described(void **state)
{
	struct world *w = *state;
	int lines = 0;

	assert_memory_equal(w->text.data, "reftest verdicts\t3\t60\n", 22);
	assert_memory_equal(w->text.data + w->text.length - 7, "end\t60\n", 7);
	for (size_t i = 0; i < w->text.length; i++)
		lines += w->text.data[i] == '\n';
	assert_int_equal(lines, RECORDS + 2);
	assert_memory_equal(w->file.data, "\x28\xB5\x2F\xFD", 4);
}

static void files_may_be_joined(void **state)
{
	struct world *w = *state;
	struct buf joined = {0};
	size_t head = 22;

	buf_add(&joined, w->file.data, w->file.length);
	buf_add(&joined, w->file.data, w->file.length);
	assert_int_equal(import(w, joined.data, joined.length), 0);
	assert_true(w->in.whole && w->in.merged.taken == RECORDS);
	/* the first of two joined files lacks its last 7 bytes */
	buf_clear(&joined);
	buf_add(&joined, w->text.data, w->text.length - 7);
	buf_add(&joined, w->text.data, w->text.length);
	assert_int_equal(import_text(w, joined.data, joined.length), 0);
	assert_true(!w->in.whole && w->in.refused == 0 && taken(w) == 2 * RECORDS && w->sentences == 1);
	/* the first of two joined files consists only of its head line */
	buf_clear(&joined);
	buf_add(&joined, w->text.data, head);
	buf_add(&joined, w->text.data, w->text.length);
	assert_int_equal(import_text(w, joined.data, joined.length), 0);
	assert_true(!w->in.whole && w->in.refused == RECORDS && taken(w) == RECORDS);
	assert_non_null(strstr(w->first, "60 verdicts are missing"));
	buf_free(&joined);
}

/* Whichever byte of the file is changed, the damage is reported, and all imported verdicts are verdicts that were
 * exported. */
static void one_changed_byte_anywhere_is_reported(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < w->file.length; i += BYTE_STEP) {
		w->file.data[i] = (char)(w->file.data[i] ^ 1 << i % 8);
		/* if zstd ignores the changed bit, the import must be complete */
		if (import(w, w->file.data, w->file.length) == 0 && (w->in.whole ? taken(w) < RECORDS : w->sentences == 0))
			fail_msg("bit %zu of byte %zu was flipped, and that was not noticed", i % 8, i);
		/* if a changed byte splits a line in two, both parts count as rejected */
		if (taken(w) > RECORDS || (taken(w) > 0 && taken(w) + w->in.refused < RECORDS))
			fail_msg("byte %zu: %d taken, %d refused", i, (int)taken(w), (int)w->in.refused);
		w->file.data[i] = (char)(w->file.data[i] ^ 1 << i % 8);
	}
	expect_no_other(w);
}

static void one_changed_byte_of_the_text_costs_one_verdict(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < w->text.length; i += 7 * BYTE_STEP) {
		w->text.data[i] = (char)(w->text.data[i] ^ 1 << i % 8);
		int answer = import_text(w, w->text.data, w->text.length);

		if (answer == 0 && (w->in.whole || w->sentences == 0))
			fail_msg("byte %zu was changed, and that was not noticed", i);
		if (answer == 0 && i > 21 && i < w->text.length - 8 && taken(w) < RECORDS - 2)
			fail_msg("byte %zu: %d taken: %s", i, (int)taken(w), w->first);
		w->text.data[i] = (char)(w->text.data[i] ^ 1 << i % 8);
	}
	expect_no_other(w);
}

static void damage_is_reported_with_its_line_and_its_cost(void **state)
{
	struct world *w = *state;
	char *third = w->text.data;

	for (int i = 0; i < 3; i++)
		third = memchr(third, '\n', w->text.length) + 1;
	third[40] ^= 1;
	assert_int_equal(import_text(w, w->text.data, w->text.length), 0);
	assert_true(taken(w) == RECORDS - 1 && w->in.refused == 1 && w->sentences == 1);
	assert_string_equal(w->first, "line 4: its checksum is wrong");
	third[40] ^= 1;
	/* the text is cut in the fourth line */
	assert_int_equal(import_text(w, w->text.data, (size_t)(third - w->text.data) + 40), 0);
	assert_true(taken(w) == 2 && w->in.refused == RECORDS - 2 && w->sentences == 1);
	assert_string_equal(w->first, "after line 3: the file was cut short; 58 verdicts are missing");
	/* one line is removed */
	char *fourth = memchr(third, '\n', 10000) + 1;
	size_t rest = (size_t)(w->text.data + w->text.length - fourth);

	memmove(third, fourth, rest);
	assert_int_equal(import_text(w, w->text.data, (size_t)(third - w->text.data) + rest), 0);
	assert_true(taken(w) == RECORDS - 1 && w->in.refused == 1);
	assert_non_null(strstr(w->first, "1 verdict is missing"));
}

static void every_cut_is_reported(void **state)
{
	struct world *w = *state;
	int64_t most = 0;

	for (size_t length = 0; length < w->file.length; length += length + 64 < w->file.length ? BYTE_STEP : 1)
		if (import(w, w->file.data, length) == 0) {
			assert_false(w->in.whole);
			assert_true(w->sentences == 1 && taken(w) + w->in.refused == RECORDS);
			assert_true(taken(w) >= most);
			most = taken(w);
		}
	assert_int_equal(most, RECORDS); /* if only the last line or the checksum after it is missing, all verdicts are
					  * imported */
	for (size_t length = 0; length < w->text.length; length += 11 * BYTE_STEP)
		if (import_text(w, w->text.data, length) == 0)
			assert_true(!w->in.whole && taken(w) + w->in.refused == RECORDS);
	expect_no_other(w);
}

static void what_follows_the_end_is_reported(void **state)
{
	static const char *const more[] = {"more", "more\n", "\n", "end\t60\n", "reftest verdicts\t4\t1\n"};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
		struct buf text = {0};

		buf_add(&text, w->text.data, w->text.length);
		buf_text(&text, more[i]);
		assert_int_equal(import_text(w, text.data, text.length), 0);
		if (w->in.whole || taken(w) != RECORDS || w->sentences != 1)
			fail_msg("'%s' behind the end: %d sentences", more[i], w->sentences);
		buf_free(&text);
	}
	buf_text(&w->file, "more");
	assert_int_equal(import(w, w->file.data, w->file.length), 0);
	assert_true(!w->in.whole && taken(w) == RECORDS);
}

static void what_is_no_export_is_refused(void **state)
{
	static const char *const texts[] = {"", "rfvt", "\x28\xB5\x2F\xFD", "not at all, though it is long enough to be one"};
	static const char *const unpacked[] = {"", "reftest verdicts", "reftest verdicts\n", "reftest verdicts\t\t1\n",
					       "reftest verdicts\t-3\t1\n", "reftest verdicts\t99999999999999999999\t1\n",
					       "end\t0\n", "{}\n"};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(import(w, texts[i], strlen(texts[i])), -1);
	for (size_t i = 0; i < sizeof unpacked / sizeof *unpacked; i++) {
		assert_int_equal(import_text(w, unpacked[i], strlen(unpacked[i])), -1);
		assert_non_null(strstr(w->first, "does not begin like an exported file"));
	}
	assert_int_equal(import_text(w, "reftest verdicts\t4\twhatever\tit says\n", 36), -1);
	assert_non_null(strstr(w->first, "format 4"));
	assert_non_null(strstr(w->first, "newer reftest"));
}

static void counts_that_lie_are_reported(void **state)
{
	static const char *const heads[] = {"0", "59", "61", "2147483647", "99999999999999", "-1", "x", ""};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		struct buf text = {0};

		buf_printf(&text, "reftest verdicts\t3\t%s\n", heads[i]);
		buf_add(&text, w->text.data + 22, w->text.length - 22);
		assert_int_equal(import_text(w, text.data, text.length), 0);
		/* The head may announce more verdicts than the file has, because an export leaves out verdicts that are
		 * too large for a line. */
		assert_int_equal(w->in.whole, i == 2 || i == 3);
		buf_free(&text);
	}
	for (int i = 0; i < 3; i++) {
		struct buf text = {0};

		buf_add(&text, w->text.data, w->text.length - 7);
		buf_text(&text, i == 0 ? "end\t59\n" : i == 1 ? "end\t61\n" : "end\t\n");
		assert_int_equal(import_text(w, text.data, text.length), 0);
		assert_false(w->in.whole);
		buf_free(&text);
	}
	expect_no_other(w);
}

static void bombs_cost_nothing(void **state)
{
	static const char fillings[] = {'\0', 'a', '\n', '\t'};
	struct world *w = *state;
	size_t size = 256 << 20;
	char *text = malloc(size);

	for (size_t i = 0; i < sizeof fillings; i++) {
		memset(text, fillings[i], size);
		memcpy(text, w->text.data, 22);
		assert_int_equal(import_text(w, text, size), 0);
		assert_false(w->in.whole);
		assert_int_equal(taken(w), 0);
		if (fillings[i] != '\n')
			assert_non_null(strstr(w->first, "a line is longer"));
		else
			assert_non_null(strstr(w->last, "too many lines of the file are damaged"));
	}
	free(text);
}

/* A zstd frame that asks for a window of a gigabyte is rejected. */
static void a_large_window_is_refused(void **state)
{
	struct world *w = *state;
	unsigned char frame[64] = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0xA0 /* 2^30 */, 0x01, 0x00, 0x00};

	assert_int_equal(import(w, frame, sizeof frame), -1);
}

static void random_bytes_do_no_harm(void **state)
{
	struct world *w = *state;
	struct buf copy = {0};
	unsigned noise = 7;

	for (int i = 0; i < 3000; i++) {
		const struct buf *from = i % 2 == 0 ? &w->file : &w->text;

		buf_clear(&copy);
		buf_add(&copy, from->data, from->length);
		for (int k = 0; k < 4; k++) {
			noise = noise * 1664525 + 1013904223;
			copy.data[noise / 7919 % copy.length] = (char)(noise >> 24);
		}
		if (i % 5 == 0)
			copy.length = noise / 31 % copy.length;
		(i % 2 == 0 ? import : import_text)(w, copy.data, copy.length);
	}
	expect_no_other(w);
	buf_free(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(what_was_written_is_read, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(an_empty_store_gives_a_file_without_verdicts, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(the_text_is_the_one_described, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(files_may_be_joined, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(one_changed_byte_anywhere_is_reported, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(one_changed_byte_of_the_text_costs_one_verdict, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(damage_is_reported_with_its_line_and_its_cost, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(every_cut_is_reported, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_follows_the_end_is_reported, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_is_no_export_is_refused, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(counts_that_lie_are_reported, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(bombs_cost_nothing, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_large_window_is_refused, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(random_bytes_do_no_harm, world_make, world_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
