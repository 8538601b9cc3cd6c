/* store_inspect - checks a store for `cache check`. It first checks the pages without LMDB (cache/lmdb_page_check.h),
 * and then checks every row of each table. A row is valid if the checksum of its record is right, if its contents are
 * consistent, and if a search for its key finds the row. (A damaged branch page can hide a row.) The pages are checked
 * without a lock. If the transaction number changes during this check, another process has written to the store, and
 * the pages are checked again. */
#include "cache/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "cache/fingerprint.h"
#include "cache/lmdb_page_check.h"
#include "cache/checksummed_record.h"
#include "cache/lmdb_rows.h"

enum { PAGE_ATTEMPTS = 20, NAME_ROOM = 200 };

struct inspection {
	struct env *env;
	MDB_txn *txn;
	store_complaint *tell;
	void *context;
	struct store_inspected *out;
};

struct row_name {
	char text[NAME_ROOM];
};

static void complain(struct inspection *i, const char *table, struct row_name name, const char *what)
{
	struct err sentence;

	i->out->bad++;
	err_set(&sentence, "%s %s: %s", table, name.text, what);
	i->tell(sentence.text, i->context);
}

/* --- Names of rows ---------------------------------------------------------------------------------------- */

static struct row_name hex_name(const MDB_val *key)
{
	struct row_name name = {""};
	size_t at = 0;

	for (size_t i = 0; i < key->mv_size && at + 3 < sizeof name.text; i++)
		at += (size_t)snprintf(name.text + at, sizeof name.text - at, "%s%02x", i == DIGEST_BYTES ? "." : "",
				       ((const unsigned char *)key->mv_data)[i]);
	return name;
}

static struct row_name text_name(const MDB_val *key)
{
	struct row_name name;
	char text[128];

	snprintf(text, sizeof text, "%.*s", (int)(key->mv_size < 120 ? key->mv_size : 120), (const char *)key->mv_data);
	snprintf(name.text, sizeof name.text, "%s", err_show(text).text);
	return name;
}

/* --- Checks of one row ------------------------------------------------------------------------------------------ */

/* Checks the contents of a row whose checksum is right. Returns NULL if the contents are valid, otherwise a message. */
typedef const char *row_look(struct inspection *i, const MDB_val *key, struct reader body, struct err *why);

static const char *look_at_verdict(struct inspection *i, const MDB_val *key, struct reader body, struct err *why)
{
	struct verdict_line record = {0};
	struct arena arena = {0};

	(void)i;
	if (key->mv_size != PAIR)
		return "the key of the row is not the key of a verdict";
	record_get_u64(&body);
	record_get_u32(&body);
	if (body.bad)
		return "the row is too short";
	memcpy(record.subject.bytes, key->mv_data, DIGEST_BYTES);
	memcpy(record.witness.bytes, (const char *)key->mv_data + DIGEST_BYTES, DIGEST_BYTES);
	record.text = (const char *)body.at;
	record.length = body.left;
	record.made = verdict_time(record.text, record.length);
	bool right = verdict_line_check(&record, &arena, why) != NULL;

	arena_free(&arena);
	return right ? NULL : why->text;
}

static const char *look_at_latest(struct inspection *i, const MDB_val *key, struct reader body, struct err *why)
{
	struct arena arena = {0};
	struct fields fields;
	size_t definition_length, case_length;

	(void)i, (void)why;
	record_get_digest(&body);
	record_get_digest(&body);
	const char *definition = record_get_bytes(&body, &definition_length);
	const char *case_id = record_get_bytes(&body, &case_length);

	if (body.bad || key->mv_size != PAIR)
		return "the row is too short";
	struct digest one = digest_of(definition, definition_length), two = digest_of(case_id, case_length);
	struct pair named = pair_of(&one, &two);

	if (memcmp(named.bytes, key->mv_data, PAIR) != 0)
		return "the row is stored under the key of another case";
	int read = fields_read(body.at, body.left, &arena, &fields);

	arena_free(&arena);
	return read == 0 ? NULL : "the fields of the record cannot be read";
}

static const char *look_at_text(struct inspection *i, const MDB_val *key, struct reader body, struct err *why)
{
	(void)i, (void)key, (void)body, (void)why;
	return NULL;
}

