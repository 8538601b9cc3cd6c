/* store - reads and writes the tables `verdicts`, `latest` (the last state of each case) and `facts`.
 * cache/store_files.c reads and writes the table `files`.
 *
 *   verdicts   row = transaction u64, place in the transaction u32, text (verdict_write's JSON)
 *              the newest verdict has the highest transaction and, in this transaction, the highest place
 *   latest     row = subject, witness, definition bytes, case bytes, fields
 *   facts      row = text
 *
 * The verdicts on one subject are adjacent in the table, because the subject is the start of their key. LMDB's values
 * are valid only during the transaction, so results are copied into the caller's arena. */
#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/integrity.h"
#include "cache/lmdb_page_check.h"
#include "cache/quarantine.h"
#include "cache/checksummed_record.h"
#include "cache/store_internal.h"
#include "cache/lmdb_rows.h"

enum { KEY_MAX = 511, PAGE_TURNS = 20 };

/* --- Opening ----------------------------------------------------------------------------------------------------- */

struct store *store_open(const char *root, const struct store_options *options, struct err *note, struct err *err)
{
	struct store *store = calloc(1, sizeof *store);

	if (store == NULL)
		die_no_memory();
	if (env_open(&store->env, root, options->read_only, note, err) == ENV_OPEN)
		return store;
	free(store);
	return NULL;
}

/* Checks the pages of the store. Pages that another process is writing may look damaged. Therefore, if the pages look
 * damaged and another process uses the store, checks the pages again, up to PAGE_TURNS times. Pages that are really
 * damaged look damaged in every check. */
static enum lmdb_page_check_answer look_at_pages(const char *folder, int fd, struct err *why)
{
	enum lmdb_page_check_answer answer = lmdb_page_check(fd, why);

	for (int turn = 0; turn < PAGE_TURNS && answer == LMDB_PAGE_CHECK_DAMAGED && integrity_in_use(folder); turn++) {
		usleep(10000);
		answer = lmdb_page_check(fd, why);
	}
	return answer;
}

int store_damage(const char *root, struct err *err)
{
	char folder[ENV_PATH_MAX], path[ENV_PATH_MAX + 16];
	struct err why = {""};

	err_set(err, "%s", "");
	snprintf(folder, sizeof folder, "%.4000s/.reftest/cache", root);
	snprintf(path, sizeof path, "%s/data.mdb", folder);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0) {
		err_errno(err, "%s cannot be read", path);
		return 0;
	}
	enum lmdb_page_check_answer answer = look_at_pages(folder, fd, &why);

	close(fd);
	if (answer != LMDB_PAGE_CHECK_SOUND)
		err_set(err, "%s: %.1500s", path, why.text);
	return answer == LMDB_PAGE_CHECK_DAMAGED;
}

void store_close(struct store *store)
{
	if (store == NULL)
		return;
	env_close(&store->env);
	free(store);
}

const char *store_path(const struct store *store)
{
	return store->env.path;
}

bool store_writable(const struct store *store)
{
	return store->env.mdb != NULL && store->env.writable && !store->env.failing;
}

/* --- Rows -------------------------------------------------------------------------------------------------------- */

/* Returns true if the checksum of the row is right. If the checksum is wrong, counts the row as damaged. */
static bool row_read(struct store *store, enum record_kind kind, const MDB_val *key, const MDB_val *value,
                     struct reader *body)
{
	if (record_read(kind, key->mv_data, key->mv_size, value->mv_data, value->mv_size, body))
		return true;
	store->damaged++;
	return false;
}

/* Reads one row and copies its body into the arena. */
static enum cache_answer row_get(struct store *store, enum table table, enum record_kind kind, const void *key,
                                 size_t key_length, struct arena *arena, struct reader *body, struct err *err)
{
	MDB_val name = {key_length, (void *)key}, value;
	enum cache_answer answer = CACHE_MISS;
	MDB_txn *txn;

	if (env_begin_read(&store->env, &txn, err) != 0)
		return CACHE_ERROR;
	int rc = mdb_get(txn, store->env.table[table], &name, &value);

	if (rc == 0 && row_read(store, kind, &name, &value, body)) {
		body->at = (unsigned char *)arena_copy(arena, body->at, body->left);
		answer = CACHE_HIT;
	}
	mdb_txn_abort(txn);
	if (rc != 0 && rc != MDB_NOTFOUND)
		answer = env_fail(&store->env, rc, "read", err);
	store->hits += answer == CACHE_HIT;
	store->misses += answer == CACHE_MISS;
	return answer;
}

/* An iteration over the rows whose keys begin with a given digest. Each key consists of two digests. */
struct pass {
	struct store *store;
	MDB_txn *txn;
	MDB_cursor *cursor;
	MDB_val prefix, key, value; /* key, value: the current row */
	MDB_cursor_op how;
	int rc; /* the result of the last call of LMDB; MDB_NOTFOUND after the last row */
};

