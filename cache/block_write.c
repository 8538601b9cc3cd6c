/* Writing a block: each part of a record is looked up among the pieces by its octets. */
#include "cache/block.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cache/fingerprint.h"
#include "cache/pieces.h"
#include "cache/record.h"
#include "dataset/packed.h"

static void *must(void *memory)
{
	if (memory == NULL)
		die_no_memory();
	return memory;
}

struct piece {
	size_t at, length;
	uint64_t hash;
	struct known_field field; /* if it was one */
	struct digest witness;	  /* if it was a skeleton and `judged` */
	bool judged;
};

struct block_writer {
	struct arena arena;
	struct buf octets; /* of all pieces */
	struct piece *pieces;
	uint32_t count, room, fresh; /* fresh: the first that nobody referred to */
	uint32_t *slots;	     /* number of a piece + 1, by its hash; 2 * room of them */
	struct buf records, marks, figures;
	uint32_t before[PLACES];
	int64_t time;
	uint32_t record_count;
	size_t whole;
	struct digest digests[2][FIELDS_MAX];
	uint32_t fields[FIELDS_MAX]; /* of the record that is being written */
	struct buf list, body, older;
};

static void forget(struct block_writer *w)
{
	arena_free(&w->arena);
	buf_clear(&w->octets);
	buf_clear(&w->records);
	buf_clear(&w->marks);
	buf_clear(&w->figures);
	memset(w->slots, 0, 2 * (size_t)w->room * sizeof *w->slots);
	for (int i = 0; i < PLACES; i++)
		w->before[i] = no_piece;
	w->count = w->fresh = w->record_count = 0;
	w->time = 0;
	w->whole = 0;
}

struct block_writer *block_new(void)
{
	struct block_writer *w = must(calloc(1, sizeof *w));

	w->room = 1024;
	w->pieces = must(malloc(w->room * sizeof *w->pieces));
	w->slots = must(calloc(2 * (size_t)w->room, sizeof *w->slots));
	forget(w);
	return w;
}

void block_free(struct block_writer *w)
{
	struct buf *all[] = {&w->octets, &w->records, &w->marks, &w->figures, &w->list, &w->body, &w->older};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		buf_free(all[i]);
	arena_free(&w->arena);
	free(w->pieces);
	free(w->slots);
	free(w);
}

static uint32_t *slot_of(const struct block_writer *w, uint64_t hash, const void *octets, size_t length)
{
	size_t mask = 2 * (size_t)w->room - 1, at = (size_t)hash & mask;

	for (; w->slots[at] != 0; at = (at + 1) & mask) {
		const struct piece *piece = &w->pieces[w->slots[at] - 1];

		if (octets != NULL && piece->hash == hash && piece->length == length &&
		    memcmp(w->octets.data + piece->at, octets, length) == 0)
			break;
	}
	return &w->slots[at];
}

static void grow(struct block_writer *w)
{
	w->room *= 2;
	w->pieces = must(realloc(w->pieces, w->room * sizeof *w->pieces));
	free(w->slots);
	w->slots = must(calloc(2 * (size_t)w->room, sizeof *w->slots));
	for (uint32_t i = 0; i < w->count; i++)
		*slot_of(w, w->pieces[i].hash, NULL, 0) = i + 1;
}

/* The number of the piece with these octets, which is made if there is none. */
static uint32_t piece_of(struct block_writer *w, const void *octets, size_t length)
{
	uint64_t hash = XXH3_64bits(octets, length);

	if (w->count == w->room)
		grow(w);
	uint32_t *slot = slot_of(w, hash, octets, length);

	if (*slot == 0) {
		w->pieces[w->count] = (struct piece){.at = w->octets.length, .length = length, .hash = hash};
		buf_add(&w->octets, octets, length);
		*slot = ++w->count;
	}
	return *slot - 1;
}

static void put_ref(struct block_writer *w, int place, uint32_t piece)
{
	uint32_t *before = place < PLACES ? &w->before[place] : NULL;

	if (before != NULL && *before == piece) {
		packed_put(&w->records, 0);
	} else if (piece == w->fresh) {
		packed_put(&w->records, 1);
	} else {
		packed_put(&w->records, 2 + (uint64_t)piece);
	}
	w->fresh += piece == w->fresh;
	if (before != NULL)
		*before = piece;
}

/* The octets of the field that stands there; 0: none. */
static size_t field_octets(const unsigned char *at, const unsigned char *end)
{
	struct octets from = {at, end, false};
	uint64_t how = packed_get(&from);

	packed_take(&from, packed_get(&from));
	if (how != 0)
		packed_take(&from, packed_get(&from));
	if (how < 2)
		packed_take(&from, DIGEST_BYTES);
	return from.bad ? 0 : (size_t)(from.at - at);
}

