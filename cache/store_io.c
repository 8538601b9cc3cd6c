/* store_io - visits all verdicts as records (store_each_verdict), and stores records (store_merge), for export and
 * import. A record contains everything about a verdict: its row of the table `verdicts`, and the rows of `latest` that
 * name it.
 *
 * Export: the rows of `latest` are read first, and sorted by the keys of the verdicts that they name. The table
 * `verdicts` is in the order of these keys, so one pass over both lists finds the cases of each verdict. The verdicts
 * are then visited in the order of `latest`, definition by definition. In this order, neighbouring lines of the
 * exported file are similar, and compress well. All rows are read in one read transaction and are not copied from
 * LMDB's mapping.
 *
 * Import: records are sorted by their keys, because LMDB fills its pages completely if rows are appended in order. */
#include "cache/store_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cache/checksummed_record.h"
#include "cache/driver_history.h"
#include "cache/lmdb_rows.h"

static void *must(void *memory)
{
	if (memory == NULL)
		die_no_memory();
	return memory;
}

/* --- Out --------------------------------------------------------------------------------------------------------- */

/* A case in a row of `latest`. */
struct seen_case {
	const unsigned char *verdict; /* key of the verdict, PAIR bytes (subject and witness) */
	uint32_t place;		      /* position of the row in the table `latest` */
	uint32_t definition_length, case_length;
	const char *definition, *case_id;
	const unsigned char *fields;
	size_t fields_length;
};

struct item {
	const unsigned char *key; /* key of the verdict, PAIR bytes */
	const char *text;
	size_t length;
	size_t first, count; /* the cases of the verdict: index of the first one in `cases`, and their number */
	uint32_t place;	     /* position of the verdict's first case in `latest`; UINT32_MAX: no case */
};

struct out {
	struct env *env;
	MDB_txn *txn;
	struct buf cases, items; /* arrays of struct seen_case and of struct item */
	int64_t damaged;
};

static int case_order(const void *a, const void *b)
{
	const struct seen_case *one = a, *two = b;
	int order = memcmp(one->verdict, two->verdict, PAIR);

	return order != 0 ? order : one->place < two->place ? -1 : one->place > two->place;
}

static int item_order(const void *a, const void *b)
{
	const struct item *one = a, *two = b;

	if (one->place != two->place)
		return one->place < two->place ? -1 : 1;
	return memcmp(one->key, two->key, PAIR);
}

typedef void row_visit(struct out *out, const MDB_val *key, struct reader body);

/* Visits every row of the table whose checksum is right. Returns 0 or LMDB's error. */
static int each_row(struct out *out, enum table table, enum record_kind kind, row_visit *visit)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	struct reader body;
	int rc = mdb_cursor_open(out->txn, out->env->table[table], &cursor);

	if (rc != 0)
		return rc;
	while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
		if (key.mv_size == PAIR && record_read(kind, key.mv_data, PAIR, value.mv_data, value.mv_size, &body))
			visit(out, &key, body);
		else
			out->damaged++;
	}
	mdb_cursor_close(cursor);
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static void visit_case(struct out *out, const MDB_val *key, struct reader body)
{
	struct seen_case found = {.verdict = body.at, .place = (uint32_t)(out->cases.length / sizeof found)};
	size_t length;

	(void)key;
	record_get_digest(&body);
	record_get_digest(&body);
	found.definition = record_get_bytes(&body, &length);
	found.definition_length = (uint32_t)length;
	found.case_id = record_get_bytes(&body, &length);
	found.case_length = (uint32_t)length;
	found.fields = body.at;
	found.fields_length = body.left;
	if (!body.bad)
		buf_add(&out->cases, &found, sizeof found);
}

static void visit_verdict(struct out *out, const MDB_val *key, struct reader body)
{
	struct item item = {.key = key->mv_data, .place = UINT32_MAX};

	record_get_u64(&body);
	record_get_u32(&body);
	item.text = (const char *)body.at;
	item.length = body.left;
	if (!body.bad)
		buf_add(&out->items, &item, sizeof item);
}

/* Finds the cases of each verdict. One pass is enough, because the cases and the verdicts are sorted by the key of the
 * verdict. */
