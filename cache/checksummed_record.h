/* checksummed_record - the on-disk form of a row. A header with a checksum comes first. Little-endian numbers and byte
 * strings with their lengths follow.
 *
 *   record = magic "rftr", format u16, kind u16, length u32, checksum u64, body (length bytes)
 *
 * The checksum is the XXH3-64 of the body. Its seed is another XXH3-64: that of the row's key, with format and kind as
 * the seed. A record that was copied to another key or table therefore has a wrong checksum. Every reader checks
 * bounds, and no reader allocates memory. */
#ifndef REFTEST_CACHE_CHECKSUMMED_RECORD_H
#define REFTEST_CACHE_CHECKSUMMED_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"

enum { RECORD_FORMAT = 1, RECORD_HEAD = 20 };

/* These numbers are stored on disk. Never change a number; only append new ones. */
enum record_kind {
	RECORD_STORE = 1,
	RECORD_VERDICT = 2,
	RECORD_LATEST = 3,
	RECORD_FILE = 4,
	RECORD_FACT = 5,
	RECORD_CLEAN = 6,
};

void record_put_u32(struct buf *out, uint32_t value);
void record_put_u64(struct buf *out, uint64_t value);
void record_put_digest(struct buf *out, const struct digest *digest);
/* appends the length (u32) and the bytes; `length` is at most 2^32 - 1 */
void record_put_bytes(struct buf *out, const void *bytes, size_t length);
void record_put_text(struct buf *out, const char *text);

/* A position in the bytes that are being read. If the data ends too early, `bad` becomes true and remains true, and
 * every further read returns 0. */
struct reader {
	const unsigned char *at;
	size_t left;
	bool bad;
};

uint32_t record_get_u32(struct reader *from);
uint64_t record_get_u64(struct reader *from);
struct digest record_get_digest(struct reader *from);
const char *record_get_bytes(struct reader *from, size_t *length); /* points into the data; NULL if `bad` */

/* Appends a whole record, with its header and its body. Returns 0, or -1 if the body has 2^32 bytes or more. */
int record_write(enum record_kind kind, const void *key, size_t key_length, const void *body, size_t length,
                 struct buf *out);
/* If the checksum of `record` is right, sets `body` to the beginning of the record's body and returns true. Otherwise
 * returns false. */
bool record_read(enum record_kind kind, const void *key, size_t key_length, const void *record, size_t length,
                 struct reader *body);

#endif