/* Each field of a list of the present form as a piece in w->fields, sorted. How many; -1: it is none. */
static int look_up_fields(struct block_writer *w, const void *bytes, size_t length)
{
	struct octets from = {bytes, (const unsigned char *)bytes + length, false};
	struct reader marker = {.at = bytes, .left = length};
	struct reader own = {0};
	struct buf head = {0};

	fields_write_head(0, &head);
	own = (struct reader){.at = (unsigned char *)head.data, .left = head.length};
	bool present = record_get_u32(&marker) == record_get_u32(&own) && !marker.bad;

	buf_free(&head);
	if (!present)
		return -1;
	packed_take(&from, 4);
	uint64_t count = packed_get(&from);

	if (from.bad || count > FIELDS_MAX)
		return -1;
	for (uint64_t i = 0; i < count; i++) {
		size_t size = field_octets(from.at, from.end);

		if (size == 0)
			return -1;
		uint32_t number = piece_of(w, from.at, size);
		struct piece *piece = &w->pieces[number];

		from.at += size;
		if (piece->field.tag == NULL && !piece->field.bad)
			piece->field = known_field_of(from.at - size, size, &w->arena);
		if (piece->field.bad)
			return -1;
		uint64_t to = i;

		for (; to > 0 && known_field_order(&w->pieces[w->fields[to - 1]].field, &piece->field) > 0; to--)
			w->fields[to] = w->fields[to - 1];
		w->fields[to] = number;
	}
	return from.at == from.end ? (int)count : -1;
}

/* The fields of a record, and in w->list their octets as a reader will have them. How many; -1: what cannot be read
 * stays behind, for fields explain a verdict and do not make it. */
static int take_fields(struct block_writer *w, struct portable *record)
{
	int count = look_up_fields(w, record->fields, record->fields_length);
	struct arena arena = {0};
	struct fields fields;

	if (count < 0 && fields_read(record->fields, record->fields_length, &arena, &fields) == 0) {
		buf_clear(&w->older);
		fields_write(&fields, &w->older);
		count = look_up_fields(w, w->older.data, w->older.length);
	}
	arena_free(&arena);
	buf_clear(&w->list);
	if (count >= 0)
		fields_write_head(count, &w->list);
	for (int i = 0; i < count; i++) {
		const struct piece *piece = &w->pieces[w->fields[i]];

		buf_add(&w->list, w->octets.data + piece->at, piece->length);
	}
	record->fields = w->list.data;
	record->fields_length = w->list.length;
	return count;
}

/* What must be said of a record because nothing else says it. */
static unsigned what_of(struct block_writer *w, const struct portable *record, const struct packed_parts *parts,
			uint32_t skeleton, int fields)
{
	struct sums sums = {.of = {w->digests[0], w->digests[1]}};
	unsigned what = parts == NULL ? HAS_TEXT : 0;

	for (int i = 0; i < fields; i++)
		sums_add(&sums, &w->pieces[w->fields[i]].field);
	struct digest subject = fields_digest_sorted(sums.of[0], sums.count[0]);

	if (fields < 0 || !digest_equal(&subject, &record->subject))
		what |= HAS_SUBJECT;
	if (parts == NULL || !w->pieces[skeleton].judged ||
	    !digest_equal(&w->pieces[skeleton].witness, &record->witness))
		what |= HAS_WITNESS;
	if (parts != NULL && parts->time != record->made)
		what |= HAS_MADE;
	if (record->signature_kind != SIGNATURE_NONE || record->signature_length > 0)
		what |= HAS_SIGNATURE;
	return what | (fields >= 0 ? HAS_FIELDS : 0);
}

static void judge_skeleton(struct block_writer *w, uint32_t skeleton, const struct portable *record)
{
	struct arena arena = {0};

	if (w->pieces[skeleton].judged)
		return;
	const struct verdict *v = verdict_unpack(record->text, record->length, &arena);

	if (v != NULL)
		w->pieces[skeleton].witness = verdict_witness(v);
	w->pieces[skeleton].judged = v != NULL;
	arena_free(&arena);
}

static void put_time(struct block_writer *w, int64_t time)
{
	packed_put(&w->records, packed_fold((int64_t)((uint64_t)time - (uint64_t)w->time)));
	w->time = time;
}

