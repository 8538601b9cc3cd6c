/* record - how a row lies on disk: little-endian numbers, counted bytes, and a frame that shows damage.
 *
 *   record = magic "rftr" . format u16 . kind u16 . length u32 . checksum u64 . body (length octets)
 *
 * The checksum is XXH3-64 of the body, seeded with that of the key, seeded with format and kind: a record that was
 * copied under another key, or into another table, does not check out. Every reader is bounded; none allocates. */
#ifndef REFTEST_CACHE_RECORD_H
#define REFTEST_CACHE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"

enum { RECORD_FORMAT = 1, RECORD_HEAD = 20 };

/* These numbers are on disk: never renumber, only append. */
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
void record_put_bytes(struct buf *out, const void *bytes, size_t length); /* counted; at most 2^32 - 1 */
void record_put_text(struct buf *out, const char *text);

/* Where reading stands. Once something was missing, `bad` stays set and everything read is 0. */
struct reader {
	const unsigned char *at;
	size_t left;
	bool bad;
};

uint32_t record_get_u32(struct reader *from);
uint64_t record_get_u64(struct reader *from);
struct digest record_get_digest(struct reader *from);
const char *record_get_bytes(struct reader *from, size_t *length); /* inside what is read; NULL when bad */

/* Appends the frame and the body. 0, or -1 for a body of 2^32 bytes or more. */
int record_write(enum record_kind kind, const void *key, size_t key_length, const void *body, size_t length,
                 struct buf *out);
/* Does it check out? Then `body` reads it, inside `record`. */
bool record_read(enum record_kind kind, const void *key, size_t key_length, const void *record, size_t length,
                 struct reader *body);

#endif
