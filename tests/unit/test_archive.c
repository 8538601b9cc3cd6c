/* Archives: what was written is read, damage costs what it hit and is told, and no file makes the reader take more
 * memory or time than its size allows. */
#include "cache/archive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>
#include <zstd.h>

#include "cache/record.h"

enum { RECORDS = 60 };

struct world {
	struct buf file;
	int64_t refused; /* records */
	int told;	 /* sentences */
	char first[2048];
};

/* Record `number` says so in its text; `size` octets of it cannot be packed. */
static void add(struct archive_writer *writer, int number, size_t size)
{
	char *text = malloc(size + 32);
	unsigned noise = (unsigned)number * 2654435761u + 1;
	int head = snprintf(text, 32, "verdict %06d ", number);
	struct portable record = {.made = number, .text = text, .length = (size_t)head + size};

	for (size_t i = 0; i < size; i++)
		text[(size_t)head + i] = (char)('0' + (noise = noise * 1664525 + 1013904223) / 7919 % 64);
	record.subject = digest_of(text, record.length);
	assert_int_equal(archive_add(writer, &record, NULL), 0);
	free(text);
}

/* `count` records of `size` octets each. */
static void write_file(struct world *w, int count, size_t size)
{
	struct archive_writer writer;

	buf_clear(&w->file);
	archive_begin(&writer, &w->file);
	for (int i = 0; i < count; i++)
		add(&writer, i, size);
	archive_end(&writer);
}

static int world_make(void **state)
{
	*state = calloc(1, sizeof(struct world));
	return 0;
}

static int world_remove(void **state)
{
	buf_free(&((struct world *)*state)->file);
	free(*state);
	return 0;
}

static void refused(const char *sentence, int64_t count, void *context)
{
	struct world *w = context;

	if (w->told++ == 0)
		snprintf(w->first, sizeof w->first, "%s", sentence);
	w->refused += count;
}

/* Reads all, each record once and right at that. How many; -1: it is no archive. */
static int read_all(struct world *w, const void *bytes, size_t length, bool *whole)
{
	unsigned char *copy = malloc(length > 0 ? length : 1);
	bool met[4096] = {false};
	struct archive_reader reader;
	const struct portable *records;
	int count, all = 0;

	if (length > 0)
		memcpy(copy, bytes, length);
	w->refused = w->told = 0;
	w->first[0] = '\0';
	if (archive_open(&reader, copy, length, refused, w, NULL) != 0) {
		free(copy);
		return -1;
	}
	for (struct arena arena = {0}; archive_next(&reader, &arena, &records, &count) > 0; arena_free(&arena))
		for (int i = 0; i < count; i++) {
			struct digest right = digest_of(records[i].text, records[i].length);

			assert_true(digest_equal(&right, &records[i].subject));
			assert_true(records[i].made >= 0 && records[i].made < 4096 && !met[records[i].made]);
			met[records[i].made] = true;
			all++;
		}
	*whole = reader.whole;
	free(copy);
	return all;
}

static void what_was_written_is_read(void **state)
{
	static const struct {
		int count;
		size_t size;
	} cases[] = {{0, 0}, {1, 0}, {1, 100}, {RECORDS, 500}, {RECORDS, 100000}};
	struct world *w = *state;
	bool whole;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		write_file(w, cases[i].count, cases[i].size);
		assert_int_equal(read_all(w, w->file.data, w->file.length, &whole), cases[i].count);
		assert_true(whole);
		assert_int_equal(w->told, 0);
	}
}

static void zstd_itself_unpacks_it(void **state)
{
	struct world *w = *state;

	write_file(w, RECORDS, 100);
	size_t room = 1 << 20;
	char *out = malloc(room);
	size_t length = ZSTD_decompress(out, room, w->file.data, w->file.length);

	assert_false(ZSTD_isError(length));
	assert_non_null(memmem(out, length, "verdict 000059", 14));
	free(out);
}

/* Whatever octet is changed, it is told, and only records of its block are lost. */
static void one_changed_octet_anywhere_is_told(void **state)
{
	struct world *w = *state;
	bool whole;

	write_file(w, 8, 40);
	for (size_t i = 0; i < w->file.length; i++)
		for (int bit = 0; bit < 8; bit += 3) {
			w->file.data[i] = (char)(w->file.data[i] ^ 1 << bit);
			int count = read_all(w, w->file.data, w->file.length, &whole);

			if (count >= 0 && (whole || w->told == 0))
				fail_msg("bit %d of octet %zu was flipped, and nobody saw it", bit, i);
			w->file.data[i] = (char)(w->file.data[i] ^ 1 << bit);
		}
}

