/* archive - see the header for the layout. The file is held in memory on both sides: a hundred thousand verdicts are
 * some twenty megabytes, and a reader that can look ahead finds the next block behind a damaged one. */
#include "cache/archive.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>
#include <zstd.h>

#include "cache/record.h"

enum {
	LEVEL = 3,
	WINDOW_LOG_MAX = 24, /* of what is unpacked: no more memory than a block has */
	FRAME = 8,	     /* octets of a skippable frame before its content */
	HEAD = 17 + 4 + 8,
	BLOCK_HEAD = 4 + 3 * 4 + 3 * 8,
	TAIL = 4 + 4 + 8 + 2 * 8,
	RECORD_LEAST = PORTABLE_HEAD + PORTABLE_TAIL + 60, /* octets of a record in which nothing is */
	RATIO_MAX = 1000, /* no file of ours unpacks into more times its size, some megabytes aside */
	UNPACKED_FREE = 64 << 20,
};

static const uint32_t skippable = 0x184D2A5F; /* one of the sixteen magic numbers that zstd leaves to others */
static const char head_mark[] = "reftest verdicts\n", block_mark[] = "rfbk", tail_mark[] = "rfnd";

static uint64_t sum(const void *bytes, size_t length)
{
	return XXH3_64bits(bytes, length);
}

/* --- Writing ----------------------------------------------------------------------------------------------------- */

/* Appends a skippable frame with a checksum at its end. */
static void put_frame(struct buf *out, const struct buf *content)
{
	record_put_u32(out, skippable);
	record_put_u32(out, (uint32_t)content->length + 8);
	buf_add(out, content->data, content->length);
	record_put_u64(out, sum(content->data, content->length));
}

void archive_begin(struct archive_writer *writer, struct buf *out)
{
	struct buf head = {0};

	*writer = (struct archive_writer){.out = out};
	buf_text(&head, head_mark);
	record_put_u32(&head, ARCHIVE_VERSION);
	put_frame(out, &head);
	buf_free(&head);
}

static size_t pack(struct archive_writer *writer, struct buf *packed)
{
	if (writer->packer == NULL && (writer->packer = ZSTD_createCCtx()) == NULL)
		die_no_memory();
	buf_reserve(packed, ZSTD_compressBound(writer->raw.length));
	size_t length = ZSTD_compressCCtx(writer->packer, packed->data, ZSTD_compressBound(writer->raw.length),
					  writer->raw.data, writer->raw.length, LEVEL);

	if (ZSTD_isError(length)) /* with room for the worst case only memory can be missing */
		die_no_memory();
	return packed->length = length;
}

static void end_block(struct archive_writer *writer)
{
	struct buf head = {0}, packed = {0};

	if (writer->records == 0)
		return;
	pack(writer, &packed);
	buf_text(&head, block_mark);
	record_put_u32(&head, writer->records);
	record_put_u32(&head, (uint32_t)writer->raw.length);
	record_put_u32(&head, (uint32_t)packed.length);
	record_put_u64(&head, sum(writer->raw.data, writer->raw.length));
	record_put_u64(&head, sum(packed.data, packed.length));
	put_frame(writer->out, &head);
	buf_add(writer->out, packed.data, packed.length);
	buf_free(&head);
	buf_free(&packed);
	buf_clear(&writer->raw);
	writer->records = 0;
	writer->blocks++;
}

int archive_add(struct archive_writer *writer, const struct portable *record, struct err *err)
{
	if (portable_write(record, &writer->raw, err) != 0)
		return -1;
	writer->records++;
	writer->all++;
	if (writer->raw.length >= ARCHIVE_BLOCK)
		end_block(writer);
	return 0;
}

void archive_end(struct archive_writer *writer)
{
	struct buf tail = {0};

	end_block(writer);
	buf_text(&tail, tail_mark);
	record_put_u32(&tail, writer->blocks);
	record_put_u64(&tail, writer->all);
	record_put_u64(&tail, sum(writer->out->data, writer->out->length));
	put_frame(writer->out, &tail);
	buf_free(&tail);
	buf_free(&writer->raw);
	ZSTD_freeCCtx(writer->packer);
	writer->packer = NULL;
}

/* --- Reading ----------------------------------------------------------------------------------------------------- */

