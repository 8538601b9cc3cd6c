/* store_gc - removes the rows that are not needed, from three tables. Makes several passes over the tables, all in one
 * write transaction, so nothing changes between two passes. A row is kept under these conditions:
 *
 *   latest     the definition exists, or the verdict that the row names is kept
 *   verdicts   a row of `latest` for an existing definition names the verdict; or the verdict is recent; or its subject
 *              is a subject of the present dataset; or it was stored after store_verdict_keys was called
 *   files      the path exists
 *
 * The age of a verdict is measured from the newest verdict and not from the clock. If age were measured from the clock,
 * all verdicts would be too old once the clock had jumped ahead, or once the cache had not been used for a year. */
#include "cache/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/checksummed_record.h"
#include "cache/lmdb_rows.h"

struct sweep {
	MDB_txn *txn;
	struct env *env;
	const struct store_needs *needs;
	int root;	     /* descriptor of the folder of the dataset */
	int64_t now, newest; /* newest: the latest time of any verdict, apart from times in the future */
	struct buf needed;   /* array of struct pair: subject and witness, sorted */
	struct store_swept swept;
};

/* What store_gc does with a row: it keeps the row, removes the row as not needed, or removes the row as damaged. */
enum fate { FATE_STAYS, FATE_GOES, FATE_DAMAGED };
typedef enum fate row_judge(struct sweep *s, const MDB_val *key, const MDB_val *value);

/* Calls `judge` for each row of a table and removes the rows that are not kept. Returns 0 or LMDB's error. */
static int each_row(struct sweep *s, enum table table, row_judge *judge, int64_t *gone)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	int rc = mdb_cursor_open(s->txn, s->env->table[table], &cursor);

	if (rc != 0)
		return rc;
	while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
		enum fate fate = judge(s, &key, &value);

		if (fate == FATE_STAYS)
			continue;
		*gone += fate == FATE_GOES;
		s->swept.damaged += fate == FATE_DAMAGED;
		if ((rc = mdb_cursor_del(cursor, 0)) != 0)
			break;
	}
	mdb_cursor_close(cursor);
	return rc == MDB_NOTFOUND ? 0 : rc;
}

static int digest_order(const void *a, const void *b)
{
	return memcmp(a, b, DIGEST_BYTES);
}

static int pair_order(const void *a, const void *b)
{
	return memcmp(a, b, PAIR);
}

static bool among(const void *wanted, const struct digest *sorted, int count)
{
	return count > 0 && bsearch(wanted, sorted, (size_t)count, sizeof *sorted, digest_order) != NULL;
}

static bool latest_read(const MDB_val *key, const MDB_val *value, struct pair *verdict)
{
	struct reader body;

	if (key->mv_size != PAIR ||
	    !record_read(RECORD_LATEST, key->mv_data, PAIR, value->mv_data, value->mv_size, &body) || body.left < PAIR)
		return false;
	memcpy(verdict->bytes, body.at, PAIR);
	return true;
}

/* Returns the time of a verdict, or -1 if the checksum of the row is wrong. */
static int64_t verdict_made(const MDB_val *key, const MDB_val *value)
{
	struct reader body;

	if (key->mv_size != PAIR ||
	    !record_read(RECORD_VERDICT, key->mv_data, PAIR, value->mv_data, value->mv_size, &body))
		return -1;
	return row_made(body);
}

static enum fate note_needed(struct sweep *s, const MDB_val *key, const MDB_val *value)
{
	struct pair verdict;

	if (!latest_read(key, value, &verdict))
		return FATE_DAMAGED;
	if (among(key->mv_data, s->needs->definitions, s->needs->definition_count))
		buf_add(&s->needed, &verdict, sizeof verdict);
	return FATE_STAYS;
}

static enum fate note_newest(struct sweep *s, const MDB_val *key, const MDB_val *value)
{
	int64_t made = verdict_made(key, value);

	if (made > s->newest && made <= s->now)
		s->newest = made;
	return FATE_STAYS;
}

/* Returns true if the key is in `keys`, an array of struct pair in ascending order. */
static bool has_key(const struct buf *keys, const void *key)
{
	size_t count = keys->length / PAIR;

	return count > 0 && bsearch(key, keys->data, count, PAIR, pair_order) != NULL;
}

