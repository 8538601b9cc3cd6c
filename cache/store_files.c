/* store_files - reads and writes the rows of the table `files`.
 *
 *   row = inode u64, size u64, mtime u64, ctime u64, read u64, content digest, summary u32,
 *         [ context digest, inputs digest, status u32, reason u32, weak u32, cases u32, passed u32, failed u32,
 *           errors u32, skipped u32, invalid u32, elements u64, [ checked u32 ] ]
 *         blobs u32, { path bytes }…, [ object bytes ]
 *
 * `summary` is a value of enum summary_form. Rows from older versions of this program do not have the git object id
 * ("object bytes") at the end.
 *
 * A run in which no file has changed reads all rows (twenty thousand for ten thousand definitions), and spends most of
 * its time on memory accesses. Rows are therefore checked and parsed in LMDB's mapping, without a copy. A caller that
 * needs each row only once should visit the rows (store_each_file) and not copy them (store_files). */
#include "cache/store_internal.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "cache/checksummed_record.h"

enum { KEY_MAX = 511 };

/* The parts of the summary that a row contains. Rows from older versions of this program have no count of checked
 * cases. */
enum summary_form { SUMMARY_NONE, SUMMARY_WITHOUT_CHECKED, SUMMARY_WITH_CHECKED };

/* --- One row ----------------------------------------------------------------------------------------------------- */

static void put_summary(struct buf *out, const struct summary *s)
{
	const uint32_t numbers[] = {s->status, s->reason, s->weak,    s->cases,  s->passed,
	                            s->failed, s->errors, s->skipped, s->invalid};

	record_put_digest(out, &s->context);
	record_put_digest(out, &s->inputs);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		record_put_u32(out, numbers[i]);
	record_put_u64(out, s->elements);
	if (s->checked > 0)
		record_put_u32(out, s->checked);
}

static enum summary_form form_of(const struct file_entry *entry)
{
	if (!entry->has_summary)
		return SUMMARY_NONE;
	return entry->summary.checked > 0 ? SUMMARY_WITH_CHECKED : SUMMARY_WITHOUT_CHECKED;
}

static void put_entry(struct buf *out, const struct file_entry *entry)
{
	const struct file_seen *seen = &entry->seen;

	record_put_u64(out, seen->stat.inode);
	record_put_u64(out, seen->stat.size);
	record_put_u64(out, (uint64_t)seen->stat.mtime_ns);
	record_put_u64(out, (uint64_t)seen->stat.ctime_ns);
	record_put_u64(out, (uint64_t)seen->read_ns);
	record_put_digest(out, &seen->content);
	record_put_u32(out, form_of(entry));
	if (entry->has_summary)
		put_summary(out, &entry->summary);
	record_put_u32(out, (uint32_t)entry->blob_count);
	for (int i = 0; i < entry->blob_count; i++)
		record_put_text(out, entry->blobs[i]);
	if (seen->object.length > 0)
		record_put_bytes(out, seen->object.bytes, seen->object.length);
}

static void get_summary(struct reader *from, uint32_t form, struct summary *s)
{
	uint32_t *const counts[] = {&s->cases, &s->passed, &s->failed, &s->errors, &s->skipped, &s->invalid};

	s->context = record_get_digest(from);
	s->inputs = record_get_digest(from);
	s->status = (uint8_t)record_get_u32(from);
	s->reason = (uint8_t)record_get_u32(from);
	s->weak = (uint8_t)record_get_u32(from);
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		*counts[i] = record_get_u32(from);
	s->elements = record_get_u64(from);
	s->checked = form == SUMMARY_WITH_CHECKED ? record_get_u32(from) : 0;
	if (form > SUMMARY_WITH_CHECKED)
		from->bad = true;
}

/* Reads the paths of the blobs, and copies them into `texts`. */
static void get_blobs(struct reader *from, struct arena *texts, struct file_entry *out)
{
	uint32_t count = record_get_u32(from);

	if (count > from->left / 4) { /* every path needs at least 4 bytes, the size of its length field */
		from->bad = true;
		return;
	}
	const char **blobs = count > 0 ? arena_array(texts, count, sizeof *blobs) : NULL;

	for (uint32_t i = 0; i < count && !from->bad; i++) {
		size_t length;
		const char *path = record_get_bytes(from, &length);

		if (path != NULL)
			blobs[i] = arena_copy(texts, path, length);
	}
	out->blobs = blobs;
	out->blob_count = (int)count;
}

static void get_object(struct reader *from, struct object_name *out)
{
	size_t length;
	const void *bytes = record_get_bytes(from, &length);

	if (bytes == NULL || length > sizeof out->bytes) {
		from->bad = true;
		return;
	}
	memcpy(out->bytes, bytes, length);
	out->length = (unsigned char)length;
}

