/* lmdb_env - opens an LMDB file that may be damaged, and handles writes that fail.
 *
 *   flock(.reftest) ─▶ integrity_check ─▶ mdb_env_open ─▶ the tables have this format ─▶ open
 *                        │ damaged             │ not writable     │ another format
 *                        ▼                     ▼                  ▼
 *                   set aside, create       read-only, note    set aside, create
 *
 * LMDB cannot use its lock file if this user may not write to the folder; the store is then read without the lock file.
 * Without the lock file, another process may free and reuse pages while this process reads them. In practice, this does
 * no harm: LMDB reuses a freed page only two commits later, and a read in reftest takes at most a millisecond.
 * Moreover, the checksum of a record reveals an overwritten page.
 *
 * LMDB also maps the lock file. On a full disk, the first write to a page of that mapping would kill the process with
 * SIGBUS. Therefore all blocks of the lock file are allocated on disk before LMDB maps it. If the lock file cannot be
 * allocated, the store is read without it.
 *
 * Limits. LMDB needs a local disk, because its locks and its mapping do not work between machines that share a network
 * filesystem. If SIGSTOP stops a process in the middle of a commit, other writers wait until the stopped process
 * continues. Ctrl-Z waits for the end of the commit (cache/block_sigtstp.h). A process that waits for a long time
 * prints which process it waits for (cache/lock_wait.h).
 *
 * Each commit syncs data.mdb to disk once (MDB_NOMETASYNC). The file is therefore always consistent, but a power
 * failure may lose the last commit. */
#include "cache/lmdb_env.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/reftest_folder.h"
#include "base/trace.h"
#include "cache/block_sigtstp.h"
#include "cache/integrity.h"
#include "cache/lmdb_locks.h"
#include "cache/lock_wait.h"
#include "cache/quarantine.h"
#include "cache/checksummed_record.h"

enum {
	MAP_START = 16 << 20,  /* initial size of the map in bytes; the size is doubled whenever the map is full */
	COMPACT_LEAST = 1 << 20, /* in bytes; a smaller file is not compacted */
	READERS = 256,         /* the largest number of simultaneous readers, in all processes together */
	LOCK_BYTES = 20 << 10, /* size in bytes of a lock.mdb for READERS readers */
	ATTEMPTS = 3,
	/* The descriptors that wait_for_turn returns have this number or a higher one. The descriptors that LMDB opens
	 * have lower numbers. */
	TURN_FD = 200,
	FILE_PATH = ENV_PATH_MAX + 32,
	PAGE = 4096, /* assumed size of a page in bytes, used only for estimates */
};

static const uint64_t map_max = (uint64_t)1 << 40;

static const char *const table_names[TABLE_COUNT] = {
    [TABLE_VERDICTS] = "verdicts",
    [TABLE_LATEST] = "latest",
    [TABLE_FILES] = "files",
    [TABLE_FACTS] = "facts",
};

static const char store_key[] = "reftest"; /* key in LMDB's main table; its value is the store's format */

/* --- Sentences --------------------------------------------------------------------------------------------------- */

int env_fail(const struct env *env, int rc, const char *what, struct err *err)
{
	const char *hint = rc == EIO ? " (is the disk full?)" : "";

	return err_set(err, "the cache %s cannot be %s: %s%s", env->path, what, mdb_strerror(rc), hint);
}

/* Writes "<path>/name" to `out`, truncated if the path of the root is too long. */
static const char *file_in(const struct env *env, const char *name, char out[FILE_PATH])
{
	snprintf(out, FILE_PATH, "%s/%s", env->path, name);
	return out;
}

/* --- Folders ----------------------------------------------------------------------------------------------------- */

/* Creates .reftest/cache if it is missing. The caller must hold the lock of wait_for_turn, because another process may
 * be setting a damaged store aside and creating a new folder with the same name. */
static int make_folder(const struct env *env, struct err *err)
{
	if (mkdir(env->path, 0777) == 0)
		reftest_folder_ignore(env->root); /* older versions of `generate` made .reftest without a .gitignore */
	else if (errno != EEXIST)
		return err_errno(err, "%s cannot be created", env->path);
	return 0;
}

