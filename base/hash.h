/* hash - XXH3-128 digests of contents. XXH3 is not cryptographic: an attacker can construct two files with the same
 * digest. */
#ifndef REFTEST_BASE_HASH_H
#define REFTEST_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>

enum { DIGEST_BYTES = 16, DIGEST_HEX = 33 };

struct digest {
	unsigned char bytes[DIGEST_BYTES]; /* canonical (big-endian) form, the same on every machine */
};

struct digest digest_of(const void *bytes, size_t length);

/* Computes a digest of bytes that are added piece by piece. */
struct hash; /* opaque */
struct hash *hash_begin(void);
void hash_add(struct hash *hash, const void *bytes, size_t length);
struct digest hash_end(struct hash *hash); /* frees the state */

bool digest_equal(const struct digest *a, const struct digest *b);
void digest_hex(const struct digest *digest, char hex[DIGEST_HEX]); /* 32 lower-case digits and a NUL */
/* returns false if `hex` is not exactly 32 hexadecimal digits */
bool digest_parse(const char *hex, struct digest *digest);

#endif