/* Reads all members of the entry except its path. */
static bool get_entry(const MDB_val *key, const MDB_val *value, struct arena *texts, struct file_entry *out)
{
	struct file_seen *seen = &out->seen;
	struct reader from;

	if (!record_read(RECORD_FILE, key->mv_data, key->mv_size, value->mv_data, value->mv_size, &from))
		return false;
	seen->stat.inode = record_get_u64(&from);
	seen->stat.size = record_get_u64(&from);
	seen->stat.mtime_ns = (int64_t)record_get_u64(&from);
	seen->stat.ctime_ns = (int64_t)record_get_u64(&from);
	seen->read_ns = (int64_t)record_get_u64(&from);
	seen->content = record_get_digest(&from);
	uint32_t form = record_get_u32(&from);

	out->has_summary = form != SUMMARY_NONE;
	if (out->has_summary)
		get_summary(&from, form, &out->summary);
	get_blobs(&from, texts, out);
	if (!from.bad && from.left > 0)
		get_object(&from, &seen->object);
	return !from.bad && from.left == 0;
}

/* --- All rows ---------------------------------------------------------------------------------------------------- */

/* The rows with from <= key < before, in bytewise order. If `before` has no bytes, the range ends at the end of the
 * table. */
struct range {
	MDB_val from, before;
	char bytes[KEY_MAX]; /* of `before` */
};

/* Sets `out` to the range of the keys that start with `prefix`. The end of the range, out->before, is `prefix` with its
 * last byte increased by one. */
static void range_of(const char *prefix, struct range *out)
{
	size_t length = strlen(prefix), end = length;

	while (end > 0 && (unsigned char)prefix[end - 1] == UCHAR_MAX)
		end--;
	memcpy(out->bytes, prefix, end);
	if (end > 0)
		out->bytes[end - 1] = (char)((unsigned char)out->bytes[end - 1] + 1);
	out->from = (MDB_val){length, (void *)prefix};
	out->before = (MDB_val){end, out->bytes};
}

static bool is_before(const MDB_val *key, const MDB_val *end)
{
	size_t both = key->mv_size < end->mv_size ? key->mv_size : end->mv_size;
	int order = both == 0 ? 0 : memcmp(key->mv_data, end->mv_data, both);

	return end->mv_size == 0 || order < 0 || (order == 0 && key->mv_size < end->mv_size);
}

static void visit_row(const MDB_val *key, const MDB_val *value, const struct file_visitor *visitor, int64_t *damaged)
{
	struct file_entry entry = {0};
	struct arena texts = {0};
	char path[KEY_MAX + 1];

	if (key->mv_size <= KEY_MAX && get_entry(key, value, &texts, &entry)) {
		memcpy(path, key->mv_data, key->mv_size);
		path[key->mv_size] = '\0';
		entry.path = path;
		visitor->visit(&entry, visitor->context);
	} else {
		++*damaged;
	}
	arena_free(&texts);
}

struct pass {
	MDB_txn *txn;
	MDB_dbi table;
	struct range range;
	struct file_visitor visitor;
	int64_t damaged;
	int rc; /* of LMDB */
};

static void make_pass(struct pass *pass)
{
	MDB_val key = pass->range.from, value;
	MDB_cursor *cursor;
	int rc = mdb_cursor_open(pass->txn, pass->table, &cursor);

	if (rc == 0) {
		rc = mdb_cursor_get(cursor, &key, &value, key.mv_size > 0 ? MDB_SET_RANGE : MDB_FIRST);
		for (; rc == 0 && is_before(&key, &pass->range.before); rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
			visit_row(&key, &value, &pass->visitor, &pass->damaged);
		mdb_cursor_close(cursor);
	}
	pass->rc = rc == MDB_NOTFOUND ? 0 : rc;
}

static void *pass_in_thread(void *pass)
{
	make_pass(pass);
	return NULL;
}

/* Increases store->damaged by the number of damaged rows that the passes found. Returns 0, or -1 with a message. */
static int finish_passes(struct store *store, const struct pass *passes, int count, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < count; i++) {
		store->damaged += passes[i].damaged;
		rc = rc == 0 ? passes[i].rc : rc;
	}
	return rc == 0 ? 0 : env_fail(&store->env, rc, "read", err);
}

int store_each_file(struct store *store, const char *prefix, store_visit *visit, void *context, struct err *err)
{
	struct pass pass = {.visitor = {visit, context}};

	if (strlen(prefix) > KEY_MAX)
		return 0;
	if (env_begin_read(&store->env, &pass.txn, err) != 0)
		return -1;
	pass.table = store->env.table[TABLE_FILES];
	range_of(prefix, &pass.range);
	make_pass(&pass);
	mdb_txn_abort(pass.txn);
	return finish_passes(store, &pass, 1, err);
}