static void lock_folder(const struct env *env, int fd, const char *folder, int how)
{
	struct lock_wait waiting;

	if (flock(fd, how | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return;
	lock_wait_begin(&waiting, env->path, folder);
	while (flock(fd, how) != 0 && errno == EINTR)
		;
	lock_wait_end(&waiting);
}

/* Takes the lock on the folder .reftest, after waiting until no other process is opening or closing the store. The lock
 * is held until the returned descriptor is closed. Returns -1 if there is no folder to lock, or if the filesystem does
 * not support locks.
 *
 * When a process dies, the kernel closes its descriptors in ascending order. The returned descriptor has a high number,
 * so LMDB's own lock is released before the lock on the folder. In the opposite order, the next process could have the
 * lock on the folder while LMDB's lock is still held. LMDB would then assume that lock.mdb is complete, although the
 * dead process may have initialised only a part of it. */
static int wait_for_turn(const struct env *env, bool read_only)
{
	char folder[FILE_PATH];

	snprintf(folder, sizeof folder, "%s/.reftest", env->root);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int high = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, TURN_FD) : -1;

	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (fd >= 0)
		lock_folder(env, fd, folder, read_only ? LOCK_SH : LOCK_EX);
	return fd;
}

/* --- LMDB -------------------------------------------------------------------------------------------------------- */

/* Allocates every byte of lock.mdb, so that a write to the mapping of lock.mdb cannot fail. Returns 0 or errno. */
static int reserve_lock(const struct env *env)
{
	char path[FILE_PATH];
	struct stat st;
	int fd = open(file_in(env, "lock.mdb", path), O_RDWR | O_CREAT | O_CLOEXEC, 0644), rc = 0;

	if (fd < 0)
		return errno;
	if (fstat(fd, &st) != 0)
		rc = errno;
	else if (st.st_size < LOCK_BYTES || st.st_blocks * 512 < st.st_size)
		rc = fallocate(fd, 0, 0, LOCK_BYTES) == 0 ? 0 : errno;
	close(fd);
	return rc == EOPNOTSUPP || rc == ENOSYS ? 0 : rc; /* a filesystem without support for allocation is accepted */
}

static bool lock_usable(const struct env *env)
{
	char path[FILE_PATH];
	struct stat st;

	return access(file_in(env, "lock.mdb", path), R_OK | W_OK) == 0 && stat(path, &st) == 0 &&
	       st.st_size >= LOCK_BYTES && st.st_blocks * 512 >= st.st_size;
}

static void shut(struct env *env)
{
	if (env->mdb == NULL)
		return;
	mdb_env_close(env->mdb);
	if (env->locks != LMDB_LOCKS_NONE)
		close(env->locks);
	env->mdb = NULL;
	env->locks = LMDB_LOCKS_NONE;
}

static void lock(const struct env *env, enum lmdb_lock which)
{
	char path[FILE_PATH];

	lmdb_lock(env->locks, which, env->path, file_in(env, "lock.mdb", path));
}

/* Frees the reader slots of dead processes. Sets `dead`, if not NULL, to their number. Returns 0 or LMDB's error. */
static int free_dead_readers(struct env *env, int *dead)
{
	lock(env, LMDB_LOCK_READERS);
	int rc = mdb_reader_check(env->mdb, dead);

	lmdb_unlock(env->locks, LMDB_LOCK_READERS);
	return rc;
}

/* Tries once to begin a transaction. Takes the lock that the transaction needs; end_write releases the lock of a write
 * transaction. */
static int begin_locked(struct env *env, unsigned flags, MDB_txn **txn)
{
	enum lmdb_lock which = (flags & MDB_RDONLY) != 0 ? LMDB_LOCK_READERS : LMDB_LOCK_WRITE;

	lock(env, which);
	int rc = mdb_txn_begin(env->mdb, NULL, flags, txn);

	if (rc != 0 || which == LMDB_LOCK_READERS)
		lmdb_unlock(env->locks, which);
	return rc;
}

/* Gives this process's map the size that the last commit of another process stored. Sets `larger` to whether the map has
 * become larger. Returns 0 or LMDB's error. */
static int adopt_map_size(struct env *env, bool *larger)
{
	MDB_envinfo before, after;
	int rc = mdb_env_info(env->mdb, &before);

	if (rc == 0)
		rc = mdb_env_set_mapsize(env->mdb, 0);
	if (rc == 0)
		rc = mdb_env_info(env->mdb, &after);
	*larger = rc == 0 && after.me_mapsize > before.me_mapsize;
	return rc;
}

/* Begins a transaction. If another process has enlarged the map, enlarges this process's map to the same size, as often
 * as other processes enlarge theirs meanwhile. If no reader slot is free, frees the slots of dead readers. */
static int begin(struct env *env, unsigned flags, MDB_txn **txn)
{
	int rc = begin_locked(env, flags, txn);

	for (bool larger = true; rc == MDB_MAP_RESIZED && larger;) {
		int failed = adopt_map_size(env, &larger);

		rc = failed != 0 ? failed : begin_locked(env, flags, txn);
	}
	if (rc == MDB_READERS_FULL && (rc = free_dead_readers(env, NULL)) == 0)
		rc = begin_locked(env, flags, txn);
	return rc;
}

/* Ends a write transaction: commits it if `rc` is 0, otherwise discards it. Returns `rc`, or the error of the commit. */
static int end_write(struct env *env, MDB_txn *txn, int rc)
{
	if (rc == 0)
		rc = mdb_txn_commit(txn);
	else
		mdb_txn_abort(txn);
	lmdb_unlock(env->locks, LMDB_LOCK_WRITE);
	return rc;
}

/* Returns the size of the map: twice the size of the file. */
static size_t map_size(const struct env *env)
{
	int64_t bytes = 0;

	if (env_size(env, &bytes, NULL) != 0 || bytes < MAP_START / 2)
		return MAP_START;
	return ((size_t)bytes * 2 | 0xFFFFF) + 1;
}

static int open_lmdb(struct env *env, bool write)
{
	unsigned flags = MDB_NOTLS | MDB_NOMETASYNC;
	char path[FILE_PATH];
	int rc, fd;

	if (!write)
		flags |= MDB_RDONLY | (lock_usable(env) ? 0u : (unsigned)MDB_NOLOCK);
	if ((rc = mdb_env_create(&env->mdb)) != 0)
		return rc;
	if ((rc = mdb_env_set_maxdbs(env->mdb, TABLE_COUNT)) == 0 &&
	    (rc = mdb_env_set_maxreaders(env->mdb, READERS)) == 0 &&
	    (rc = mdb_env_set_mapsize(env->mdb, map_size(env))) == 0 &&
	    (rc = mdb_env_open(env->mdb, env->path, flags, 0644)) == 0 &&
	    (rc = mdb_env_get_fd(env->mdb, &fd)) == 0)
		/* LMDB 0.9.24 does not make this descriptor close-on-exec. */
		rc = fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : errno;
	if (rc != 0) {
		shut(env);
		return rc;
	}
	if ((flags & MDB_NOLOCK) == 0)
		env->locks = lmdb_locks_open(file_in(env, "lock.mdb", path));
	free_dead_readers(env, NULL);
	return 0;
}

/* Returns 0 if the format of the store is ENV_FORMAT, MDB_INCOMPATIBLE if it is another format, and MDB_NOTFOUND if the
 * store is empty. */
static int check_format(MDB_txn *txn)
{
	MDB_val key = {sizeof store_key, (void *)store_key}, value;
	struct reader body;
	MDB_stat stat;
	MDB_dbi dbi;
	int rc = mdb_dbi_open(txn, NULL, 0, &dbi);

	if (rc != 0 || (rc = mdb_stat(txn, dbi, &stat)) != 0 || (rc = mdb_get(txn, dbi, &key, &value)) != 0)
		return rc == MDB_NOTFOUND && stat.ms_entries > 0 ? MDB_INCOMPATIBLE : rc;
	if (!record_read(RECORD_STORE, store_key, sizeof store_key, value.mv_data, value.mv_size, &body) ||
	    record_get_u32(&body) != ENV_FORMAT)
		return MDB_INCOMPATIBLE;
	return 0;
}

static int open_tables(struct env *env, MDB_txn *txn, unsigned flags)
{
	int rc = 0;

	for (int i = 0; i < TABLE_COUNT && rc == 0; i++)
		rc = mdb_dbi_open(txn, table_names[i], flags, &env->table[i]);
	return rc;
}

/* Opens the tables, all of which must exist. */
static int find_tables(struct env *env)
{
	MDB_txn *txn;
	int rc = begin(env, MDB_RDONLY, &txn);

	if (rc != 0)
		return rc;
	if ((rc = check_format(txn)) != 0 || (rc = open_tables(env, txn, 0)) != 0) {
		mdb_txn_abort(txn);
		return rc;
	}
	return mdb_txn_commit(txn); /* mdb_txn_abort would close the table handles */
}

static int make_tables(struct env *env)
{
	MDB_val key = {sizeof store_key, (void *)store_key}, value;
	struct buf body = {0}, record = {0};
	MDB_txn *txn;
	MDB_dbi dbi;
	int rc = begin(env, 0, &txn);

	if (rc != 0)
		return rc;
	record_put_u32(&body, ENV_FORMAT);
	record_write(RECORD_STORE, store_key, sizeof store_key, body.data, body.length, &record);
	value = (MDB_val){record.length, record.data};
	if ((rc = open_tables(env, txn, MDB_CREATE)) == 0 && (rc = mdb_dbi_open(txn, NULL, 0, &dbi)) == 0)
		rc = mdb_put(txn, dbi, &key, &value, 0);
	rc = end_write(env, txn, rc);
	buf_free(&body);
	buf_free(&record);
	env->committed = env->committed || rc == 0;
	return rc;
}

/* --- Opening ----------------------------------------------------------------------------------------------------- */

/* Opens the store without retrying. Returns 0; on failure, closes everything and returns the error of LMDB or errno.
 * MDB_NOTFOUND means that the store is empty and that `write` is false, so no tables were created. */
static int attempt(struct env *env, bool write)
{
	int rc = write ? reserve_lock(env) : 0;

	if (rc != 0 || (rc = open_lmdb(env, write)) != 0)
		return rc;
	rc = find_tables(env);
	if (rc == MDB_NOTFOUND && write)
		rc = make_tables(env);
	if (rc != 0)
		shut(env);
	env->writable = rc == 0 && write;
	return rc;
}

/* Returns true if the contents of the file caused the error, and false if the system caused the error (permissions,
 * memory, disk). */
static bool content_is_bad(int rc)
{
	return rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH || rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND ||
	       rc == MDB_PANIC || rc == MDB_INCOMPATIBLE || rc == MDB_BAD_TXN;
}

static const char *content_sentence(int rc)
{
	return rc == MDB_VERSION_MISMATCH || rc == MDB_INCOMPATIBLE ? "another version of reftest created "
								      "it" : mdb_strerror(rc);
}

static enum env_answer open_for_reading(struct env *env, struct err *err)
{
	int rc = attempt(env, false);

	if (rc == 0)
		return ENV_OPEN;
	if (rc == MDB_NOTFOUND)
		return ENV_NOTHING;
	if (content_is_bad(rc))
		return err_set(err, "the cache %s cannot be used: %s; the next run with write permission moves this cache aside and "
				    "creates a new one",
		               env->path, content_sentence(rc));
	return env_fail(env, rc, "opened", err);
}

static enum env_answer open_read_only(struct env *env, struct err *err)
{
	struct err why = {""};
	enum integrity found = integrity_check(env->path, &why);

	err_set(&env->why_not, "the cache %s was opened read-only", env->path);
	env->checked = found == INTEGRITY_CHECKED;
	if (found == INTEGRITY_NOTHING)
		return ENV_NOTHING;
	if (found == INTEGRITY_ERROR)
		return err_set(err, "%s", why.text);
	if (found == INTEGRITY_DAMAGED)
		return err_set(err, "the cache %s cannot be used: %.1000s; the next run with write permission sets it "
				    "aside",
		               env->path, why.text);
	return open_for_reading(env, err);
}

/* Opens the store for reading, after LMDB could not open the existing store for writing and returned the error `rc`.
 * Writes a message to `note`. */
static enum env_answer fall_back(struct env *env, int rc, bool nothing, struct err *note, struct err *err)
{
	env_fail(env, rc, "written", &env->why_not);
	enum env_answer answer = nothing ? ENV_NOTHING : open_for_reading(env, err);

	if (answer == ENV_NOTHING)
		return err_set(err, "%s", env->why_not.text);
	if (answer == ENV_OPEN)
		err_set(note, "%.1500s. Stored verdicts are used, but new verdicts are not stored", env->why_not.text);
	return answer;
}

static enum env_answer open_writable(struct env *env, struct err *note, struct err *err)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		struct err why = {""};
		enum integrity found = integrity_check(env->path, &why);

		env->checked = found == INTEGRITY_CHECKED;
		if (found == INTEGRITY_ERROR)
			return err_set(err, "%s", why.text);
		int rc = found == INTEGRITY_DAMAGED ? MDB_INVALID : attempt(env, true);

		if (rc == 0)
			return ENV_OPEN;
		if (!content_is_bad(rc))
			return fall_back(env, rc, found == INTEGRITY_NOTHING, note, err);
		if (found != INTEGRITY_DAMAGED)
			err_set(&why, "%s", content_sentence(rc));
		if (quarantine_put(env->path, &why, note, err) != 0)
			return ENV_ERROR;
	}
	return err_set(err, "the cache %s cannot be opened: reftest replaced it several times, and each new cache was "
			    "damaged, too",
	               env->path);
}

