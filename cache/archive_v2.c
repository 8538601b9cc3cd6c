/* archive_v2 - reads exported files of format 2. The layout of such a file:
 *
 *   file   = head . { block head . block } … . tail
 *   head   = skippable frame: "reftest verdicts\n" . version u32 . checksum u64
 *   block head = skippable frame: "rfbk" . records u32 . raw bytes u32 . packed bytes u32 . checksum of the raw bytes u64
 *            . checksum of the packed bytes u64 . checksum of the block head u64
 *   block  = one zstd frame of:
 *            number of pieces . { length . bytes } … . length of records . length of marks . records . marks . numbers
 *   record = flags byte (HAS_…) . [ kind . length . signature ] . [ subject ] . [ witness ] . [ time stored ]
 *            . either skeleton ref . time . length of marks . length of numbers        (a packed verdict, dataset/verdict_packed.c)
 *              or time . length of text
 *            . number of names . { definition ref . case ref } … . [ number of fields . { field ref } … ]
 *   tail   = skippable frame: "rfnd" . blocks u32 . records u64 . checksum of all bytes before the tail u64 . checksum of the
 *            tail u64
 *
 * Checksums are XXH3-64. Integers inside a block are LEB128. A time is relative to the time of the previous record. A
 * piece is the skeleton of a packed verdict, a name or a field. A ref names a piece: 0 is the piece that the previous
 * record has in the same place, 1 is the first piece that no ref has named yet, and a larger number is 2 + the index
 * of the piece. After the numbers of each record follows a checksum over the record and all pieces that the record
 * refers to. A record omits its subject or witness (the two digests of a fingerprint) if the reader can compute the
 * digest from the fields or the verdict. */
#include "cache/archive_v2.h"

#include <string.h>

#include <xxhash.h>
#include <zstd.h>

#include "cache/fingerprint_internal.h"
#include "cache/checksummed_record.h"
#include "dataset/packed_bytes.h"

enum {
	VERSION = 2,
	FRAME = 8, /* size in bytes of the header of a skippable frame */
	HEAD = 17 + 4 + 8,
	BLOCK_HEAD = 4 + 3 * 4 + 3 * 8,
	TAIL = 4 + 4 + 8 + 2 * 8,
	BLOCK_MAX = (9 << 20) + 64,	/* the most bytes that a block may unpack to */
	/* The most bytes of a block's records when each record has its own copy of the pieces to which it refers. */
	WHOLE_MAX = (16 << 20) + 64,
	RECORD_LEAST = 12,		/* bytes of an empty record */
	WINDOW_LOG_MAX = 24,
	UNPACKED_FREE = 64 << 20,
	RATIO_MAX = 1000,
	/* The places of a record that can refer to a piece: first the skeleton, then the two parts of the first name,
	 * then the fields in their order. */
	PLACES = 128,
	PLACE_SKELETON = 0,
	PLACE_NAME = 1,
	PLACE_FIELDS = 3,
	CHECKSUM = 8,
};

/* The flags in the first byte of a record. */
enum { HAS_SUBJECT = 1, HAS_WITNESS = 2, HAS_SIGNATURE = 4, HAS_TEXT = 8, HAS_MADE = 16, HAS_FIELDS = 32, HAS_ALL = 63 };

static const uint32_t skippable = 0x184D2A5F, no_piece = UINT32_MAX;
static const uint64_t seed = 0x7265667465737432;
static const char head_mark[] = "reftest verdicts\n", block_mark[] = "rfbk", tail_mark[] = "rfnd";

/* Returns a copy of the bytes as a C string. Returns NULL if there are too few bytes, or if they contain a NUL, at
 * which a C string would end. */
static const char *text_of(const void *bytes, size_t length, struct arena *arena)
{
	if (bytes == NULL || (length > 0 && memchr(bytes, '\0', length) != NULL))
		return NULL;
	return arena_copy(arena, bytes, length);
}

/* --- Blocks ------------------------------------------------------------------------------------------------------ */