int store_each_file_apart(struct store *store, const char *prefix, const struct file_visitor *inside,
			  const struct file_visitor *others, struct err *err)
{
	enum { INSIDE, BELOW, ABOVE, PASSES };
	struct pass passes[PASSES] = {[INSIDE] = {.visitor = *inside}, [BELOW] = {.visitor = *others}, [ABOVE] = {.visitor = *others}};
	MDB_txn *txn, *second = NULL;
	pthread_t thread;

	if (env_begin_read(&store->env, &txn, err) != 0)
		return -1;
	range_of(prefix, &passes[INSIDE].range);
	passes[BELOW].range.before = passes[INSIDE].range.from;
	passes[ABOVE].range.from = passes[INSIDE].range.before;
	/* The second thread needs its own transaction: LMDB allows only one thread to use a transaction. */
	bool two = env_begin_second_read(&store->env, &second) == 0;

	for (int i = 0; i < PASSES; i++) {
		passes[i].txn = i == INSIDE && two ? second : txn;
		passes[i].table = store->env.table[TABLE_FILES];
	}
	bool threaded = two && pthread_create(&thread, NULL, pass_in_thread, &passes[INSIDE]) == 0;

	make_pass(&passes[BELOW]);
	make_pass(&passes[ABOVE]);
	if (threaded)
		pthread_join(thread, NULL);
	else
		make_pass(&passes[INSIDE]);
	mdb_txn_abort(txn);
	if (two)
		mdb_txn_abort(second);
	return finish_passes(store, passes, PASSES, err);
}

struct gathered {
	struct arena *arena;
	struct file_entry *entries;
	size_t count, room;
};

static void gather(const struct file_entry *entry, void *context)
{
	struct gathered *all = context;

	if (all->count == all->room) /* another process added rows after they were counted */
		return;
	struct file_entry *copy = &all->entries[all->count++];
	const char **blobs =
	    entry->blob_count > 0 ? arena_array(all->arena, (size_t)entry->blob_count, sizeof *blobs) : NULL;

	*copy = *entry;
	copy->path = arena_string(all->arena, entry->path);
	for (int i = 0; i < entry->blob_count; i++)
		blobs[i] = arena_string(all->arena, entry->blobs[i]);
	copy->blobs = blobs;
}

static int count_rows(struct env *env, size_t *count, struct err *err)
{
	MDB_txn *txn;
	MDB_stat stat;

	if (env_begin_read(env, &txn, err) != 0)
		return -1;
	int rc = mdb_stat(txn, env->table[TABLE_FILES], &stat);

	mdb_txn_abort(txn);
	*count = rc == 0 ? stat.ms_entries : 0;
	return rc == 0 ? 0 : env_fail(env, rc, "read", err);
}

int store_files(struct store *store, const char *prefix, struct arena *arena, const struct file_entry **out,
		struct err *err)
{
	struct gathered all = {.arena = arena};

	*out = NULL;
	if (count_rows(&store->env, &all.room, err) != 0)
		return -1;
	all.entries = arena_array(arena, all.room, sizeof *all.entries);
	if (store_each_file(store, prefix, gather, &all, err) != 0)
		return -1;
	*out = all.entries;
	return (int)all.count;
}

/* --- Writing ----------------------------------------------------------------------------------------------------- */

struct batch {
	const struct file_entry *entries;
	int count;
	const char *const *removed;
	int removed_count;
};

static bool is_key(const char *path, MDB_val *key)
{
	*key = (MDB_val){strlen(path), (void *)path};
	return key->mv_size > 0 && key->mv_size <= KEY_MAX;
}

static int put_row(MDB_txn *txn, MDB_dbi table, const MDB_val *key, const struct file_entry *entry)
{
	struct buf body = {0}, record = {0};

	put_entry(&body, entry);
	int rc = MDB_BAD_VALSIZE;

	if (record_write(RECORD_FILE, key->mv_data, key->mv_size, body.data, body.length, &record) == 0) {
		MDB_val name = *key, row = {record.length, record.data};

		rc = mdb_put(txn, table, &name, &row, 0);
	}
	buf_free(&body);
	buf_free(&record);
	return rc;
}

static int write_batch(MDB_txn *txn, struct env *env, void *context)
{
	const struct batch *batch = context;
	MDB_dbi table = env->table[TABLE_FILES];
	MDB_val key;
	int rc = 0;

	for (int i = 0; i < batch->removed_count && rc == 0; i++) {
		if (is_key(batch->removed[i], &key))
			rc = mdb_del(txn, table, &key, NULL);
		rc = rc == MDB_NOTFOUND ? 0 : rc;
	}
	for (int i = 0; i < batch->count && rc == 0; i++)
		if (is_key(batch->entries[i].path, &key))
			rc = put_row(txn, table, &key, &batch->entries[i]);
	return rc;
}

int store_put_files(struct store *store, const struct file_entry *entries, int count, const char *const *removed,
		    int removed_count, struct err *err)
{
	struct batch batch = {entries, count, removed, removed_count};

	return count + removed_count == 0 ? 0 : env_write(&store->env, write_batch, &batch, err);
}