enum env_answer env_open(struct env *env, const char *root, bool read_only, struct err *note, struct err *err)
{
	enum env_answer answer = ENV_ERROR;

	*env = (struct env){.read_only = read_only, .locks = LMDB_LOCKS_NONE};
	err_set(note, "%s", "");
	err_set(err, "%s", "");
	if (strlen(root) >= sizeof env->root)
		return err_set(err, "the path of the dataset is so long that no cache can be created below it");
	strcpy(env->root, root);
	snprintf(env->path, sizeof env->path, "%s/.reftest/cache", root);
	if (!read_only && reftest_folder_make(env->root, err) != 0 && access(env->path, F_OK) != 0)
		return ENV_ERROR;
	err_set(err, "%s", "");
	const struct sigtstp_mask mask = sigtstp_block();
	int turn = wait_for_turn(env, read_only);

	if (read_only)
		answer = open_read_only(env, err);
	else if (make_folder(env, err) == 0 || access(env->path, F_OK) == 0) {
		err_set(err, "%s", "");
		answer = open_writable(env, note, err);
	}
	if (turn >= 0)
		close(turn);
	sigtstp_unblock(&mask);
	return answer;
}

/* Closes the store while holding the lock of wait_for_turn. When LMDB's last user closes a store, LMDB destroys the
 * mutexes in lock.mdb. Without the lock, another process could open the store at that moment. It would use the
 * destroyed mutexes, and each of its transactions would fail with EINVAL. */