static void join(struct out *out)
{
	struct seen_case *cases = (struct seen_case *)(void *)out->cases.data;
	struct item *items = (struct item *)(void *)out->items.data;
	size_t case_count = out->cases.length / sizeof *cases, at = 0;

	for (size_t i = 0; i < out->items.length / sizeof *items; i++) {
		int order = -1;

		while (at < case_count && (order = memcmp(cases[at].verdict, items[i].key, PAIR)) < 0)
			at++;
		items[i].first = at;
		for (; at < case_count && memcmp(cases[at].verdict, items[i].key, PAIR) == 0; at++)
			items[i].count++;
		if (items[i].count > 0)
			items[i].place = cases[items[i].first].place;
	}
}

/* Passes the item to `visit` as a record. Copies the names of the cases, because they have no final NUL in LMDB's
 * mapping. */
static void visit_item(const struct out *out, const struct item *item, int64_t left, store_verdict_visit *visit,
		       void *context)
{
	const struct seen_case *cases = (const struct seen_case *)(const void *)out->cases.data + item->first;
	int count = item->count < VERDICT_LINE_NAMES_MAX ? (int)item->count : VERDICT_LINE_NAMES_MAX;
	struct arena arena = {0};
	struct case_name few[4], *names = count <= 4 ? few : arena_array(&arena, (size_t)count, sizeof *names);
	struct verdict_line record = {.text = item->text,
				  .length = item->length,
				  .names = names,
				  .name_count = count,
				  .made = verdict_time(item->text, item->length)};

	memcpy(record.subject.bytes, item->key, DIGEST_BYTES);
	memcpy(record.witness.bytes, item->key + DIGEST_BYTES, DIGEST_BYTES);
	for (int i = 0; i < count; i++) {
		names[i].definition = arena_copy(&arena, cases[i].definition, cases[i].definition_length);
		names[i].case_id = arena_copy(&arena, cases[i].case_id, cases[i].case_length);
	}
	if (count > 0) {
		record.fields = (const char *)cases[0].fields;
		record.fields_length = cases[0].fields_length;
	}
	visit(&record, left, context);
	arena_free(&arena);
}

static void sort(struct buf *list, size_t size, int (*order)(const void *, const void *))
{
	if (list->length > 0)
		qsort(list->data, list->length / size, size, order);
}

int store_each_verdict(struct store *store, store_verdict_visit *visit, void *context, int64_t *damaged,
		       struct err *err)
{
	struct env *env = &store->env;
	struct out out = {.env = env};

	*damaged = 0;
	if (env_begin_read(env, &out.txn, err) != 0)
		return -1;
	int rc = each_row(&out, TABLE_LATEST, RECORD_LATEST, visit_case);

	if (rc == 0) {
		sort(&out.cases, sizeof(struct seen_case), case_order);
		rc = each_row(&out, TABLE_VERDICTS, RECORD_VERDICT, visit_verdict);
	}
	if (rc == 0) {
		join(&out);
		sort(&out.items, sizeof(struct item), item_order);
		const struct item *items = (const struct item *)(const void *)out.items.data;
		size_t count = out.items.length / sizeof *items;

		for (size_t i = 0; i < count; i++)
			visit_item(&out, &items[i], (int64_t)(count - i), visit, context);
	}
	mdb_txn_abort(out.txn);
	buf_free(&out.cases);
	buf_free(&out.items);
	*damaged = out.damaged;
	return rc == 0 ? 0 : env_fail(env, rc, "read", err);
}

/* --- In ---------------------------------------------------------------------------------------------------------- */

/* One of the cases that a record lists in its member `names`. */
struct named {
	struct pair key;
	const struct case_name *name;
	const struct verdict_line *record;
	uint32_t place; /* index in the list that has the cases of sorted[0], then those of sorted[1], … */
};

struct in {
	/* sorted by subject and then by time, so that of two verdicts on the same subject, the newer one has the larger
	 * `place` */
	const struct verdict_line **sorted;
	int count;
	struct named *named; /* the cases of all records, sorted by their keys */
	size_t named_count;
	int64_t now;
	/* counts of the current attempt (a transaction is repeated if the map has to grow) */
	struct store_merged merged;
};

static int record_order(const void *a, const void *b)
{
	const struct verdict_line *one = *(const struct verdict_line *const *)a, *two = *(const struct verdict_line *const *)b;
	int order = memcmp(one->subject.bytes, two->subject.bytes, DIGEST_BYTES);

	if (order == 0 && one->made != two->made)
		order = one->made < two->made ? -1 : 1;
	return order != 0 ? order : memcmp(one->witness.bytes, two->witness.bytes, DIGEST_BYTES);
}

