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
	RECORD_LEAST = 12,				     /* octets of a record in which nothing is */
	RECORD_LEAST_1 = PORTABLE_HEAD + PORTABLE_TAIL + 60, /* in version 1 */
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

	*writer = (struct archive_writer){.out = out, .block = block_new()};
	buf_text(&head, head_mark);
	record_put_u32(&head, ARCHIVE_VERSION);
	put_frame(out, &head);
	buf_free(&head);
}

static void pack(struct archive_writer *writer, const struct buf *raw, struct buf *packed)
{
	if (writer->packer == NULL && (writer->packer = ZSTD_createCCtx()) == NULL)
		die_no_memory();
	buf_reserve(packed, ZSTD_compressBound(raw->length));
	size_t length = ZSTD_compressCCtx(writer->packer, packed->data, ZSTD_compressBound(raw->length), raw->data,
					  raw->length, LEVEL);

	if (ZSTD_isError(length)) /* with room for the worst case only memory can be missing */
		die_no_memory();
	packed->length = length;
}

static void end_block(struct archive_writer *writer)
{
	struct buf head = {0}, raw = {0}, packed = {0};
	uint32_t records = block_records(writer->block);

	if (records == 0)
		return;
	block_end(writer->block, &raw);
	pack(writer, &raw, &packed);
	buf_text(&head, block_mark);
	record_put_u32(&head, records);
	record_put_u32(&head, (uint32_t)raw.length);
	record_put_u32(&head, (uint32_t)packed.length);
	record_put_u64(&head, sum(raw.data, raw.length));
	record_put_u64(&head, sum(packed.data, packed.length));
	put_frame(writer->out, &head);
	buf_add(writer->out, packed.data, packed.length);
	buf_free(&head);
	buf_free(&raw);
	buf_free(&packed);
	writer->blocks++;
}

int archive_add(struct archive_writer *writer, const struct portable *record, struct err *err)
{
	if (block_add(writer->block, record, err) != 0)
		return -1;
	writer->all++;
	if (block_octets(writer->block) >= ARCHIVE_BLOCK || block_whole(writer->block) >= BLOCK_WHOLE)
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
	block_free(writer->block);
	writer->block = NULL;
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

	reader->version = record_get_u32(&version);
	if (reader->version < 1 || reader->version > ARCHIVE_VERSION)
		return err_set(
		    err, "it is of version %u, and this program reads versions up to %d: a newer reftest reads it",
		    reader->version, ARCHIVE_VERSION);
	reader->at = FRAME + HEAD;
	reader->whole = true;
	return 0;
}

static void refuse(struct archive_reader *r, int64_t count, const char *sentence)
{
	r->whole = false;
	r->refused(sentence, count, r->context);
}

