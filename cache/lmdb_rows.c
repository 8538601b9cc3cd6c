#include "cache/lmdb_rows.h"

#include <stdio.h>
#include <string.h>

#include "cache/driver_history.h"
#include "cache/expired_summaries.h"
#include "dataset/verdict.h"

struct pair pair_of(const struct digest *first, const struct digest *second)
{
	struct pair pair;

	memcpy(pair.bytes, first->bytes, DIGEST_BYTES);
	memcpy(pair.bytes + DIGEST_BYTES, second->bytes, DIGEST_BYTES);
	return pair;
}

struct pair case_key(const char *definition, const char *case_id)
{
	struct digest first = digest_of(definition, strlen(definition)), second = digest_of(case_id, strlen(case_id));

	return pair_of(&first, &second);
}

int row_put(MDB_txn *txn, MDB_dbi table, enum record_kind kind, const void *key, size_t key_length,
	    const struct buf *body)
{
	struct buf record = {0};
	int rc = MDB_BAD_VALSIZE;

	if (record_write(kind, key, key_length, body->data, body->length, &record) == 0) {
		MDB_val name = {key_length, (void *)key}, row = {record.length, record.data};

		rc = mdb_put(txn, table, &name, &row, 0);
	}
	buf_free(&record);
	return rc;
}

int64_t row_made(struct reader body)
{
	record_get_u64(&body);
	record_get_u32(&body);
	return verdict_time((const char *)body.at, body.left);
}

void rows_end(struct rows *rows)
{
	for (int i = 0; i < TABLE_COUNT; i++)
		if (rows->cursor[i] != NULL)
			mdb_cursor_close(rows->cursor[i]);
	buf_free(&rows->body);
	buf_free(&rows->record);
}

int rows_cursor(struct rows *rows, enum table table, MDB_cursor **out)
{
	MDB_cursor **cursor = &rows->cursor[table];
	int rc = *cursor != NULL ? 0 : mdb_cursor_open(rows->txn, rows->env->table[table], cursor);

	*out = *cursor;
	return rc;
}

/* Writes rows->body to the table, as the row with the key `key`. */
static int put(struct rows *rows, enum table table, enum record_kind kind, struct pair *key)
{
	MDB_cursor *cursor;
	int rc = rows_cursor(rows, table, &cursor);

	buf_clear(&rows->record);
	if (rc == 0 && record_write(kind, key->bytes, PAIR, rows->body.data, rows->body.length, &rows->record) != 0)
		rc = MDB_BAD_VALSIZE;
	if (rc != 0)
		return rc;
	MDB_val name = {PAIR, key->bytes}, row = {rows->record.length, rows->record.data};

	if (!rows->scattered[table]) {
		rc = mdb_cursor_put(cursor, &name, &row, MDB_APPEND);
		rows->scattered[table] = rc == MDB_KEYEXIST;
	}
	return rows->scattered[table] ? mdb_cursor_put(cursor, &name, &row, 0) : rc;
}

int rows_put_verdict(struct rows *rows, const struct digest *subject, const struct digest *witness,
		     uint64_t transaction, uint32_t place, const char *text, size_t length)
{
	struct pair key = pair_of(subject, witness);

	buf_clear(&rows->body);
	record_put_u64(&rows->body, transaction);
	record_put_u32(&rows->body, place);
	buf_add(&rows->body, text, length);
	return put(rows, TABLE_VERDICTS, RECORD_VERDICT, &key);
}

bool verdict_row_read(const MDB_val *key, const MDB_val *value, struct verdict_row *out)
{
	struct reader body;

	*out = (struct verdict_row){0};
	if (!record_read(RECORD_VERDICT, key->mv_data, key->mv_size, value->mv_data, value->mv_size, &body))
		return false;
	out->transaction = record_get_u64(&body);
	out->place = record_get_u32(&body);
	out->length = body.left;
	out->text = body.bad ? NULL : (const char *)body.at;
	return !body.bad;
}

int rows_expire_summaries(struct rows *rows)
{
	char value[24];

	buf_clear(&rows->body);
	buf_add(&rows->body, value, (size_t)snprintf(value, sizeof value, "%zu", mdb_txn_id(rows->txn)));
	return row_put(rows->txn, rows->env->table[TABLE_FACTS], RECORD_FACT, FACT_SUMMARIES_EXPIRED,
		       strlen(FACT_SUMMARIES_EXPIRED), &rows->body);
}

/* Returns whether a definition that passed with the old verdict may not pass with the new one. */
static bool takes_a_pass_back(const struct verdict_row *old, const char *text, size_t length)
{
	struct arena arena = {0};
	const struct verdict *then = verdict_head(old->text, old->length, &arena), *now = verdict_head(text, length, &arena);
	bool same = then == NULL || (now != NULL && strcmp(then->after != NULL ? then->after : "",
							   now->after != NULL ? now->after : "") == 0);

	arena_free(&arena);
	return !same;
}

int rows_replace_verdict(struct rows *rows, const struct digest *subject, const struct digest *witness,
			 uint64_t transaction, uint32_t place, const char *text, size_t length)
{
	struct pair name = pair_of(subject, witness);
	MDB_val key = {PAIR, name.bytes}, value;
	struct verdict_row old;
	struct buf joined = {0};
	int rc = mdb_get(rows->txn, rows->env->table[TABLE_VERDICTS], &key, &value);

	if (rc != 0 && rc != MDB_NOTFOUND)
		return rc;
	bool replaces = rc == 0 && verdict_row_read(&key, &value, &old);
	bool expires = replaces && takes_a_pass_back(&old, text, length);

	if (replaces && driver_history_join(text, length, old.text, old.length, &joined))
		rc = rows_put_verdict(rows, subject, witness, transaction, place, joined.data, joined.length);
	else
		rc = rows_put_verdict(rows, subject, witness, transaction, place, text, length);
	buf_free(&joined);
	return rc == 0 && expires ? rows_expire_summaries(rows) : rc;
}

int rows_put_latest(struct rows *rows, const struct digest *subject, const struct digest *witness,
		    const char *definition, const char *case_id, const void *fields, size_t fields_length)
{
	struct pair key = case_key(definition, case_id);

	buf_clear(&rows->body);
	record_put_digest(&rows->body, subject);
	record_put_digest(&rows->body, witness);
	record_put_text(&rows->body, definition);
	record_put_text(&rows->body, case_id);
	buf_add(&rows->body, fields, fields_length);
	return put(rows, TABLE_LATEST, RECORD_LATEST, &key);
}