static int named_order(const void *a, const void *b)
{
	const struct named *one = a, *two = b;
	int order = memcmp(one->key.bytes, two->key.bytes, PAIR);

	if (order == 0 && one->record->made != two->record->made)
		order = one->record->made > two->record->made ? -1 : 1;
	return order != 0 ? order : one->place < two->place ? -1 : one->place > two->place;
}

/* Returns `made`, or the present time if `made` is in the future. Without this limit, a verdict from a machine whose
 * clock is ahead would stay the newest verdict. */
static int64_t not_in_future(const struct in *in, int64_t made)
{
	return made < in->now ? made : in->now;
}

/* What is stored about the subject of a record. */
struct stored_on_subject {
	bool same;	/* a verdict with the same witness is stored, and its checksum is right */
	struct verdict_row row; /* this verdict */
	bool full;	/* the reference was fully contained for this verdict (see is_full) */
	int64_t made;	/* time of this verdict, or the present time if that is in the future */
	int64_t newest; /* time of the newest verdict on the subject; -1: there is none */
};

/* Returns whether the reference was fully contained for the verdict in `text`: its sandbox had no open gap
 * (workers/sandbox/containment.h). Also returns true if no reference ran. */
static bool is_full(const char *text, size_t length)
{
	struct arena arena = {0};
	const struct verdict *verdict = verdict_parse(text, length, &arena, NULL);
	bool full = verdict != NULL && verdict_is_contained(verdict);

	arena_free(&arena);
	return full;
}

static int look(MDB_cursor *cursor, const struct in *in, const struct verdict_line *record,
		struct stored_on_subject *out)
{
	struct pair wanted = pair_of(&record->subject, &record->witness);
	MDB_val key = {DIGEST_BYTES, (void *)record->subject.bytes}, value;
	struct verdict_row row;
	int rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);

	*out = (struct stored_on_subject){.newest = -1};
	for (; rc == 0; rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		if (key.mv_size != PAIR || memcmp(key.mv_data, wanted.bytes, DIGEST_BYTES) != 0)
			return 0;
		if (!verdict_row_read(&key, &value, &row))
			continue;
		int64_t made = not_in_future(in, verdict_time(row.text, row.length));

		if (made > out->newest)
			out->newest = made;
		if (memcmp(key.mv_data, wanted.bytes, PAIR) == 0) {
			out->same = true;
			out->row = row;
			out->full = is_full(row.text, row.length);
			out->made = made;
		}
	}
	return rc == MDB_NOTFOUND ? 0 : rc;
}

/* Returns true to keep the stored verdict with the same witness, and false to replace it by the verdict of the record.
 * If the reference was fully contained for only one of the two verdicts, this verdict is kept. Otherwise, the newer
 * verdict is kept. */
static bool stored_stays(const struct in *in, const struct stored_on_subject *stored, const struct verdict_line *record)
{
	if (!stored->same)
		return false;
	bool full = is_full(record->text, record->length);

	return full != stored->full ? stored->full : stored->made >= not_in_future(in, record->made);
}

/* Call this if the stored verdict is kept and the record's verdict is not stored. Adds the margin of the record's
 * verdict to the stored verdict (cache/driver_history.h). */
static int keep_margin(struct rows *rows, const struct verdict_row *stored, const struct verdict_line *record)
{
	struct buf joined = {0};
	int rc = 0;

	if (driver_history_join(stored->text, stored->length, record->text, record->length, &joined))
		rc = rows_put_verdict(rows, &record->subject, &record->witness, stored->transaction, stored->place,
				      joined.data, joined.length);
	buf_free(&joined);
	return rc;
}

/* Stores the verdict of a record. If a newer verdict on the same subject is stored already, the new row gets the
 * transaction number 0, so it counts as older. */