static void damage_costs_what_it_hits(void **state)
{
	struct world *w = *state;
	bool whole;

	write_file(w, RECORDS, 100000); /* six blocks of ten and eleven */
	for (size_t at = 200; at < w->file.length; at += 99991) {
		w->file.data[at] = (char)(w->file.data[at] ^ 0x55);
		int count = read_all(w, w->file.data, w->file.length, &whole);

		assert_false(whole);
		if (count < RECORDS - 11 || count + w->refused > RECORDS || (count == RECORDS && w->told == 0))
			fail_msg("octet %zu: %d records read, %d refused: %s", at, count, (int)w->refused, w->first);
		w->file.data[at] = (char)(w->file.data[at] ^ 0x55);
	}
}

/* In one block too, those before the damage and, where they stand unpacked, those behind it. */
static void of_a_damaged_block_what_reads_is_taken(void **state)
{
	struct world *w = *state;
	bool whole;

	write_file(w, 9, 100000);
	size_t at = w->file.length - 100; /* in the last octets of the last record */

	w->file.data[at] = (char)(w->file.data[at] ^ 1);
	int count = read_all(w, w->file.data, w->file.length, &whole);

	assert_int_equal(count, 8); /* zstd packs what has no pattern in pieces: only the last one is hurt */
	assert_int_equal(count + w->refused, 9);
}

static void a_cut_file_gives_what_it_has(void **state)
{
	struct world *w = *state;
	bool whole;
	int before = 0;

	write_file(w, RECORDS, 100000);
	for (size_t length = 0; length < w->file.length; length += 77777) {
		int count = read_all(w, w->file.data, length, &whole);

		assert_true(length < 37 ? count == -1 : count >= before);
		assert_true(count <= 0 || !whole);
		before = count > before ? count : before;
	}
	assert_true(before > RECORDS / 2);
	assert_int_equal(read_all(w, w->file.data, w->file.length - 1, &whole), RECORDS);
	assert_false(whole);
}

static void what_follows_the_end_is_told(void **state)
{
	struct world *w = *state;
	bool whole;

	write_file(w, 3, 10);
	buf_text(&w->file, "more");
	assert_int_equal(read_all(w, w->file.data, w->file.length, &whole), 3);
	assert_false(whole);
}

/* A block of another file, whole and with as many records, in the place of this one's: only the checksum over all of it
 * can tell. */
static void another_files_block_is_told(void **state)
{
	struct world *w = *state;
	struct archive_writer writer;
	struct buf other = {0};
	bool whole;

	write_file(w, 3, 40);
	archive_begin(&writer, &other);
	for (int i = 3; i < 6; i++)
		add(&writer, i, 40);
	archive_end(&writer);
	size_t tail = 8 + 32;

	buf_add(&other, w->file.data + w->file.length - tail, tail);
	memmove(other.data + other.length - 2 * tail, other.data + other.length - tail, tail);
	assert_int_equal(read_all(w, other.data, other.length - tail, &whole), 3);
	assert_false(whole);
	assert_int_equal(w->refused, 0);
	assert_non_null(strstr(w->first, "checksum over the whole"));
	buf_free(&other);
}

static void what_is_no_archive_is_refused(void **state)
{
	static const char *const texts[] = {"", "rfvt", "\x28\xB5\x2F\xFD",
					    "not at all, though it is long enough to be one"};
	struct world *w = *state;
	struct archive_reader reader;
	struct err err;
	bool whole;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(read_all(w, texts[i], strlen(texts[i]), &whole), -1);
	assert_int_equal(archive_open(&reader, "", 0, refused, w, &err), -1);
	assert_non_null(strstr(err.text, "empty"));
}

/* A frame as the writer makes them, with whatever in it. */
static void put_frame(struct buf *out, const struct buf *content)
{
	record_put_u32(out, 0x184D2A5F);
	record_put_u32(out, (uint32_t)content->length + 8);
	buf_add(out, content->data, content->length);
	record_put_u64(out, XXH3_64bits(content->data, content->length));
}

/* Appends a block whose head says what it is told to, around `packed`. */
static void put_block(struct buf *file, uint32_t records, uint32_t raw, const void *packed, size_t length)
{
	struct buf head = {0};

	buf_text(&head, "rfbk");
	record_put_u32(&head, records);
	record_put_u32(&head, raw);
	record_put_u32(&head, (uint32_t)length);
	record_put_u64(&head, 0);
	record_put_u64(&head, XXH3_64bits(packed, length));
	put_frame(file, &head);
	buf_add(file, packed, length);
	buf_free(&head);
}

