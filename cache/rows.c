#include "cache/rows.h"

#include <string.h>

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

int row_put_verdict(MDB_txn *txn, struct env *env, const struct digest *subject, const struct digest *witness,
		    uint64_t transaction, uint32_t place, const char *text, size_t length)
{
	struct pair key = pair_of(subject, witness);
	struct buf body = {0};

	record_put_u64(&body, transaction);
	record_put_u32(&body, place);
	buf_add(&body, text, length);
	int rc = row_put(txn, env->table[TABLE_VERDICTS], RECORD_VERDICT, key.bytes, sizeof key.bytes, &body);

	buf_free(&body);
	return rc;
}

int row_put_latest(MDB_txn *txn, struct env *env, const struct digest *subject, const struct digest *witness,
		   const char *definition, const char *case_id, const void *fields, size_t fields_length)
{
	struct pair key = case_key(definition, case_id);
	struct buf body = {0};

	record_put_digest(&body, subject);
	record_put_digest(&body, witness);
	record_put_text(&body, definition);
	record_put_text(&body, case_id);
	buf_add(&body, fields, fields_length);
	int rc = row_put(txn, env->table[TABLE_LATEST], RECORD_LATEST, key.bytes, sizeof key.bytes, &body);

	buf_free(&body);
	return rc;
}
