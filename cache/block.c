/* block - reading: a piece is understood at its first use, as a field or a skeleton, and what it says is remembered for
 * the records that come. Writing is in cache/block_write.c. */
#include "cache/block.h"

#include <string.h>

#include "cache/fingerprint.h"
#include "cache/pieces.h"
#include "cache/record.h"
#include "dataset/packed.h"

struct found_piece {
	const unsigned char *octets;
	size_t length;
	const char *name; /* NULL: not looked at as a name yet */
	bool fit;	  /* it may name a definition or case */
	struct known_field field;
	struct digest witness; /* of the verdicts with this skeleton, if `judged` */
	bool judged;
};

struct block_reader {
	struct arena *arena;
	struct found_piece *pieces;
	uint32_t count, fresh;
	struct octets records, marks, figures;
	uint32_t before[PLACES];
	int64_t time;
	size_t whole;
	struct buf body, text;
	struct digest *digests[2];   /* FIELDS_MAX of each */
	struct found_piece **fields; /* of the present record */
};

static bool find_pieces(struct block_reader *r, struct octets *from)
{
	uint64_t count = packed_get(from);

	if (from->bad || count > (uint64_t)(from->end - from->at))
		return false;
	r->pieces = arena_array(r->arena, count, sizeof *r->pieces);
	r->count = (uint32_t)count;
	for (uint32_t i = 0; i < r->count; i++) {
		r->pieces[i].length = packed_get(from);
		r->pieces[i].octets = packed_take(from, r->pieces[i].length);
	}
	return !from->bad;
}

/* The runs behind the pieces. Of a block that was cut short, as much of each as there is. */
static bool find_runs(struct block_reader *r, struct octets *from)
{
	uint64_t records = packed_get(from), marks = packed_get(from);

	r->records.at = packed_take(from, records);
	r->records.end = from->at;
	r->marks.at = packed_take(from, marks);
	r->marks.end = from->at;
	r->figures = *from;
	return !from->bad;
}

static struct found_piece *get_ref(struct block_reader *r, int place)
{
	uint64_t ref = packed_get(&r->records);
	uint32_t *before = place < PLACES ? &r->before[place] : NULL;
	uint64_t piece = ref == 0 ? (before != NULL ? *before : no_piece) : ref == 1 ? r->fresh : ref - 2;

	if (r->records.bad || piece >= r->count) {
		r->records.bad = true;
		return NULL;
	}
	r->fresh += piece == r->fresh;
	if (before != NULL)
		*before = (uint32_t)piece;
	return &r->pieces[piece];
}

static const char *name_of(struct block_reader *r, struct found_piece *piece)
{
	if (piece == NULL)
		return "";
	if (piece->name == NULL) {
		bool whole = piece->length <= PORTABLE_NAME_MAX &&
			     (piece->length == 0 || memchr(piece->octets, '\0', piece->length) == NULL);

		piece->name = whole ? arena_copy(r->arena, piece->octets, piece->length) : "";
		piece->fit = whole && portable_name_is_fit(piece->name);
	}
	return piece->name;
}

static void get_digest(struct octets *from, struct digest *out)
{
	const unsigned char *at = packed_take(from, DIGEST_BYTES);

	if (at != NULL)
		memcpy(out->bytes, at, DIGEST_BYTES);
}

static void get_head(struct block_reader *r, unsigned what, struct portable *out)
{
	if ((what & HAS_SIGNATURE) != 0) {
		uint64_t kind = packed_get(&r->records);

		out->signature_kind = (enum signature_kind)(uint32_t)kind;
		out->signature_length = packed_get(&r->records);
		out->signature = packed_take(&r->records, out->signature_length);
		if (kind > UINT32_MAX || out->signature_length > PORTABLE_SIGNATURE_MAX)
			r->records.bad = true;
		else if (!r->records.bad)
			out->signature = arena_copy(r->arena, out->signature, out->signature_length);
	}
	if ((what & HAS_SUBJECT) != 0)
		get_digest(&r->records, &out->subject);
	if ((what & HAS_WITNESS) != 0)
		get_digest(&r->records, &out->witness);
	if ((what & HAS_MADE) != 0)
		out->made = packed_unfold(packed_get(&r->records));
}