struct piece {
	const unsigned char *bytes;
	size_t length;
};

struct block {
	struct arena *arena;
	struct piece *pieces;
	uint32_t count, fresh;
	struct packed_bytes records, marks, numbers;
	uint32_t before[PLACES];
	int64_t time;
	size_t whole;
};

static bool find_parts(struct block *b, struct packed_bytes from)
{
	uint64_t count = packed_get(&from);

	if (from.bad || count > (uint64_t)(from.end - from.at))
		return false;
	b->pieces = arena_array(b->arena, count, sizeof *b->pieces);
	b->count = (uint32_t)count;
	for (uint32_t i = 0; i < b->count; i++) {
		b->pieces[i].length = packed_get(&from);
		b->pieces[i].bytes = packed_take(&from, b->pieces[i].length);
	}
	uint64_t records = packed_get(&from), marks = packed_get(&from);

	b->records.at = packed_take(&from, records);
	b->records.end = from.at;
	b->marks.at = packed_take(&from, marks);
	b->marks.end = from.at;
	b->numbers = from;
	for (int i = 0; i < PLACES; i++)
		b->before[i] = no_piece;
	return !from.bad;
}

static const struct piece *get_ref(struct block *b, int place)
{
	static const struct piece none = {(const unsigned char *)"", 0};
	uint64_t ref = packed_get(&b->records);
	uint64_t piece = ref > 1 ? ref - 2 : ref == 1 ? b->fresh : place < PLACES ? b->before[place] : no_piece;

	if (b->records.bad || piece >= b->count || (b->whole += b->pieces[piece].length) > WHOLE_MAX) {
		b->records.bad = true;
		return &none;
	}
	b->fresh += piece == b->fresh;
	if (place < PLACES)
		b->before[place] = (uint32_t)piece;
	return &b->pieces[piece];
}

static void get_digest(struct packed_bytes *from, struct digest *out)
{
	const unsigned char *at = packed_take(from, DIGEST_BYTES);

	if (at != NULL)
		memcpy(out->bytes, at, DIGEST_BYTES);
}

static void get_signature(struct block *b, struct verdict_line *out)
{
	uint64_t kind = packed_get(&b->records);

	out->signature_length = packed_get(&b->records);
	const unsigned char *bytes = packed_take(&b->records, out->signature_length);

	if (bytes == NULL || kind > SIGNATURE_ED25519 || out->signature_length > VERDICT_LINE_SIGNATURE_MAX) {
		b->records.bad = true;
		return;
	}
	out->signature_kind = (enum signature_kind)kind;
	memcpy(out->signature, bytes, out->signature_length);
}

static void put_integer(struct buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_add(out, (const unsigned char[]){(unsigned char)(value | 0x80)}, 1);
	buf_add(out, (const unsigned char[]){(unsigned char)value}, 1);
}

/* Assembles the packed verdict of the record. */
static void get_verdict(struct block *b, unsigned what, struct verdict_line *out)
{
	const struct piece *skeleton = (what & HAS_TEXT) == 0 ? get_ref(b, PLACE_SKELETON) : NULL;
	uint64_t step = packed_get(&b->records), marks = packed_get(&b->records);
	uint64_t numbers = skeleton != NULL ? packed_get(&b->records) : marks;
	struct buf text = {0};

	b->time = (int64_t)((uint64_t)b->time + (uint64_t)packed_unfold(step));
	if ((what & HAS_MADE) == 0)
		out->made = b->time;
	if (skeleton != NULL) {
		const unsigned char *marks_at = packed_take(&b->marks, marks);

		buf_text(&text, "\x01");
		put_integer(&text, (uint64_t)b->time << 1 ^ (b->time < 0 ? UINT64_MAX : 0));
		put_integer(&text, skeleton->length);
		put_integer(&text, marks);
		buf_add(&text, skeleton->bytes, skeleton->length);
		if (marks_at != NULL)
			buf_add(&text, marks_at, marks);
	}
	const unsigned char *numbers_at = packed_take(&b->numbers, numbers);

	if (numbers_at != NULL)
		buf_add(&text, numbers_at, numbers);
	b->records.bad = b->records.bad || (b->whole += text.length) > WHOLE_MAX;
	out->text = arena_copy(b->arena, text.data, text.length);
	out->length = text.length;
	buf_free(&text);
}