static void put_head(struct block_writer *w, unsigned what, const struct portable *record)
{
	packed_put(&w->records, what);
	if ((what & HAS_SIGNATURE) != 0) {
		packed_put(&w->records, (uint64_t)record->signature_kind);
		packed_put(&w->records, record->signature_length);
		buf_add(&w->records, record->signature, record->signature_length);
	}
	if ((what & HAS_SUBJECT) != 0)
		record_put_digest(&w->records, &record->subject);
	if ((what & HAS_WITNESS) != 0)
		record_put_digest(&w->records, &record->witness);
	if ((what & HAS_MADE) != 0)
		packed_put(&w->records, packed_fold(record->made));
}

static void put_verdict(struct block_writer *w, const struct portable *record, const struct packed_parts *parts,
			uint32_t skeleton)
{
	if (parts == NULL) {
		put_time(w, record->made);
		packed_put(&w->records, record->length);
		buf_add(&w->figures, record->text, record->length);
		return;
	}
	put_ref(w, PLACE_SKELETON, skeleton);
	put_time(w, parts->time);
	packed_put(&w->records, parts->marks_length);
	packed_put(&w->records, parts->figures_length);
	buf_add(&w->marks, parts->marks, parts->marks_length);
	buf_add(&w->figures, parts->figures, parts->figures_length);
}

static void put_names(struct block_writer *w, const struct portable *record)
{
	packed_put(&w->records, (uint64_t)record->name_count);
	for (int i = 0; i < record->name_count; i++) {
		const struct portable_name *name = &record->names[i];
		int place = i == 0 ? PLACE_NAME : PLACES;

		put_ref(w, place, piece_of(w, name->definition, strlen(name->definition)));
		put_ref(w, place == PLACES ? PLACES : place + 1, piece_of(w, name->case_id, strlen(name->case_id)));
	}
}

int block_add(struct block_writer *w, const struct portable *given, struct err *err)
{
	struct portable record = *given;
	struct packed_parts parts, *packed = packed_split(given->text, given->length, &parts) ? &parts : NULL;
	uint32_t skeleton = no_piece;
	int fields = -1;

	for (int i = 0; i < given->name_count; i++)
		if (strlen(given->names[i].definition) > PORTABLE_NAME_MAX ||
		    strlen(given->names[i].case_id) > PORTABLE_NAME_MAX)
			return err_set(err, "a definition's or case's name is longer than %d bytes", PORTABLE_NAME_MAX);
	if (given->name_count > PORTABLE_NAMES_MAX || given->signature_length > PORTABLE_SIGNATURE_MAX ||
	    record_whole(given) > PORTABLE_MAX)
		return err_set(err, "a verdict of %zu bytes is more than travels (%d)", record_whole(given),
			       PORTABLE_MAX);
	if (packed != NULL) { /* pieces are made in the order in which they are referred to */
		skeleton = piece_of(w, parts.skeleton, parts.skeleton_length);
		judge_skeleton(w, skeleton, &record);
	}
	for (int i = 0; i < given->name_count; i++) {
		piece_of(w, given->names[i].definition, strlen(given->names[i].definition));
		piece_of(w, given->names[i].case_id, strlen(given->names[i].case_id));
	}
	if (given->fields_length > 0)
		fields = take_fields(w, &record);
	unsigned what = what_of(w, &record, packed, skeleton, fields);

	put_head(w, what, &record);
	put_verdict(w, &record, packed, skeleton);
	put_names(w, &record);
	if (fields >= 0)
		packed_put(&w->records, (uint64_t)fields);
	for (int i = 0; i < fields; i++)
		put_ref(w, PLACE_FIELDS + i, w->fields[i]);
	record_put_u64(&w->figures, record_checksum(&record, &w->body));
	w->whole += record_whole(&record);
	w->record_count++;
	return 0;
}

uint32_t block_records(const struct block_writer *w)
{
	return w->record_count;
}

size_t block_octets(const struct block_writer *w)
{
	return w->octets.length + 2 * (size_t)w->count + w->records.length + w->marks.length + w->figures.length;
}

size_t block_whole(const struct block_writer *w)
{
	return w->whole;
}

void block_end(struct block_writer *w, struct buf *out)
{
	packed_put(out, w->count);
	for (uint32_t i = 0; i < w->count; i++) {
		packed_put(out, w->pieces[i].length);
		buf_add(out, w->octets.data + w->pieces[i].at, w->pieces[i].length);
	}
	packed_put(out, w->records.length);
	packed_put(out, w->marks.length);
	buf_add(out, w->records.data, w->records.length);
	buf_add(out, w->marks.data, w->marks.length);
	buf_add(out, w->figures.data, w->figures.length);
	forget(w);
}