static void shut_in_turn(struct env *env)
{
	const struct sigtstp_mask mask = sigtstp_block();
	int turn = env->mdb != NULL ? wait_for_turn(env, false) : -1;

	shut(env);
	if (turn >= 0)
		close(turn);
	sigtstp_unblock(&mask);
}

void env_close(struct env *env)
{
	bool clean = env->mdb != NULL && env->writable && (env->committed || env->checked);

	shut_in_turn(env);
	if (clean)
		integrity_mark_clean(env->path);
}

/* --- Transactions ------------------------------------------------------------------------------------------------ */

/* Closes and reopens the store. Call this function after an error from which LMDB cannot recover, or after the file was
 * removed. */
static int open_again(struct env *env, struct err *err)
{
	char root[ENV_ROOT_MAX];
	struct err note, why = {""};

	shut_in_turn(env);
	strcpy(root, env->root);
	if (env_open(env, root, env->read_only, &note, &why) == ENV_OPEN) {
		trace("cache", "opened %s again. %s", env->path, note.text);
		return 0;
	}
	return err_set(err, "the cache %s is gone%s%s", env->path, why.text[0] != '\0' ? ": " : "", why.text);
}

/* Returns false if the data file was removed or replaced: by git clean, or by a process that set the store aside. */
static bool still_in_place(const struct env *env)
{
	char path[FILE_PATH];
	struct stat open_one, named;
	int fd;

	return mdb_env_get_fd(env->mdb, &fd) == 0 && fstat(fd, &open_one) == 0 &&
	       stat(file_in(env, "data.mdb", path), &named) == 0 && open_one.st_ino == named.st_ino &&
	       open_one.st_dev == named.st_dev;
}