static void get_names(struct block *b, struct verdict_line *out)
{
	uint64_t count = packed_get(&b->records);

	if (count > VERDICT_LINE_NAMES_MAX || count > (uint64_t)(b->records.end - b->records.at)) {
		b->records.bad = true;
		return;
	}
	struct case_name *names = arena_array(b->arena, count, sizeof *names);

	for (uint64_t i = 0; i < count && !b->records.bad; i++) {
		const struct piece *definition = get_ref(b, i == 0 ? PLACE_NAME : PLACES),
				   *id = get_ref(b, i == 0 ? PLACE_NAME + 1 : PLACES);

		names[i].definition = text_of(definition->bytes, definition->length, b->arena);
		names[i].case_id = text_of(id->bytes, id->length, b->arena);
		b->records.bad = b->records.bad || names[i].definition == NULL || names[i].case_id == NULL;
	}
	out->names = names;
	out->name_count = (int)count;
}

/* Assembles the fields of the record as a list that fields_read can read. */
static void get_fields(struct block *b, struct verdict_line *out)
{
	uint64_t count = packed_get(&b->records);
	struct buf list = {0};

	record_put_u32(&list, FIELDS_V2);
	put_integer(&list, count);
	for (uint64_t i = 0; i < count && i <= FIELDS_MAX && !b->records.bad; i++) {
		const struct piece *field = get_ref(b, PLACE_FIELDS + (int)i);

		buf_add(&list, field->bytes, field->length);
	}
	b->records.bad = b->records.bad || count > FIELDS_MAX;
	out->fields = arena_copy(b->arena, list.data, list.length);
	out->fields_length = list.length;
	buf_free(&list);
}

/* Computes the subject and the witness if the record omits them. */
static void derive(struct block *b, unsigned what, struct verdict_line *out)
{
	struct digest ignored;
	struct err ignored_why;
	struct fields fields;

	if ((what & HAS_SUBJECT) == 0 && fields_read(out->fields, out->fields_length, b->arena, &fields) == 0)
		fields_digests(&fields, &out->subject, &ignored);
	const struct verdict *v =
	    (what & HAS_WITNESS) == 0 ? verdict_parse(out->text, out->length, b->arena, &ignored_why) : NULL;

	if (v != NULL)
		out->witness = verdict_witness(v);
}

static uint64_t record_sum(const struct verdict_line *record)
{
	struct buf body = {0};

	record_put_u32(&body, (uint32_t)record->signature_kind);
	record_put_bytes(&body, record->signature, record->signature_length);
	record_put_digest(&body, &record->subject);
	record_put_digest(&body, &record->witness);
	record_put_u64(&body, (uint64_t)record->made);
	record_put_bytes(&body, record->text, record->length);
	record_put_bytes(&body, record->fields, record->fields_length);
	record_put_u32(&body, (uint32_t)record->name_count);
	for (int i = 0; i < record->name_count; i++) {
		record_put_text(&body, record->names[i].definition);
		record_put_text(&body, record->names[i].case_id);
	}
	uint64_t sum = XXH3_64bits_withSeed(body.data, body.length, seed);

	buf_free(&body);
	return sum;
}

/* Reads the next record. Returns 1 for an intact record, 0 if its checksum is wrong, and -1 if neither this record nor
 * any later one can be read. */
