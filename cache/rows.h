/* rows - how the keys and rows of the tables of verdicts and of what was last seen are made, for all who write them. */
#ifndef REFTEST_CACHE_ROWS_H
#define REFTEST_CACHE_ROWS_H

#include <stdbool.h>
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

/* Rows that are put one after the other in one transaction, with cursors of their own; {0}, and then its transaction and
 * environment. Rows that come in the order of their keys, behind all that is there, fill their pages. */
struct rows {
	MDB_txn *txn;
	struct env *env;
	MDB_cursor *cursor[TABLE_COUNT]; /* NULL until needed */
	bool scattered[TABLE_COUNT];	 /* a key did not come behind all others */
	struct buf body, record;
};
void rows_end(struct rows *rows);

/* Steps over what a verdict's row has before its text, and gives the text's time. */
int64_t row_made(struct reader body);

/* LMDB's answers. */
int rows_cursor(struct rows *rows, enum table table, MDB_cursor **out);
int rows_put_verdict(struct rows *rows, const struct digest *subject, const struct digest *witness, uint64_t transaction,
		     uint32_t place, const char *text, size_t length);
int rows_put_latest(struct rows *rows, const struct digest *subject, const struct digest *witness, const char *definition,
		    const char *case_id, const void *fields, size_t fields_length);
int row_put(MDB_txn *txn, MDB_dbi table, enum record_kind kind, const void *key, size_t key_length,
	    const struct buf *body);
#endif
