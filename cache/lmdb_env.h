/* lmdb_env - opens the LMDB environment <root>/.reftest/cache, enlarges it, and sets a damaged environment aside.
 *
 * LMDB opens a file only after this module has checked the file (cache/integrity.h). While a process opens or closes
 * the store, it holds a lock (flock) on the folder .reftest. Other processes wait for this lock before they open or
 * close the store. All descriptors are close-on-exec. A handle must not be used after a fork. A process must not open
 * the same store twice. While the store is open, other processes may write to the file, enlarge it, remove it, or
 * replace it. Other processes must not truncate the file. LMDB maps the file, so a read beyond the new end would kill
 * this process with SIGBUS. */
#ifndef REFTEST_CACHE_LMDB_ENV_H
#define REFTEST_CACHE_LMDB_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lmdb.h>

#include "base/err.h"

enum table { TABLE_VERDICTS, TABLE_LATEST, TABLE_FILES, TABLE_FACTS, TABLE_COUNT };

/* The format of the whole store. Each kind of row also has its own format (cache/checksummed_record.h). */
enum { ENV_FORMAT = 2 };
enum { ENV_ROOT_MAX = 4096, ENV_PATH_MAX = ENV_ROOT_MAX + 64 };

struct env {
	MDB_env *mdb; /* NULL if the store is closed, or if reopening failed */
	int locks;    /* the descriptor that lmdb_locks_open returned */
	MDB_dbi table[TABLE_COUNT];
	char root[ENV_ROOT_MAX];
	char path[ENV_PATH_MAX]; /* <root>/.reftest/cache */
	bool read_only;   /* the argument `read_only` of env_open */
	bool writable;    /* LMDB may write to the store */
	bool failing;     /* the last write failed */
	bool checked;     /* true if every page was checked when the store was opened */
	bool committed;   /* true after this process has written to the store */
	struct err why_not; /* the reason why the store is not writable */
};

enum env_answer { ENV_ERROR = -1, ENV_NOTHING = 0, ENV_OPEN = 1 };

/* Opens the store. Creates the store if it is missing. If the store is damaged, sets it aside and creates a new one. If
 * `read_only` is true, changes nothing on disk, and returns ENV_NOTHING if there is no store yet. Writes a message to
 * `note` if a store was set aside, or if the store cannot be written; otherwise sets `note` to "". */
enum env_answer env_open(struct env *env, const char *root, bool read_only, struct err *note, struct err *err);
void env_close(struct env *env);

/* Begins a read transaction, which the caller ends with mdb_txn_abort. Returns 0, or -1 with a message. */
int env_begin_read(struct env *env, MDB_txn **txn, struct err *err);

/* Begins another read transaction, for a second thread, while the first one is open. Unlike env_begin_read, does not
 * move the memory map, which the first transaction uses. Returns 0 or LMDB's error. */
int env_begin_second_read(struct env *env, MDB_txn **txn);

/* Runs `work` inside one write transaction and commits the transaction. `work` returns an LMDB error, or 0 for success.
 * If the map has to grow, `work` runs again from the start. Returns 0. On failure, stores nothing and returns -1 with a
 * message. */
/* `work` returns ENV_ONLY_LOOKED if it has changed nothing; env_write then commits nothing and returns 0 */
enum { ENV_ONLY_LOOKED = -1 };
typedef int env_work(MDB_txn *txn, struct env *env, void *context);
int env_write(struct env *env, env_work *work, void *context, struct err *err);

/* Enlarges the map so that about `bytes` bytes can be written. Without env_expect, `work` starts again each time the
 * map is full. Does nothing if the map cannot grow. */
void env_expect(struct env *env, uint64_t bytes);

/* Writes a copy of the store that has no free pages. If the copy is at most half as large as the store, the copy
 * replaces the store. Another process that has the old file open continues to read it, and opens the new file at its
 * next write. Returns 1 if the store was replaced. Returns 0 if the copy is larger than half of the store, or if the
 * filesystem cannot exchange two names. On an error, returns -1 with a message, and nothing has changed. Sets `bytes`
 * to the new size. */
int env_compact(struct env *env, int64_t *bytes, struct err *err);

/* Sets `err` to a message about `rc`, which is an error of LMDB or an errno. Always returns -1. */
int env_fail(const struct env *env, int rc, const char *what, struct err *err);

/* The size of the data file in bytes. Returns 0, or -1. */
int env_size(const struct env *env, int64_t *bytes, struct err *err);

#endif