/* Unpacks as far as it goes. The octets before a damage come out right or not; each record's checksum says which. */
static bool unpack(const struct archive_block *block, struct buf *raw)
{
	ZSTD_DCtx *unpacker = ZSTD_createDCtx();
	ZSTD_inBuffer in = {block->bytes, block->there, 0};
	size_t left = 1;

	if (unpacker == NULL)
		die_no_memory();
	ZSTD_DCtx_setParameter(unpacker, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	buf_reserve(raw, (size_t)block->raw + 1);
	ZSTD_outBuffer out = {raw->data, block->raw, 0};

	while (in.pos < in.size && out.pos < out.size && left != 0) {
		size_t read = in.pos, written = out.pos;

		left = ZSTD_decompressStream(unpacker, &out, &in);
		if (ZSTD_isError(left) || (in.pos == read && out.pos == written))
			break;
	}
	ZSTD_freeDCtx(unpacker);
	raw->length = out.pos;
	return out.pos == block->raw && sum(raw->data, out.pos) == block->raw_sum;
}

/* The next "rfvt" at or after `at`; `length` if there is none. */
static size_t next_record(const char *bytes, size_t length, size_t at)
{
	const char *found = at < length ? memmem(bytes + at, length - at, "rfvt", 4) : NULL;

	return found != NULL ? (size_t)(found - bytes) : length;
}

/* Every record of a block of version 1 that reads. */
static int read_records_1(struct archive_block *block, const struct buf *raw, uint32_t most)
{
	size_t at = 0, used;
	uint32_t taken = 0;

	while (at < raw->length && taken < most) {
		struct portable *record = &block->found[taken];

		switch (portable_read(raw->data + at, raw->length - at, &block->arena, record, &used, &block->why)) {
		case PORTABLE_WHOLE:
			taken++;
			at += used;
			break;
		case PORTABLE_NEWER: /* not damaged, and stepped over */
			at += used;
			break;
		default: /* where it ends is not to be believed */
			at = next_record(raw->data, raw->length, at + 1);
		}
	}
	block->whole = raw->length;
	return (int)taken;
}

static size_t record_least(const struct archive_block *block)
{
	return block->version == 1 ? RECORD_LEAST_1 : RECORD_LEAST;
}

/* A block whose head checks out, but that nobody who keeps to the rules would write. */
static bool block_lies(const struct archive_block *block)
{
	return block->raw > ARCHIVE_BLOCK_MAX || block->records == 0 ||
	       block->records > block->raw / record_least(block);
}

void archive_read(struct archive_block *block)
{
	struct buf raw = {0};

	if (block_lies(block))
		return;
	bool right = unpack(block, &raw);
	/* What is counted is believed only as far as it was unpacked. */
	size_t most = raw.length / record_least(block);
	uint32_t count = block->records < most ? block->records : (uint32_t)most;

	block->found = arena_array(&block->arena, count, sizeof *block->found);
	if (block->version == 1)
		block->count = read_records_1(block, &raw, count);
	else
		block->count =
		    block_read(raw.data, raw.length, count, &block->arena, block->found, &block->whole, &block->why);
	block->lost = (int64_t)block->records - block->count;
	block->damaged =
	    !right || block->there != block->packed || sum(block->bytes, block->there) != block->packed_sum;
	buf_free(&raw);
}

/* Reads a block's head at `at`, if one is there. */
static bool block_at(const struct archive_reader *r, size_t at, struct archive_block *block)
{
	const unsigned char *content = frame_at(r, at, block_mark, BLOCK_HEAD);

	if (content == NULL)
		return false;
	struct reader from = {.at = content + strlen(block_mark), .left = BLOCK_HEAD - strlen(block_mark)};

	*block = (struct archive_block){.version = r->version, .records = record_get_u32(&from)};
	block->raw = record_get_u32(&from);
	block->packed = record_get_u32(&from);
	block->raw_sum = record_get_u64(&from);
	block->packed_sum = record_get_u64(&from);
	block->bytes = content + BLOCK_HEAD;
	block->there = r->length - at - FRAME - BLOCK_HEAD;
	if (block->there > block->packed)
		block->there = block->packed;
	return true;
}

static void read_tail(struct archive_reader *r)
{
	const unsigned char *content = r->bytes + r->tail + FRAME;
	struct reader from = {.at = content + strlen(tail_mark), .left = TAIL - strlen(tail_mark)};
	uint32_t blocks = record_get_u32(&from);
	uint64_t records = record_get_u64(&from), all = record_get_u64(&from);

	if (r->whole && (blocks != r->blocks || records != (uint64_t)r->records || all != sum(r->bytes, r->tail)))
		refuse(r, 0, "the checksum over the whole is wrong, though each record that was read is right");
	if (r->tail + FRAME + TAIL != r->length)
		refuse(r, 0, "something follows its end");
}

/* When no block comes any more, and all that came were told: is the file whole? */
static void judge(struct archive_reader *r)
{
	if (r->judged || r->told != r->blocks)
		return;
	r->judged = true;
	if (r->tail > 0)
		read_tail(r);
	else if (!r->ended)
		refuse(r, 0, "it ends too soon: it was cut short, and what is missing cannot be told");
}

/* To the next head or tail behind what is no head where one should be. */
static void skip_damage(struct archive_reader *r)
{
	unsigned char mark[4] = {0x5F, 0x2A, 0x4D, 0x18};
	struct err sentence;
	struct archive_block block;
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

void archive_told(struct archive_reader *r, const struct archive_block *block)
{
	struct err sentence;

	r->told++;
	r->records += block->count;
	r->unpacked += block->raw + block->whole;
	if (block_lies(block)) {
		err_set(&sentence, "block %lld says that it holds %u records in %u bytes, which none does",
			(long long)block->number, block->records, block->raw);
		refuse(r, 1, sentence.text);
	} else if (block->lost > 0) {
		err_set(&sentence, "block %lld: %lld of its %u records cannot be read (%s)", (long long)block->number,
			(long long)block->lost, block->records,
			block->why.text[0] != '\0' ? block->why.text
						   : "the file ends before they do, or is damaged there");
		refuse(r, block->lost, sentence.text);
	} else if (r->whole && (block->damaged || block->why.text[0] != '\0')) {
		err_set(&sentence, "block %lld is damaged, though its records are right", (long long)block->number);
		refuse(r, 0, sentence.text);
	}
}

int archive_find(struct archive_reader *reader, struct archive_block *block)
{
	while (reader->at < reader->length && !reader->ended) {
		if (reader->unpacked > UNPACKED_FREE && reader->unpacked / RATIO_MAX > reader->length) {
			reader->ended = true;
			refuse(reader, 1, "it unpacks into more than any file of verdicts does; the rest is not read");
			break;
		}
		if (frame_at(reader, reader->at, tail_mark, TAIL) != NULL) {
			reader->tail = reader->at;
			reader->ended = true;
		} else if (block_at(reader, reader->at, block)) {
			block->number = ++reader->blocks;
			reader->at += FRAME + BLOCK_HEAD + block->there;
			return 1;
		} else {
			skip_damage(reader);
		}
	}
	judge(reader);
	return 0;
}

int archive_next(struct archive_reader *reader, struct arena *arena, const struct portable **records, int *count)
{
	struct archive_block block;

	*count = 0;
	if (archive_find(reader, &block) == 0)
		return 0;
	block.arena = *arena;
	archive_read(&block);
	archive_told(reader, &block);
	*arena = block.arena;
	*records = block.found;
	*count = block.count;
	return 1;
}

void archive_close(struct archive_reader *reader)
{
	*reader = (struct archive_reader){.ended = true, .judged = true};
}