/* Is there a skippable frame of `length` octets that begins with `mark` and checks out at `at`? Then its content. */
static const unsigned char *frame_at(const struct archive_reader *r, size_t at, const char *mark, size_t length)
{
	if (at > r->length || r->length - at < FRAME + length)
		return NULL;
	const unsigned char *content = r->bytes + at + FRAME;
	struct reader frame = {.at = r->bytes + at, .left = FRAME}, last = {.at = content + length - 8, .left = 8};

	if (record_get_u32(&frame) != skippable || record_get_u32(&frame) != length ||
	    memcmp(content, mark, strlen(mark)) != 0 || record_get_u64(&last) != sum(content, length - 8))
		return NULL;
	return content;
}

int archive_open(struct archive_reader *reader, const void *bytes, size_t length, archive_refused *refused,
		 void *context, struct err *err)
{
	*reader = (struct archive_reader){.bytes = bytes, .length = length, .refused = refused, .context = context};
	const unsigned char *head = frame_at(reader, 0, head_mark, HEAD);

	if (head == NULL)
		return err_set(err, length == 0 ? "it is empty"
						: "it is no file that `reftest cache export` wrote, "
						  "or its first bytes are damaged");
	struct reader version = {.at = head + strlen(head_mark), .left = 4};
	uint32_t found = record_get_u32(&version);

	if (found != ARCHIVE_VERSION)
		return err_set(err, "it is of version %u, and this program reads version %d: a newer reftest reads it",
			       found, ARCHIVE_VERSION);
	reader->at = FRAME + HEAD;
	reader->whole = true;
	return 0;
}

void archive_close(struct archive_reader *reader)
{
	ZSTD_freeDCtx(reader->unpacker);
	reader->unpacker = NULL;
	buf_free(&reader->raw);
}

struct block {
	uint32_t records, raw, packed;
	uint64_t raw_sum, packed_sum;
	const unsigned char *bytes; /* `packed` of them, or as many as the file still has */
	size_t there;
	int64_t number;
};

static void refuse(struct archive_reader *r, int64_t count, const char *sentence)
{
	r->whole = false;
	r->refused(sentence, count, r->context);
}