static int pass_begin(struct pass *pass, struct store *store, enum table table, const struct digest *first,
                      struct err *err)
{
	*pass = (struct pass){.store = store, .prefix = {DIGEST_BYTES, (void *)first->bytes}, .how = MDB_SET_RANGE};
	if (env_begin_read(&store->env, &pass->txn, err) != 0)
		return -1;
	pass->key = pass->prefix;
	pass->rc = mdb_cursor_open(pass->txn, store->env.table[table], &pass->cursor);
	return 0;
}

/* Moves to the next row whose checksum is right. Returns false after the last row and after an error; pass->rc is then
 * MDB_NOTFOUND or the error. */
static bool pass_next(struct pass *pass, enum record_kind kind, struct reader *body)
{
	while (pass->rc == 0) {
		pass->rc = mdb_cursor_get(pass->cursor, &pass->key, &pass->value, pass->how);
		pass->how = MDB_NEXT;
		if (pass->rc != 0)
			return false;
		if (pass->key.mv_size != PAIR || memcmp(pass->key.mv_data, pass->prefix.mv_data, DIGEST_BYTES) != 0)
			return false;
		if (row_read(pass->store, kind, &pass->key, &pass->value, body))
			return true;
	}
	return false;
}

/* Ends the pass. Returns 0, or -1 with a message if the pass ended with an error. */
static int pass_end(struct pass *pass, struct err *err)
{
	if (pass->cursor != NULL)
		mdb_cursor_close(pass->cursor);
	mdb_txn_abort(pass->txn);
	return pass->rc == 0 || pass->rc == MDB_NOTFOUND ? 0 : env_fail(&pass->store->env, pass->rc, "read", err);
}

/* --- Verdicts ---------------------------------------------------------------------------------------------------- */

enum cache_answer store_verdict(struct store *store, const struct digest *subject, const struct digest *witness,
                                struct arena *arena, const char **text, size_t *length, struct err *err)
{
	struct pair key = pair_of(subject, witness);
	struct reader body;
	enum cache_answer answer =
	    row_get(store, TABLE_VERDICTS, RECORD_VERDICT, key.bytes, sizeof key.bytes, arena, &body, err);

	if (answer != CACHE_HIT)
		return answer;
	record_get_u64(&body);
	record_get_u32(&body);
	if (body.bad)
		return CACHE_MISS;
	*text = (const char *)body.at;
	*length = body.left;
	return CACHE_HIT;
}

/* A verdict, the transaction that stored it, and its place in this transaction. */
struct dated {
	uint64_t transaction;
	uint32_t place;
	struct stored_verdict verdict;
};

static int dated_order(const void *a, const void *b)
{
	const struct dated *one = a, *two = b;

	if (one->transaction != two->transaction)
		return one->transaction < two->transaction ? -1 : 1;
	return one->place < two->place ? -1 : one->place > two->place;
}

static void verdict_append(struct buf *list, const MDB_val *key, struct reader *body, struct arena *arena)
{
	struct dated dated = {0};

	dated.transaction = record_get_u64(body);
	dated.place = record_get_u32(body);
	memcpy(dated.verdict.witness.bytes, (const char *)key->mv_data + DIGEST_BYTES, DIGEST_BYTES);
	dated.verdict.length = body->left;
	dated.verdict.text = arena_copy(arena, body->at, body->left);
	if (!body->bad)
		buf_add(list, &dated, sizeof dated);
}

int store_verdicts(struct store *store, const struct digest *subject, struct arena *arena,
                   const struct stored_verdict **out, struct err *err)
{
	struct buf list = {0};
	struct reader body;
	struct pass pass;

	*out = NULL;
	if (pass_begin(&pass, store, TABLE_VERDICTS, subject, err) != 0)
		return -1;
	while (pass_next(&pass, RECORD_VERDICT, &body))
		verdict_append(&list, &pass.key, &body, arena);
	int count = (int)(list.length / sizeof(struct dated)), result = pass_end(&pass, err) == 0 ? count : -1;
	struct dated *dated = (struct dated *)(void *)list.data;

	if (count > 0)
		qsort(dated, (size_t)count, sizeof *dated, dated_order);
	struct stored_verdict *verdicts = arena_array(arena, (size_t)count, sizeof *verdicts);

	for (int i = 0; i < count; i++)
		verdicts[i] = dated[i].verdict;
	*out = verdicts;
	buf_free(&list);
	store->hits += result > 0;
	store->misses += result == 0;
	return result;
}
/* --- What was last seen ------------------------------------------------------------------------------------------ */