static int take_verdict(struct rows *rows, struct in *in, const struct verdict_line *record, int place)
{
	struct stored_on_subject stored_on_subject;
	MDB_cursor *cursor;
	int rc = rows_cursor(rows, TABLE_VERDICTS, &cursor);

	if (rc != 0 || (rc = look(cursor, in, record, &stored_on_subject)) != 0)
		return rc;
	if (stored_stays(in, &stored_on_subject, record)) {
		in->merged.kept++;
		return keep_margin(rows, &stored_on_subject.row, record);
	}
	in->merged.replaced += stored_on_subject.same;
	in->merged.taken += !stored_on_subject.same;
	/* a case may now get another verdict than the one that a summary contains */
	if (stored_on_subject.newest >= 0 && (rc = rows_expire_summaries(rows)) != 0)
		return rc;
	return rows_replace_verdict(rows, &record->subject, &record->witness,
				    stored_on_subject.newest > not_in_future(in, record->made) ? 0 : mdb_txn_id(rows->txn),
				    (uint32_t)place, record->text, record->length);
}

/* Writes the row of `latest` for a case, unless the store already has a valid row for this case. */
static int take_name(struct rows *rows, const struct named *named)
{
	MDB_val key = {PAIR, (void *)named->key.bytes}, value;
	const struct verdict_line *record = named->record;
	struct reader body;
	MDB_cursor *cursor;
	int rc = rows_cursor(rows, TABLE_LATEST, &cursor);

	if (rc == 0)
		rc = mdb_cursor_get(cursor, &key, &value, MDB_SET);
	if (rc == 0 && record_read(RECORD_LATEST, named->key.bytes, PAIR, value.mv_data, value.mv_size, &body))
		return 0;
	if (rc != 0 && rc != MDB_NOTFOUND)
		return rc;
	return rows_put_latest(rows, &record->subject, &record->witness, named->name->definition, named->name->case_id,
			       record->fields, record->fields_length);
}

static int take_all(MDB_txn *txn, struct env *env, void *context)
{
	struct in *in = context;
	struct rows rows = {.txn = txn, .env = env};
	int rc = 0;

	in->merged = (struct store_merged){0};
	for (int i = 0; i < in->count && rc == 0; i++)
		rc = take_verdict(&rows, in, in->sorted[i], i);
	for (size_t i = 0; i < in->named_count && rc == 0; i++)
		rc = take_name(&rows, &in->named[i]);
	rows_end(&rows);
	return rc;
}

/* Lists the cases that the records name, sorted by key. If several records name the same case, the entry of the newest
 * of these records comes first, and take_name ignores the other entries. */
static void sort_names(struct in *in)
{
	size_t room = 0;

	for (int i = 0; i < in->count; i++)
		room += in->sorted[i]->fields_length > 0 ? (size_t)in->sorted[i]->name_count : 0;
	in->named = must(calloc(room + 1, sizeof *in->named));
	for (int i = 0; i < in->count; i++)
		for (int k = 0; k < in->sorted[i]->name_count && in->sorted[i]->fields_length > 0; k++) {
			const struct case_name *name = &in->sorted[i]->names[k];

			in->named[in->named_count] = (struct named){case_key(name->definition, name->case_id), name,
								    in->sorted[i], (uint32_t)in->named_count};
			in->named_count++;
		}
	qsort(in->named, in->named_count, sizeof *in->named, named_order);
}

/* Returns an upper bound of the bytes that the rows need. At worst, half of each page remains free. Branch pages and
 * copies of changed pages also need space. */
static uint64_t room_for(const struct in *in)
{
	uint64_t bytes = 0;

	for (int i = 0; i < in->count; i++) {
		const struct verdict_line *record = in->sorted[i];

		bytes += record->length + 128 + (uint64_t)record->name_count * (record->fields_length + 256);
	}
	return 3 * bytes + (1 << 20);
}

int store_merge(struct store *store, const struct verdict_line *records, int count, struct store_merged *merged,
		struct err *err)
{
	struct in in = {.count = count, .now = time(NULL)};

	if (count == 0)
		return 0;
	in.sorted = must(malloc((size_t)count * sizeof(struct verdict_line *)));
	for (int i = 0; i < count; i++)
		in.sorted[i] = &records[i];
	qsort(in.sorted, (size_t)count, sizeof *in.sorted, record_order);
	sort_names(&in);
	env_expect(&store->env, room_for(&in));
	int answer = env_write(&store->env, take_all, &in, err);

	free(in.sorted);
	free(in.named);
	if (answer != 0)
		return -1;
	merged->taken += in.merged.taken;
	merged->replaced += in.merged.replaced;
	merged->kept += in.merged.kept;
	return 0;
}
