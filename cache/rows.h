/* rows - how the keys and rows of the tables of verdicts and of what was last seen are made, for all who write them. */
#ifndef REFTEST_CACHE_ROWS_H
#define REFTEST_CACHE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include <lmdb.h>

#include "base/buf.h"
#include "base/hash.h"
#include "cache/env.h"
#include "cache/record.h"

enum { PAIR = 2 * DIGEST_BYTES };

struct pair {
	unsigned char bytes[PAIR];
};

struct pair pair_of(const struct digest *first, const struct digest *second);
struct pair case_key(const char *definition, const char *case_id);

/* LMDB's answers. */
int row_put(MDB_txn *txn, MDB_dbi table, enum record_kind kind, const void *key, size_t key_length,
	    const struct buf *body);
int row_put_verdict(MDB_txn *txn, struct env *env, const struct digest *subject, const struct digest *witness,
		    uint64_t transaction, uint32_t place, const char *text, size_t length);
int row_put_latest(MDB_txn *txn, struct env *env, const struct digest *subject, const struct digest *witness,
		   const char *definition, const char *case_id, const void *fields, size_t fields_length);

#endif
