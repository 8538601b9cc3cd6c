/* env - the LMDB environment below <root>/.reftest/cache: opened with care, grown, set aside when it is damaged.
 *
 * It is handed to LMDB only if it can be trusted (cache/trust.h). Openers wait for one another (flock on
 * .reftest). Descriptors are close-on-exec; a handle must not cross a fork, and one process opens a root only once.
 * Writers elsewhere, the file's growth, and its removal or replacement under a running process are dealt with. Not
 * dealt with, because LMDB maps the file: cutting it short while it is open ends the process. */
#ifndef REFTEST_CACHE_ENV_H
#define REFTEST_CACHE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lmdb.h>

#include "base/err.h"

enum table { TABLE_VERDICTS, TABLE_LATEST, TABLE_FILES, TABLE_FACTS, TABLE_COUNT };

enum { ENV_ROOT_MAX = 4096, ENV_PATH_MAX = ENV_ROOT_MAX + 64 };

struct env {
	MDB_env *mdb; /* NULL: closed, or lost while it was to be opened again */
	MDB_dbi table[TABLE_COUNT];
	char root[ENV_ROOT_MAX];
	char path[ENV_PATH_MAX]; /* <root>/.reftest/cache */
	bool read_only;   /* as it was asked for */
	bool writable;    /* LMDB may write */
	bool failing;     /* the last write did not reach the disk */
	bool checked;     /* every page was looked at when it was opened */
	bool committed;   /* this process wrote to it */
	struct err why_not; /* why it is not writable */
};

enum env_answer { ENV_ERROR = -1, ENV_NOTHING = 0, ENV_OPEN = 1 };

/* Opens, makes, mends. `read_only`: changes nothing, and answers ENV_NOTHING if there is none yet. `note` gets a
 * sentence if something was set aside or cannot be written, "" otherwise. */
enum env_answer env_open(struct env *env, const char *root, bool read_only, struct err *note, struct err *err);
void env_close(struct env *env);

/* A read transaction, to be ended by mdb_txn_abort. 0, or -1 with a sentence. */
int env_begin_read(struct env *env, MDB_txn **txn, struct err *err);

/* Runs `work` inside one write transaction and commits it. `work` gives LMDB's answer, 0 for success; it may be run
 * again from the start (after the map has grown). 0, or -1 with the sentence why nothing of it was kept. */
enum { ENV_ONLY_LOOKED = -1 }; /* work's answer for: all is well, and nothing is to be kept of it; env_write gives 0 */
typedef int env_work(MDB_txn *txn, struct env *env, void *context);
int env_write(struct env *env, env_work *work, void *context, struct err *err);

/* So many octets are about to be written: gives the map room for them beforehand, for each time it must grow while `work`
 * runs, all of it is done again. Nothing comes of it if there is no such room. */
void env_expect(struct env *env, uint64_t bytes);

/* Writes the file anew without its free pages, if that makes it half as large at least, and puts it in the old one's place.
 * Other processes that have the old one open go over to the new one with their next write. 1: done, 0: it did not pay, or
 * the filesystem cannot exchange two names; -1 with the sentence, and everything is as it was. `bytes`: size now. */
int env_compact(struct env *env, int64_t *bytes, struct err *err);

/* A sentence for one of LMDB's or errno's answers. Always -1. */
int env_fail(const struct env *env, int rc, const char *what, struct err *err);

/* Octets of the data file. 0, or -1. */
int env_size(const struct env *env, int64_t *bytes, struct err *err);

#endif