static const struct {
	const char *name;
	enum record_kind kind;
	struct row_name (*called)(const MDB_val *key);
	row_look *look;
} tables[TABLE_COUNT] = {
    [TABLE_VERDICTS] = {"verdict", RECORD_VERDICT, hex_name, look_at_verdict},
    [TABLE_LATEST] = {"latest", RECORD_LATEST, hex_name, look_at_latest},
    [TABLE_FILES] = {"file", RECORD_FILE, text_name, look_at_text},
    [TABLE_FACTS] = {"fact", RECORD_FACT, text_name, look_at_text},
};

/* --- Looking ----------------------------------------------------------------------------------------------------- */

static void look_at_row(struct inspection *i, enum table table, MDB_val *key, const MDB_val *value)
{
	struct err why = {""};
	struct reader body;
	MDB_val found;
	const char *wrong;

	i->out->rows++;
	if (!record_read(tables[table].kind, key->mv_data, key->mv_size, value->mv_data, value->mv_size, &body))
		wrong = "the checksum of the row is wrong, so the row is ignored";
	else if (mdb_get(i->txn, i->env->table[table], key, &found) != 0 || found.mv_data != value->mv_data)
		wrong = "LMDB cannot find the row by its key, because a page between the root of the tree and the row "
		    "is damaged";
	else
		wrong = tables[table].look(i, key, body, &why);
	if (wrong != NULL)
		complain(i, tables[table].name, tables[table].called(key), wrong);
}

static int look_at_table(struct inspection *i, enum table table)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	MDB_stat stat = {0};
	size_t seen = 0;
	int rc = mdb_cursor_open(i->txn, i->env->table[table], &cursor);

	if (rc != 0)
		return rc;
	for (; (rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0; seen++)
		look_at_row(i, table, &key, &value);
	mdb_cursor_close(cursor);
	if (rc == MDB_NOTFOUND && mdb_stat(i->txn, i->env->table[table], &stat) == 0 && stat.ms_entries != seen)
		complain(i, tables[table].name, (struct row_name){"table"},
			 "the number of readable rows differs from the number that LMDB has recorded");
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static size_t transaction_of(struct env *env)
{
	MDB_envinfo info;

	return mdb_env_info(env->mdb, &info) == 0 ? info.me_last_txnid : 0;
}

static int look_at_pages(struct inspection *i, struct err *err)
{
	char path[ENV_PATH_MAX + 16];
	enum lmdb_page_check_answer answer = LMDB_PAGE_CHECK_ERROR;
	struct err why = {""};

	snprintf(path, sizeof path, "%s/data.mdb", i->env->path);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, "%s cannot be read", path);
	for (int turn = 0; turn < PAGE_ATTEMPTS; turn++) {
		size_t before = transaction_of(i->env);

		answer = lmdb_page_check(fd, &why);
		if (answer == LMDB_PAGE_CHECK_SOUND || transaction_of(i->env) == before)
			break;
		usleep(10000);
	}
	close(fd);
	if (answer == LMDB_PAGE_CHECK_ERROR)
		return err_set(err, "%s: %.1500s", path, why.text);
	if (answer == LMDB_PAGE_CHECK_DAMAGED)
		complain(i, "page", (struct row_name){"of data.mdb"}, why.text);
	return answer == LMDB_PAGE_CHECK_SOUND ? 0 : 1;
}

int store_inspect(struct store *store, store_complaint *tell, void *context, struct store_inspected *out,
		  struct err *err)
{
	struct env *env = &store->env;
	struct inspection i = {.env = env, .tell = tell, .context = context, .out = out};
	int rc = 0, pages;

	*out = (struct store_inspected){0};
	if ((pages = look_at_pages(&i, err)) != 0)
		return pages < 0 ? -1 : 0; /* LMDB could crash on damaged pages, so the rows are not read */
	if (env_begin_read(env, &i.txn, err) != 0)
		return -1;
	for (int table = 0; table < TABLE_COUNT && rc == 0; table++)
		rc = look_at_table(&i, (enum table)table);
	mdb_txn_abort(i.txn);
	return rc == 0 ? 0 : env_fail(env, rc, "read", err);
}
