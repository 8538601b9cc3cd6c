/* lmdb_rows - builds the keys and rows of two tables: `verdicts`, and `latest` with the last states of cases. */
#ifndef REFTEST_CACHE_LMDB_ROWS_H
#define REFTEST_CACHE_LMDB_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lmdb.h>

#include "base/buf.h"
#include "base/hash.h"
#include "cache/lmdb_env.h"
#include "cache/checksummed_record.h"

enum { PAIR = 2 * DIGEST_BYTES };

struct pair {
	unsigned char bytes[PAIR];
};

struct pair pair_of(const struct digest *first, const struct digest *second);
struct pair case_key(const char *definition, const char *case_id);

/* The state of a function that writes many rows in one transaction. Initialise the struct with {0}, then set the
 * transaction and the environment. LMDB fills its pages completely if rows are appended, which means that each new row
 * has a greater key than all existing rows. */
struct rows {
	MDB_txn *txn;
	struct env *env;
	MDB_cursor *cursor[TABLE_COUNT]; /* NULL until needed */
	/* true if a row was not appended, because the table already had a greater key */
	bool scattered[TABLE_COUNT];
	struct buf body, record;
};
void rows_end(struct rows *rows);

/* Returns the time, in Unix seconds, of the verdict in a row. `body` must be at the beginning of the row. */
int64_t row_made(struct reader body);

/* A verdict that is stored. The text lies in LMDB's mapping and is valid until the next write. */
struct verdict_row {
	uint64_t transaction;
	uint32_t place;
	const char *text; /* NULL: there is none */
	size_t length;
};

/* Reads a row of the table `verdicts`. Returns false if the checksum of the row is wrong. */
bool verdict_row_read(const MDB_val *key, const MDB_val *value, struct verdict_row *out);

/* The following functions return 0 or LMDB's error. */
int rows_cursor(struct rows *rows, enum table table, MDB_cursor **out);
int rows_put_verdict(struct rows *rows, const struct digest *subject, const struct digest *witness, uint64_t transaction,
		     uint32_t place, const char *text, size_t length);
/* Does the same as rows_put_verdict. If this replaces a stored verdict, also adds the margins of the replaced verdict
 * to the new one (cache/driver_history.h). If a passed verdict is replaced by another outcome, or by one after other
 * cases, calls rows_expire_summaries. */
int rows_replace_verdict(struct rows *rows, const struct digest *subject, const struct digest *witness,
			 uint64_t transaction, uint32_t place, const char *text, size_t length);
/* Changes the fact FACT_SUMMARIES_EXPIRED (cache/expired_summaries.h). */
int rows_expire_summaries(struct rows *rows);
int rows_put_latest(struct rows *rows, const struct digest *subject, const struct digest *witness, const char *definition,
		    const char *case_id, const void *fields, size_t fields_length);
int row_put(MDB_txn *txn, MDB_dbi table, enum record_kind kind, const void *key, size_t key_length,
	    const struct buf *body);
#endif