static int get_record(struct block *b, struct verdict_line *out)
{
	unsigned what = (unsigned)packed_get(&b->records);

	*out = (struct verdict_line){0};
	b->records.bad = b->records.bad || what > HAS_ALL;
	if ((what & HAS_SIGNATURE) != 0)
		get_signature(b, out);
	if ((what & HAS_SUBJECT) != 0)
		get_digest(&b->records, &out->subject);
	if ((what & HAS_WITNESS) != 0)
		get_digest(&b->records, &out->witness);
	if ((what & HAS_MADE) != 0)
		out->made = packed_unfold(packed_get(&b->records));
	get_verdict(b, what, out);
	get_names(b, out);
	if ((what & HAS_FIELDS) != 0)
		get_fields(b, out);
	const unsigned char *sum = packed_take(&b->numbers, CHECKSUM);
	struct reader from = {.at = sum, .left = CHECKSUM};

	if (b->records.bad || b->marks.bad || b->numbers.bad)
		return -1;
	derive(b, what, out);
	return record_get_u64(&from) == record_sum(out);
}

/* Unpacks the block up to the first damaged byte that zstd detects. Bytes before that byte may be damaged, too: only
 * the checksum of each record shows whether the record is intact. */
static size_t unpack(const unsigned char *packed, size_t length, void *raw, size_t raw_length)
{
	ZSTD_DCtx *unpacker = ZSTD_createDCtx();
	ZSTD_inBuffer in = {packed, 0, 0};
	ZSTD_outBuffer out = {raw, raw_length, 0};
	size_t left = 5;

	if (unpacker == NULL)
		die_no_memory();
	ZSTD_DCtx_setParameter(unpacker, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	while (left != 0 && !ZSTD_isError(left) && out.pos < out.size) {
		size_t before = in.pos + out.pos;

		/* Each call of zstd gets at most one zstd block, because a call that fails returns none of its bytes.
		 * */
		in.size = left < length - in.pos ? in.pos + left : length;
		left = ZSTD_decompressStream(unpacker, &out, &in);
		if (in.pos + out.pos == before)
			break;
	}
	ZSTD_freeDCtx(unpacker);
	return out.pos;
}

/* --- The file ---------------------------------------------------------------------------------------------------- */

struct archive {
	const unsigned char *bytes;
	size_t length, at;
	archive_v2_refused *refused;
	void *context;
	uint32_t blocks;
	uint64_t records, unpacked;
	bool damaged;
};

/* Returns the content of the skippable frame at the current position if the content has `length` bytes and begins with
 * `mark`; otherwise returns NULL. */
static const unsigned char *message_at(const struct archive *a, const char *mark, size_t length)
{
	if (a->length - a->at < FRAME + length)
		return NULL;
	const unsigned char *content = a->bytes + a->at + FRAME;
	struct reader frame = {.at = a->bytes + a->at, .left = FRAME}, sum = {.at = content + length - 8, .left = 8};

	if (record_get_u32(&frame) != skippable || record_get_u32(&frame) != length ||
	    memcmp(content, mark, strlen(mark)) != 0 || record_get_u64(&sum) != XXH3_64bits(content, length - 8))
		return NULL;
	return content;
}

static void refuse(struct archive *a, int64_t count, const char *sentence)
{
	a->damaged = true;
	a->refused(sentence, count, a->context);
}

/* Reads the records of an unpacked block and passes them to `take`. */
static int read_records(struct archive *a, uint32_t records, struct packed_bytes raw, archive_v2_take *take,
			struct err *err)
{
	struct arena arena = {0};
	struct block b = {.arena = &arena};
	struct verdict_line *found = arena_array(&arena, records, sizeof *found);
	int count = 0, read = find_parts(&b, raw) ? 0 : -1;
	struct err sentence;

	for (uint32_t i = 0; i < records && read >= 0; i++) {
		read = get_record(&b, &found[count]);
		count += read > 0;
	}
	a->records += (uint64_t)count;
	a->unpacked += b.whole;
	if (count < (int)records) {
		err_set(&sentence, "block %u: %u of its %u records cannot be read", a->blocks, records - (uint32_t)count,
			records);
		refuse(a, records - (uint32_t)count, sentence.text);
	}
	int answer = take(found, count, a->context, err);

	arena_free(&arena);
	return answer;
}

static int read_block(struct archive *a, const unsigned char *head, archive_v2_take *take, struct err *err)
{
	struct reader from = {.at = head + strlen(block_mark), .left = BLOCK_HEAD - strlen(block_mark)};
	uint32_t records = record_get_u32(&from), raw_length = record_get_u32(&from), packed = record_get_u32(&from);
	uint64_t raw_sum = record_get_u64(&from);
	size_t left = a->length - a->at - FRAME - BLOCK_HEAD, there = packed < left ? packed : left;
	struct err sentence;

	a->blocks++;
	a->at = a->length - left + there;
	if (raw_length > BLOCK_MAX || records == 0 || records > raw_length / RECORD_LEAST) {
		err_set(&sentence, "block %u is damaged: its header claims %u records in %u bytes", a->blocks,
			records, raw_length);
		refuse(a, 1, sentence.text);
		return 0;
	}
	unsigned char *raw = NULL;
	struct buf room = {0};

	buf_reserve(&room, (size_t)raw_length + 1);
	raw = (unsigned char *)room.data;
	size_t length = unpack(head + BLOCK_HEAD, there, raw, raw_length);

	a->unpacked += length;
	if (length != raw_length || XXH3_64bits(raw, length) != raw_sum) {
		err_set(&sentence, "block %u is damaged", a->blocks);
		refuse(a, 0, sentence.text);
	}
	int answer = read_records(a, records, (struct packed_bytes){raw, raw + length, false}, take, err);

	buf_free(&room);
	return answer;
}

static void read_tail(struct archive *a, const unsigned char *tail)
{
	struct reader from = {.at = tail + strlen(tail_mark), .left = TAIL - strlen(tail_mark)};
	uint32_t blocks = record_get_u32(&from);
	uint64_t records = record_get_u64(&from), all = record_get_u64(&from);

	if (!a->damaged && (blocks != a->blocks || records != a->records || all != XXH3_64bits(a->bytes, a->at)))
		refuse(a, 0, "the checksum of the whole file is wrong, but the checksum of every record that was read "
			     "is correct");
	if (a->at + FRAME + TAIL != a->length)
		refuse(a, 0, "bytes follow the end of the exported verdicts");
}

bool archive_v2_is(const void *bytes, size_t length)
{
	struct reader from = {.at = bytes, .left = length};

	return record_get_u32(&from) == skippable;
}

static int check_head(const unsigned char *head, struct err *err)
{
	struct reader from = {.at = head != NULL ? head + strlen(head_mark) : NULL, .left = head != NULL ? 4 : 0};
	uint32_t version = record_get_u32(&from);

	if (head == NULL)
		return err_set(err, "it is not a file that `reftest cache export` wrote, or its first bytes are "
				    "damaged");
	if (version != VERSION)
		return err_set(err, "it has format %u, but this program reads only formats 2 and 3: import the file "
				    "and export it again with the previous version of reftest", version);
	return 0;
}

int archive_v2_read(const void *bytes, size_t length, archive_v2_take *take, archive_v2_refused *refused, void *context,
		    struct err *err)
{
	struct archive a = {.bytes = bytes, .length = length, .refused = refused, .context = context};
	const unsigned char *head;
	int answer = check_head(message_at(&a, head_mark, HEAD), err);

	for (a.at = FRAME + HEAD; answer == 0 && (head = message_at(&a, block_mark, BLOCK_HEAD)) != NULL;) {
		answer = read_block(&a, head, take, err);
		if (a.unpacked > UNPACKED_FREE && a.unpacked / RATIO_MAX > a.length) {
			refuse(&a, 1, "it unpacks to more bytes than a file of verdicts can have; the rest is not "
				      "read");
			return answer;
		}
	}
	if (answer == 0 && (head = message_at(&a, tail_mark, TAIL)) != NULL)
		read_tail(&a, head);
	else if (answer == 0)
		refuse(&a, 0, "it is damaged or was cut short, so the number of missing verdicts is unknown");
	return answer;
}