static bool text_is(const char *text, size_t length, const char *expected)
{
	return text != NULL && length == strlen(expected) && memcmp(text, expected, length) == 0;
}

enum cache_answer store_latest(struct store *store, const char *definition, const char *case_id, struct arena *arena,
                               struct latest *out, struct err *err)
{
	struct pair key = case_key(definition, case_id);
	struct reader body;
	enum cache_answer answer =
	    row_get(store, TABLE_LATEST, RECORD_LATEST, key.bytes, sizeof key.bytes, arena, &body, err);
	size_t definition_length, case_length;

	if (answer != CACHE_HIT)
		return answer;
	out->subject = record_get_digest(&body);
	out->witness = record_get_digest(&body);
	const char *found_definition = record_get_bytes(&body, &definition_length);
	const char *found_case = record_get_bytes(&body, &case_length);

	if (!text_is(found_definition, definition_length, definition) || !text_is(found_case, case_length, case_id))
		return CACHE_MISS;
	out->fields = body.at;
	out->fields_length = body.left;
	return CACHE_HIT;
}

/* --- Writing ----------------------------------------------------------------------------------------------------- */

struct put_batch {
	const struct store_put *puts;
	int count;
};

static int put_one(struct rows *rows, const struct store_put *put, int place)
{
	int rc = 0;

	if (put->keep_verdict)
		rc = rows_replace_verdict(rows, &put->subject, &put->witness, mdb_txn_id(rows->txn), (uint32_t)place,
					  put->text, put->length);
	return rc != 0 ? rc
		       : rows_put_latest(rows, &put->subject, &put->witness, put->definition, put->case_id, put->fields,
					 put->fields_length);
}

static int put_batch(MDB_txn *txn, struct env *env, void *context)
{
	const struct put_batch *batch = context;
	struct rows rows = {.txn = txn, .env = env};
	int rc = 0;

	for (int i = 0; i < batch->count && rc == 0; i++)
		rc = put_one(&rows, &batch->puts[i], i);
	rows_end(&rows);
	return rc;
}

int store_put(struct store *store, const struct store_put *puts, int count, struct err *err)
{
	struct put_batch batch = {puts, count};

	return count == 0 ? 0 : env_write(&store->env, put_batch, &batch, err);
}

/* --- Facts ------------------------------------------------------------------------------------------------------- */

enum cache_answer store_fact(struct store *store, const char *key, struct arena *arena, const char **value,
                             struct err *err)
{
	size_t length = strlen(key);
	struct reader body;

	if (length == 0 || length > KEY_MAX)
		return CACHE_MISS;
	enum cache_answer answer = row_get(store, TABLE_FACTS, RECORD_FACT, key, length, arena, &body, err);

	if (answer == CACHE_HIT)
		*value = (const char *)body.at;
	return answer;
}

struct fact {
	const char *key, *value;
};

static int put_fact(MDB_txn *txn, struct env *env, void *context)
{
	const struct fact *fact = context;
	struct buf body = {0};

	buf_text(&body, fact->value);
	int rc = row_put(txn, env->table[TABLE_FACTS], RECORD_FACT, fact->key, strlen(fact->key), &body);

	buf_free(&body);
	return rc;
}

int store_put_fact(struct store *store, const char *key, const char *value, struct err *err)
{
	struct fact fact = {key, value};

	if (*key == '\0' || strlen(key) > KEY_MAX)
		return err_set(err, "a key of the table `facts` must have 1 to %d bytes, but this key has %zu",
			       KEY_MAX, strlen(key));
	return env_write(&store->env, put_fact, &fact, err);
}

/* --- Counting ---------------------------------------------------------------------------------------------------- */

int store_stats(struct store *store, struct store_stats *out, struct err *err)
{
	int64_t *const rows[TABLE_COUNT] = {
	    [TABLE_VERDICTS] = &out->verdicts,
	    [TABLE_LATEST] = &out->latest,
	    [TABLE_FILES] = &out->files,
	    [TABLE_FACTS] = &out->facts,
	};
	MDB_txn *txn;
	MDB_stat stat;
	int rc = 0;

	*out = (struct store_stats){.hits = store->hits, .misses = store->misses, .damaged = store->damaged};
	out->checked = store->env.checked;
	quarantine_count(store->env.path, &out->aside, &out->quarantine_bytes);
	if (env_size(&store->env, &out->bytes, err) != 0 || env_begin_read(&store->env, &txn, err) != 0)
		return -1;
	for (int i = 0; i < TABLE_COUNT && rc == 0; i++) {
		rc = mdb_stat(txn, store->env.table[i], &stat);
		if (rc == 0)
			*rows[i] = (int64_t)stat.ms_entries;
	}
	mdb_txn_abort(txn);
	return rc == 0 ? 0 : env_fail(&store->env, rc, "read", err);
}