static int64_t get_time(struct block_reader *r)
{
	return r->time = (int64_t)((uint64_t)r->time + (uint64_t)packed_unfold(packed_get(&r->records)));
}

/* The verdict, put together; its skeleton, or NULL for a text. */
static struct found_piece *get_verdict(struct block_reader *r, unsigned what, struct portable *out)
{
	struct found_piece *skeleton = NULL;
	struct packed_parts parts = {0};

	if ((what & HAS_TEXT) == 0 && (skeleton = get_ref(r, PLACE_SKELETON)) == NULL)
		return NULL;
	parts.time = get_time(r);
	if ((what & HAS_MADE) == 0)
		out->made = parts.time;
	if (skeleton == NULL) {
		out->length = packed_get(&r->records);
		out->text = (const char *)packed_take(&r->figures, out->length);
		return NULL;
	}
	parts.skeleton = skeleton->octets;
	parts.skeleton_length = skeleton->length;
	parts.marks_length = packed_get(&r->records);
	parts.figures_length = packed_get(&r->records);
	parts.marks = packed_take(&r->marks, parts.marks_length);
	parts.figures = packed_take(&r->figures, parts.figures_length);
	if (parts.marks == NULL || parts.figures == NULL)
		return skeleton;
	buf_clear(&r->text);
	packed_join(&parts, &r->text);
	out->text = r->text.data;
	out->length = r->text.length;
	return skeleton;
}

static bool get_names(struct block_reader *r, struct portable *out)
{
	uint64_t count = packed_get(&r->records);
	bool fit = true;

	if (count > PORTABLE_NAMES_MAX || count > (uint64_t)(r->records.end - r->records.at)) {
		r->records.bad = true;
		return false;
	}
	struct portable_name *names = arena_array(r->arena, count, sizeof *names);

	out->names = names;
	out->name_count = (int)count;
	for (uint64_t i = 0; i < count; i++) {
		int place = i == 0 ? PLACE_NAME : PLACES;
		struct found_piece *definition = get_ref(r, place),
				   *id = get_ref(r, place == PLACES ? PLACES : place + 1);

		names[i].definition = name_of(r, definition);
		names[i].case_id = name_of(r, id);
		fit = fit && definition != NULL && id != NULL && definition->fit && id->fit;
	}
	return fit;
}

/* The list of fields, put together, and what it digests to. false: they are none, or in no order. */
static bool get_fields(struct block_reader *r, struct portable *out, struct digest sums[2])
{
	uint64_t count = packed_get(&r->records);
	struct sums found = {.of = {r->digests[0], r->digests[1]}};
	struct buf head = {0};
	bool right = true;

	if (count > FIELDS_MAX) {
		r->records.bad = true;
		return false;
	}
	fields_write_head((int)count, &head);
	out->fields_length = head.length;
	for (uint64_t i = 0; i < count; i++) {
		struct found_piece *piece = r->fields[i] = get_ref(r, PLACE_FIELDS + (int)i);

		if (piece == NULL)
			break;
		out->fields_length += piece->length;
		if (piece->field.tag == NULL && !piece->field.bad)
			piece->field = known_field_of(piece->octets, piece->length, r->arena);
		right = right && !piece->field.bad &&
			(i == 0 || known_field_order(&r->fields[i - 1]->field, &piece->field) <= 0);
		if (right)
			sums_add(&found, &piece->field);
	}
	if (!r->records.bad && out->fields_length <= PORTABLE_MAX) {
		char *list = arena_alloc(r->arena, out->fields_length + 1), *to = list;

		memcpy(to, head.data, head.length);
		to += head.length;
		for (uint64_t i = 0; i < count; to += r->fields[i++]->length)
			memcpy(to, r->fields[i]->octets, r->fields[i]->length);
		out->fields = list;
	}
	r->records.bad = r->records.bad || out->fields_length > PORTABLE_MAX;
	buf_free(&head);
	for (int i = 0; i < 2 && right; i++)
		sums[i] = fields_digest_sorted(found.of[i], found.count[i]);
	return right;
}