/* Files by somebody who knows the checksums: a bomb, and heads that lie about what follows. */
static void liars_and_bombs_cost_nothing(void **state)
{
	static const uint32_t raws[] = {0, 1, 1000, ARCHIVE_BLOCK_MAX, ARCHIVE_BLOCK_MAX + 1, 0xFFFFFFFF};
	static const uint32_t counts[] = {0, 1, 1000, 0x7FFFFFFF, 0xFFFFFFFF};
	struct world *w = *state;
	size_t size = 256 << 20;
	char *zeros = calloc(1, size), *packed = malloc(ZSTD_compressBound(size));
	size_t length = ZSTD_compress(packed, ZSTD_compressBound(size), zeros, size, 1);
	bool whole;

	write_file(w, 0, 0);
	size_t head = 8 + 29;

	for (size_t i = 0; i < sizeof raws / sizeof *raws; i++)
		for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
			w->file.length = head;
			put_block(&w->file, counts[j], raws[i], packed, length);
			assert_int_equal(read_all(w, w->file.data, w->file.length, &whole), 0);
			assert_false(whole);
			assert_true(w->told > 0);
		}

	/* Blocks that unpack into a thousand times their size, one after the other: soon nobody reads on. */
	w->file.length = head;
	length = ZSTD_compress(packed, ZSTD_compressBound(size), zeros, 9 << 20, 1);
	for (int i = 0; i < 1000; i++)
		put_block(&w->file, 1, 9 << 20, packed, length);
	assert_int_equal(read_all(w, w->file.data, w->file.length, &whole), 0);
	assert_true(w->told < 500);
	free(zeros);
	free(packed);
}

/* What the first version of this program exported: portable records, one after the other. */
static void an_older_archive_is_read(void **state)
{
	struct world *w = *state;
	struct buf head = {0}, raw = {0}, tail = {0};
	bool whole;

	buf_clear(&w->file);
	buf_text(&head, "reftest verdicts\n");
	record_put_u32(&head, 1);
	put_frame(&w->file, &head);
	for (int i = 0; i < 5; i++) {
		char text[32];
		struct portable record = {.made = i, .text = text, .length = (size_t)snprintf(text, sizeof text, "verdict %d", i)};

		record.subject = digest_of(text, record.length);
		assert_int_equal(portable_write(&record, &raw, NULL), 0);
	}
	size_t room = ZSTD_compressBound(raw.length);
	char *packed = malloc(room);
	size_t length = ZSTD_compress(packed, room, raw.data, raw.length, 3);
	struct buf block = {0};

	buf_text(&block, "rfbk");
	record_put_u32(&block, 5);
	record_put_u32(&block, (uint32_t)raw.length);
	record_put_u32(&block, (uint32_t)length);
	record_put_u64(&block, XXH3_64bits(raw.data, raw.length));
	record_put_u64(&block, XXH3_64bits(packed, length));
	put_frame(&w->file, &block);
	buf_add(&w->file, packed, length);
	buf_text(&tail, "rfnd");
	record_put_u32(&tail, 1);
	record_put_u64(&tail, 5);
	record_put_u64(&tail, XXH3_64bits(w->file.data, w->file.length));
	put_frame(&w->file, &tail);
	assert_int_equal(read_all(w, w->file.data, w->file.length, &whole), 5);
	assert_true(whole && w->told == 0);
	w->file.data[w->file.length - 100] ^= 1; /* in the block, or its head */
	read_all(w, w->file.data, w->file.length, &whole);
	assert_false(whole);
	free(packed);
	buf_free(&head);
	buf_free(&raw);
	buf_free(&tail);
	buf_free(&block);
}

static void a_later_version_is_refused_by_name(void **state)
{
	struct world *w = *state;
	struct archive_reader reader;
	struct buf head = {0}, file = {0};
	struct err err;

	buf_text(&head, "reftest verdicts\n");
	record_put_u32(&head, ARCHIVE_VERSION + 1);
	put_frame(&file, &head);
	assert_int_equal(archive_open(&reader, file.data, file.length, refused, w, &err), -1);
	assert_non_null(strstr(err.text, "version 3"));
	buf_free(&head);
	buf_free(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(what_was_written_is_read, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(zstd_itself_unpacks_it, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(one_changed_octet_anywhere_is_told, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(damage_costs_what_it_hits, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(of_a_damaged_block_what_reads_is_taken, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_cut_file_gives_what_it_has, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_follows_the_end_is_told, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(another_files_block_is_told, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(what_is_no_archive_is_refused, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(liars_and_bombs_cost_nothing, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(an_older_archive_is_read, world_make, world_remove),
	    cmocka_unit_test_setup_teardown(a_later_version_is_refused_by_name, world_make, world_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