int env_begin_read(struct env *env, MDB_txn **txn, struct err *err)
{
	if (env->mdb == NULL && open_again(env, err) != 0)
		return -1;
	int rc = begin(env, MDB_RDONLY, txn);

	if (rc == MDB_PANIC) {
		if (open_again(env, err) != 0)
			return -1;
		rc = begin(env, MDB_RDONLY, txn);
	}
	return rc == 0 ? 0 : env_fail(env, rc, "read", err);
}

int env_begin_second_read(struct env *env, MDB_txn **txn)
{
	return begin_locked(env, MDB_RDONLY, txn);
}

/* Makes room in the store. First frees the reader slots of dead processes. As long as a dead process has a slot, LMDB
 * does not reuse the pages that the process was reading. If no slot was freed, enlarges the map. */
static int grow(struct env *env)
{
	MDB_envinfo info;
	int dead = 0, rc = free_dead_readers(env, &dead);

	if (rc != 0 || dead > 0)
		return rc;
	if ((rc = mdb_env_info(env->mdb, &info)) != 0)
		return rc;
	if (info.me_mapsize > map_max / 2)
		return MDB_MAP_FULL;
	trace("cache", "growing the map to %zu MiB", info.me_mapsize >> 19);
	return mdb_env_set_mapsize(env->mdb, info.me_mapsize * 2);
}