/* Unpacks as far as it goes. The octets before a damage come out right or not; each record's checksum says which. */
static bool unpack(struct archive_reader *r, const struct block *block)
{
	if (r->unpacker == NULL && (r->unpacker = ZSTD_createDCtx()) == NULL)
		die_no_memory();
	ZSTD_DCtx_reset(r->unpacker, ZSTD_reset_session_only);
	ZSTD_DCtx_setParameter(r->unpacker, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	buf_clear(&r->raw);
	buf_reserve(&r->raw, block->raw);
	ZSTD_inBuffer in = {block->bytes, block->there, 0};
	ZSTD_outBuffer out = {r->raw.data, block->raw, 0};
	size_t left = 1;

	while (in.pos < in.size && out.pos < out.size && left != 0) {
		size_t read = in.pos, written = out.pos;

		left = ZSTD_decompressStream(r->unpacker, &out, &in);
		if (ZSTD_isError(left) || (in.pos == read && out.pos == written))
			break;
	}
	r->raw.length = out.pos;
	return out.pos == block->raw && sum(r->raw.data, out.pos) == block->raw_sum;
}

/* The next "rfvt" at or after `at`; `length` if there is none. */
static size_t next_record(const char *bytes, size_t length, size_t at)
{
	const char *found = at < length ? memmem(bytes + at, length - at, "rfvt", 4) : NULL;

	return found != NULL ? (size_t)(found - bytes) : length;
}

/* Every record of the block that reads, and a sentence for those that do not. */
static int read_records(struct archive_reader *r, const struct block *block, struct arena *arena,
			struct portable *records)
{
	struct err why = {""}, sentence;
	size_t at = 0, used;
	uint32_t taken = 0;

	while (at < r->raw.length && taken < block->records && taken < r->raw.length / RECORD_LEAST) {
		switch (portable_read(r->raw.data + at, r->raw.length - at, arena, &records[taken], &used, &why)) {
		case PORTABLE_WHOLE:
			taken++;
			at += used;
			break;
		case PORTABLE_NEWER: /* not damaged, and stepped over */
			at += used;
			break;
		default: /* where it ends is not to be believed */
			at = next_record(r->raw.data, r->raw.length, at + 1);
		}
	}
	if (taken < block->records) {
		err_set(&sentence, "block %lld: %u of its %u records cannot be read (%s)", (long long)block->number,
			block->records - taken, block->records,
			why.text[0] != '\0' ? why.text : "the file ends before they do, or is damaged there");
		refuse(r, block->records - taken, sentence.text);
	}
	return (int)taken;
}

/* Reads a block's head at `at`, if one is there. */
static bool block_at(const struct archive_reader *r, size_t at, struct block *block)
{
	const unsigned char *content = frame_at(r, at, block_mark, BLOCK_HEAD);

	if (content == NULL)
		return false;
	struct reader from = {.at = content + strlen(block_mark), .left = BLOCK_HEAD - strlen(block_mark)};

	*block = (struct block){.records = record_get_u32(&from), .raw = record_get_u32(&from)};
	block->packed = record_get_u32(&from);
	block->raw_sum = record_get_u64(&from);
	block->packed_sum = record_get_u64(&from);
	block->bytes = content + BLOCK_HEAD;
	block->there = r->length - at - FRAME - BLOCK_HEAD;
	if (block->there > block->packed)
		block->there = block->packed;
	return true;
}

static void read_tail(struct archive_reader *r, const unsigned char *content)
{
	struct reader from = {.at = content + strlen(tail_mark), .left = TAIL - strlen(tail_mark)};
	uint32_t blocks = record_get_u32(&from);
	uint64_t records = record_get_u64(&from), all = record_get_u64(&from);

	r->ended = true;
	if (r->whole && (blocks != r->blocks || records != (uint64_t)r->records || all != sum(r->bytes, r->at)))
		refuse(r, 0, "the checksum over the whole is wrong, though each record that was read is right");
	r->at += FRAME + TAIL;
	if (r->at != r->length)
		refuse(r, 0, "something follows its end");
}

/* To the next head or tail behind what is no head where one should be. */
static void skip_damage(struct archive_reader *r)
{
	unsigned char mark[4] = {0x5F, 0x2A, 0x4D, 0x18};
	struct err sentence;
	struct block block;
	size_t from = r->at++;

	for (; r->at < r->length; r->at++) {
		const unsigned char *found = memmem(r->bytes + r->at, r->length - r->at, mark, sizeof mark);

		r->at = found != NULL ? (size_t)(found - r->bytes) : r->length;
		if (found == NULL || block_at(r, r->at, &block) || frame_at(r, r->at, tail_mark, TAIL) != NULL)
			break;
	}
	err_set(&sentence, "bytes %zu to %zu are damaged: which records stood there cannot be told", from, r->at);
	refuse(r, 1, sentence.text);
}

/* A block whose head checks out, but that nobody who keeps to the rules would write. */
static bool block_lies(const struct block *block)
{
	return block->raw > ARCHIVE_BLOCK_MAX || block->records == 0 || block->records > block->raw / RECORD_LEAST;
}

static int read_block(struct archive_reader *r, struct block *block, struct arena *arena,
		      const struct portable **records)
{
	struct err sentence;

	block->number = ++r->blocks;
	r->at += FRAME + BLOCK_HEAD + block->there;
	if (block_lies(block)) {
		err_set(&sentence, "block %lld says that it holds %u records in %u bytes, which none does",
			(long long)block->number, block->records, block->raw);
		refuse(r, 1, sentence.text);
		return 0;
	}
	unpack(r, block);
	r->unpacked += r->raw.length;
	/* What is counted is believed only as far as it was unpacked. */
	size_t most = r->raw.length / RECORD_LEAST;
	struct portable *found = arena_array(arena, block->records < most ? block->records : most, sizeof *found);

	*records = found;
	int count = read_records(r, block, arena, found);

	r->records += count;
	if (r->whole && (block->there != block->packed || sum(block->bytes, block->there) != block->packed_sum)) {
		err_set(&sentence, "block %lld is damaged, though its records are right", (long long)block->number);
		refuse(r, 0, sentence.text);
	}
	return count;
}

int archive_next(struct archive_reader *reader, struct arena *arena, const struct portable **records, int *count)
{
	struct block block;

	*count = 0;
	while (reader->at < reader->length && !reader->ended) {
		if (reader->unpacked > UNPACKED_FREE && reader->unpacked / RATIO_MAX > reader->length) {
			reader->ended = true;
			refuse(reader, 1, "it unpacks into more than any file of verdicts does; the rest is not read");
			return 0;
		}
		const unsigned char *tail = frame_at(reader, reader->at, tail_mark, TAIL);

		if (tail != NULL) {
			read_tail(reader, tail);
		} else if (block_at(reader, reader->at, &block)) {
			*count = read_block(reader, &block, arena, records);
			return 1;
		} else {
			skip_damage(reader);
		}
	}
	if (!reader->ended) {
		reader->ended = true;
		refuse(reader, 0, "it ends too soon: it was cut short, and what is missing cannot be told");
	}
	return 0;
}
