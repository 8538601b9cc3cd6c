/* inspect - the pages from outside (cache/pages.h), then each table row by row. A row is right when its record checks
 * out under its key, when it is found by that key (a damaged branch above it would hide it), and when what it says
 * agrees with itself. Nothing is locked: a writer that comes between is noticed by the number of its transaction, and
 * the pages are looked at again. */
#include "cache/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "cache/fingerprint.h"
#include "cache/pages.h"
#include "cache/record.h"
#include "cache/rows.h"

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

/* --- What a row is called ---------------------------------------------------------------------------------------- */

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

/* --- What a row must be ------------------------------------------------------------------------------------------ */

/* NULL, or what is wrong with a row whose record checks out. */
typedef const char *row_look(struct inspection *i, const MDB_val *key, struct reader body, struct err *why);

static const char *look_at_verdict(struct inspection *i, const MDB_val *key, struct reader body, struct err *why)
{
	struct portable record = {0};

	(void)i;
	if (key->mv_size != PAIR)
		return "its key is none of a verdict";
	record_get_u64(&body);
	record_get_u32(&body);
	if (body.bad)
		return "it is too short";
	memcpy(record.subject.bytes, key->mv_data, DIGEST_BYTES);
	memcpy(record.witness.bytes, (const char *)key->mv_data + DIGEST_BYTES, DIGEST_BYTES);
	record.text = (const char *)body.at;
	record.length = body.left;
	record.made = portable_made(record.text, record.length);
	return portable_check(&record, why) == 0 ? NULL : why->text;
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
		return "it is too short";
	struct digest one = digest_of(definition, definition_length), two = digest_of(case_id, case_length);
	struct pair named = pair_of(&one, &two);

	if (memcmp(named.bytes, key->mv_data, PAIR) != 0)
		return "it stands under another case's key";
	int read = fields_read(body.at, body.left, &arena, &fields);

	arena_free(&arena);
	return read == 0 ? NULL : "its fields cannot be read";
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
		wrong = "it does not check out, and counts as not being there";
	else if (mdb_get(i->txn, i->env->table[table], key, &found) != 0 || found.mv_data != value->mv_data)
		wrong = "it cannot be found by its key: the pages above it are damaged";
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
			 "it has another number of rows than it says");
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
	enum pages_answer answer = PAGES_ERROR;
	struct err why = {""};

	snprintf(path, sizeof path, "%s/data.mdb", i->env->path);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, "%s cannot be read", path);
	for (int turn = 0; turn < PAGE_ATTEMPTS; turn++) {
		size_t before = transaction_of(i->env);

		answer = pages_check(fd, &why);
		if (answer == PAGES_SOUND || transaction_of(i->env) == before)
			break;
		usleep(10000);
	}
	close(fd);
	if (answer == PAGES_ERROR)
		return err_set(err, "%s: %.1500s", path, why.text);
	if (answer == PAGES_DAMAGED)
		complain(i, "page", (struct row_name){"of data.mdb"}, why.text);
	return answer == PAGES_SOUND ? 0 : 1;
}

int inspect(struct env *env, store_complaint *tell, void *context, struct store_inspected *out, struct err *err)
{
	struct inspection i = {.env = env, .tell = tell, .context = context, .out = out};
	int rc = 0, pages;

	*out = (struct store_inspected){0};
	if ((pages = look_at_pages(&i, err)) != 0)
		return pages < 0 ? -1 : 0; /* LMDB must not walk over what is damaged */
	if (env_begin_read(env, &i.txn, err) != 0)
		return -1;
	for (int table = 0; table < TABLE_COUNT && rc == 0; table++)
		rc = look_at_table(&i, (enum table)table);
	mdb_txn_abort(i.txn);
	return rc == 0 ? 0 : env_fail(env, rc, "read", err);
}