/* Is the verdict one, and by which witness? That follows from the skeleton alone. */
static bool judge(struct found_piece *skeleton, const struct portable *record)
{
	struct arena arena = {0};
	const struct verdict *v = verdict_unpack(record->text, record->length, &arena);

	if (v != NULL && !skeleton->judged) {
		skeleton->witness = verdict_witness(v);
		skeleton->judged = true;
	}
	bool right = v != NULL && v->time == record->made;

	arena_free(&arena);
	return right;
}

/* The next record, with its text not yet in the arena. `agrees` as the header has it. false: it does not read. */
static bool get_record(struct block_reader *r, struct portable *out)
{
	unsigned what = (unsigned)packed_get(&r->records);
	struct digest sums[2] = {{{0}}};

	*out = (struct portable){0};
	if (what > HAS_ALL)
		r->records.bad = true;
	get_head(r, what, out);
	struct found_piece *skeleton = get_verdict(r, what, out);
	bool fit = get_names(r, out), fields = (what & HAS_FIELDS) != 0;
	bool right = fields && get_fields(r, out, sums);

	if (r->records.bad || r->marks.bad || r->figures.bad)
		return false;
	bool verdict = skeleton != NULL && judge(skeleton, out);

	if ((what & HAS_SUBJECT) == 0)
		out->subject = sums[0];
	if ((what & HAS_WITNESS) == 0 && skeleton != NULL)
		out->witness = skeleton->witness;
	out->agrees =
	    verdict && fit && digest_equal(&skeleton->witness, &out->witness) &&
	    (!fields || (right && digest_equal(&sums[0], &out->subject) && digest_equal(&sums[1], &out->witness)));
	return true;
}

/* Its checksum: over all that it refers to. */
static bool sum_is_right(struct block_reader *r, const struct portable *record)
{
	const unsigned char *at = packed_take(&r->figures, CHECKSUM);
	struct reader sum = {.at = at, .left = at != NULL ? CHECKSUM : 0};

	return at != NULL && record_get_u64(&sum) == record_checksum(record, &r->body);
}

static int read_records(struct block_reader *r, uint32_t count, struct portable *records, struct err *why)
{
	int taken = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct portable *record = &records[taken];

		if (!get_record(r, record)) {
			err_set(why, "the block is damaged, or ends before they do");
			break;
		}
		if (record->length > PORTABLE_MAX || (r->whole += record_whole(record)) > BLOCK_WHOLE_MAX) {
			err_set(why, "they are more than one block holds");
			break;
		}
		if (!sum_is_right(r, record)) {
			err_set(why, "the checksum is wrong");
			continue;
		}
		if (record->length > 0 && !verdict_is_packed(record->text, record->length) &&
		    memchr(record->text, '\0', record->length) != NULL) {
			err_set(why, "it is no text");
			continue;
		}
		record->text = arena_copy(r->arena, record->text, record->length);
		taken++;
	}
	if (taken == (int)count &&
	    (r->records.at != r->records.end || r->marks.at != r->marks.end || r->figures.at != r->figures.end))
		err_set(why, "something follows the last of them");
	return taken;
}

int block_read(const void *raw, size_t length, uint32_t count, struct arena *arena, struct portable *records,
	       size_t *whole, struct err *why)
{
	struct octets from = {raw, (const unsigned char *)raw + length, false};
	struct block_reader r = {.arena = arena};
	struct arena own = {0};
	int taken = 0;

	for (int i = 0; i < PLACES; i++)
		r.before[i] = no_piece;
	r.digests[0] = arena_array(&own, FIELDS_MAX, sizeof *r.digests[0]);
	r.digests[1] = arena_array(&own, FIELDS_MAX, sizeof *r.digests[1]);
	r.fields = arena_array(&own, FIELDS_MAX, sizeof(struct found_piece *));
	err_set(why, "%s", "");
	if (find_pieces(&r, &from) && find_runs(&r, &from))
		taken = read_records(&r, count, records, why);
	else
		err_set(why, "the block is damaged, or ends before they do");
	*whole = r.whole;
	buf_free(&r.body);
	buf_free(&r.text);
	arena_free(&own);
	return taken;
}