static enum fate judge_verdict(struct sweep *s, const MDB_val *key, const MDB_val *value)
{
	int64_t made = verdict_made(key, value);

	if (made < 0)
		return FATE_DAMAGED;
	if (made > s->newest - (int64_t)s->needs->days * 86400 || has_key(&s->needed, key->mv_data) ||
	    !has_key(s->needs->stored, key->mv_data) || among(key->mv_data, s->needs->subjects, s->needs->subject_count))
		return FATE_STAYS;
	return FATE_GOES;
}

static enum fate judge_latest(struct sweep *s, const MDB_val *key, const MDB_val *value)
{
	struct pair verdict;
	MDB_val name = {PAIR, verdict.bytes}, ignored;

	if (!latest_read(key, value, &verdict))
		return FATE_DAMAGED;
	if (among(key->mv_data, s->needs->definitions, s->needs->definition_count))
		return FATE_STAYS;
	return mdb_get(s->txn, s->env->table[TABLE_VERDICTS], &name, &ignored) == 0 ? FATE_STAYS : FATE_GOES;
}

static enum fate judge_file(struct sweep *s, const MDB_val *key, const MDB_val *value)
{
	char path[512];
	struct stat st;

	(void)value;
	if (key->mv_size >= sizeof path)
		return FATE_STAYS;
	memcpy(path, key->mv_data, key->mv_size);
	path[key->mv_size] = '\0';
	return fstatat(s->root, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? FATE_STAYS : FATE_GOES;
}

static int sweep_tables(struct sweep *s)
{
	int64_t none = 0;
	int rc = each_row(s, TABLE_LATEST, note_needed, &none);

	if (s->needed.length > 0)
		qsort(s->needed.data, s->needed.length / PAIR, PAIR, pair_order);
	if (rc == 0)
		rc = each_row(s, TABLE_VERDICTS, note_newest, &none);
	if (rc == 0)
		rc = each_row(s, TABLE_VERDICTS, judge_verdict, &s->swept.verdicts);
	if (rc == 0)
		rc = each_row(s, TABLE_LATEST, judge_latest, &s->swept.latest);
	return rc == 0 ? each_row(s, TABLE_FILES, judge_file, &s->swept.files) : rc;
}

int store_verdict_keys(struct store *store, struct buf *keys, struct err *err)
{
	struct env *env = &store->env;
	MDB_cursor *cursor;
	MDB_txn *txn;
	MDB_val key;

	if (env_begin_read(env, &txn, err) != 0)
		return -1;
	int rc = mdb_cursor_open(txn, env->table[TABLE_VERDICTS], &cursor);

	if (rc == 0) {
		while ((rc = mdb_cursor_get(cursor, &key, NULL, MDB_NEXT)) == 0)
			if (key.mv_size == PAIR)
				buf_add(keys, key.mv_data, PAIR);
		mdb_cursor_close(cursor);
	}
	mdb_txn_abort(txn);
	return rc == MDB_NOTFOUND ? 0 : env_fail(env, rc, "read", err);
}

struct request {
	const struct store_needs *needs;
	bool dry_run;
	struct store_swept swept;
};

static int sweep_once(MDB_txn *txn, struct env *env, void *context)
{
	struct request *request = context;
	struct sweep s = {.txn = txn, .env = env, .needs = request->needs, .now = time(NULL), .newest = INT64_MIN / 2};

	s.root = open(env->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc = s.root >= 0 ? sweep_tables(&s) : ENOENT;

	if (s.root >= 0)
		close(s.root);
	buf_free(&s.needed);
	request->swept = s.swept;
	return rc == 0 && request->dry_run ? ENV_ONLY_LOOKED : rc;
}

int store_gc(struct store *store, const struct store_needs *needs, bool dry_run, struct store_swept *swept,
	     struct err *err)
{
	struct env *env = &store->env;
	struct request request = {.needs = needs, .dry_run = dry_run};
	int64_t before;

	*swept = (struct store_swept){0};
	if (env_size(env, &before, err) != 0 || env_write(env, sweep_once, &request, err) != 0)
		return -1;
	*swept = request.swept;
	swept->bytes_before = swept->bytes_after = before;
	if (!dry_run && env_compact(env, &swept->bytes_after, err) < 0)
		return -1;
	return 0;
}