void env_expect(struct env *env, uint64_t bytes)
{
	MDB_envinfo info;
	uint64_t size, wanted;

	if (env->mdb == NULL || !env->writable || mdb_env_info(env->mdb, &info) != 0)
		return;
	wanted = (uint64_t)(info.me_last_pgno + 1) * PAGE + bytes;
	for (size = info.me_mapsize; size < wanted && size <= map_max / 2;)
		size *= 2;
	if (size > info.me_mapsize && mdb_env_set_mapsize(env->mdb, size) == 0)
		trace("cache", "the map has room for %" PRIu64 " MiB", size >> 20);
}

enum { NOT_IN_PLACE = -2 }; /* write_once returns this if the file was replaced; no LMDB error has this number */

/* Runs `work` once, in a write transaction. First checks, while holding the write lock, that the file was not replaced,
 * for example by `gc`. If the file was replaced, a write to the old file would be lost. */
static int write_once(struct env *env, env_work *work, void *context)
{
	MDB_txn *txn;
	int rc = begin(env, 0, &txn);

	if (rc != 0)
		return rc;
	rc = still_in_place(env) ? work(txn, env, context) : NOT_IN_PLACE;
	return end_write(env, txn, rc);
}

/* Calls write_once, and repeats the call as long as the map was full or the file was replaced. Gives up after any other
 * error. */
static int write_until_done(struct env *env, env_work *work, void *context, struct err *err)
{
	int rc = write_once(env, work, context);

	for (int moves = 0; rc == MDB_MAP_FULL || (rc == NOT_IN_PLACE && moves < ATTEMPTS);) {
		moves += rc == NOT_IN_PLACE;
		if (rc == NOT_IN_PLACE && open_again(env, err) != 0)
			return MDB_PANIC;
		if (rc == MDB_MAP_FULL && (rc = grow(env)) != 0)
			return rc;
		rc = write_once(env, work, context);
	}
	return rc;
}

int env_write(struct env *env, env_work *work, void *context, struct err *err)
{
	if ((env->mdb == NULL || !still_in_place(env)) && open_again(env, err) != 0)
		return -1;
	if (!env->writable)
		return err_set(err, "%s", env->why_not.text);
	const struct sigtstp_mask mask = sigtstp_block();
	int rc = write_until_done(env, work, context, err);

	sigtstp_unblock(&mask);
	if (rc == ENV_ONLY_LOOKED)
		return 0;
	if (rc == NOT_IN_PLACE)
		return err_set(err, "other processes keep replacing the cache %s", env->path);
	if (rc == MDB_PANIC && (env->mdb == NULL || open_again(env, err) != 0))
		return -1;
	env->failing = rc != 0;
	env->committed = env->committed || rc == 0;
	return rc == 0 ? 0 : env_fail(env, rc, "written", err);
}

/* --- Compacting -------------------------------------------------------------------------------------------------- */

/* Removes a folder that this module created and that contains only the files of an LMDB environment. */
static void remove_folder(const char *folder)
{
	static const char *const names[] = {"data.mdb", "lock.mdb", "clean"};
	char path[FILE_PATH + 16];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}

/* Writes a copy of the store without free pages to the folder `fresh`, and syncs the copy to disk. Sets `bytes` to the
 * size of the copy. Returns 0, or the error of LMDB or errno. */
static int copy_compact(struct env *env, const char *fresh, int64_t *bytes)
{
	char path[FILE_PATH + 16];
	struct stat st;

	if (mkdir(fresh, 0777) != 0)
		return errno;
	snprintf(path, sizeof path, "%s/data.mdb", fresh);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int rc = fd < 0 ? errno : mdb_env_copyfd2(env->mdb, fd, MDB_CP_COMPACT);

	if (rc == 0 && (fsync(fd) != 0 || fstat(fd, &st) != 0))
		rc = errno;
	if (fd >= 0)
		close(fd);
	*bytes = rc == 0 ? (int64_t)st.st_size : 0;
	return rc;
}

/* Swaps the names of `fresh` and of the environment's folder, and syncs this change to disk. Without the sync, a power
 * failure could bring back the old store and lose later writes. `turn` is a descriptor of the folder .reftest, which
 * contains both folders. */
static bool take_place(const struct env *env, const char *fresh, int turn)
{
	if (renameat2(AT_FDCWD, fresh, AT_FDCWD, env->path, RENAME_EXCHANGE) != 0)
		return false;
	if (turn >= 0 && fsync(turn) != 0)
		trace("cache", "the folder of %s could not be synced to disk", env->path);
	return true;
}

/* Replaces the store with its compact copy. The caller must hold the write lock and the lock of wait_for_turn. Returns
 * 1 if the store was replaced, and 0 if not. On failure, returns -1 and sets `rc` to the error of LMDB or errno. */
static int exchange(struct env *env, const char *fresh, int turn, int64_t *bytes, int *rc)
{
	int64_t before = *bytes, after = 0;

	*rc = copy_compact(env, fresh, &after);
	bool pays = *rc == 0 && after <= before / 2;
	int answer = *rc != 0 ? -1 : pays && take_place(env, fresh, turn);

	if (answer == 1)
		*bytes = after;
	remove_folder(fresh); /* the folder `fresh` now contains either the copy or the store that the copy replaced */
	return answer;
}

/* Compacts the store. The caller must hold the lock of wait_for_turn. Returns the same values as env_compact; on
 * failure, sets `rc` to the error of LMDB or errno. */
static int compact_in_turn(struct env *env, int turn, int64_t *bytes, int *rc)
{
	char fresh[FILE_PATH];
	MDB_txn *txn;
	int answer = 0;

	snprintf(fresh, sizeof fresh, "%s.compact", env->path);
	/* A `gc` that was killed may have left the folder `fresh` behind. If a `gc` was killed after the exchange, this
	 * folder contains the old, large store. */
	remove_folder(fresh);
	if (*bytes < COMPACT_LEAST)
		return 0;
	if ((*rc = begin(env, 0, &txn)) != 0)
		return -1;
	if (still_in_place(env)) /* no other process can replace the file until the transaction ends */
		answer = exchange(env, fresh, turn, bytes, rc);
	end_write(env, txn, ENV_ONLY_LOOKED);
	return answer;
}

int env_compact(struct env *env, int64_t *bytes, struct err *err)
{
	if (env_size(env, bytes, err) != 0)
		return -1;
	if (env->mdb == NULL || !env->writable)
		return 0;
	const struct sigtstp_mask mask = sigtstp_block();
	int turn = wait_for_turn(env, false), rc = 0, answer = compact_in_turn(env, turn, bytes, &rc);

	if (turn >= 0)
		close(turn);
	sigtstp_unblock(&mask);
	if (rc != 0)
		return env_fail(env, rc, "made smaller", err);
	return answer == 1 && open_again(env, err) != 0 ? -1 : answer;
}

int env_size(const struct env *env, int64_t *bytes, struct err *err)
{
	char path[FILE_PATH];
	struct stat st;

	if (stat(file_in(env, "data.mdb", path), &st) != 0)
		return err_errno(err, "%s cannot be read", path);
	*bytes = st.st_size;
	return 0;
}
