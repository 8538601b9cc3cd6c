/* sha256 - SHA-256 (FIPS 180-4). Git LFS names a file by its SHA-256 digest, and the program recognises its own
 * libraries by their SHA-256 digests. */
#ifndef REFTEST_BASE_SHA256_H
#define REFTEST_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

/* State of an incremental digest; {0} is the state before the first byte. */
struct sha256 {
	uint32_t state[8]; /* the hash state after all complete blocks; undefined before the first block */
	uint64_t length;   /* number of bytes that were added */
	unsigned char last[64]; /* the incomplete block */
};
void sha256_add(struct sha256 *sum, const void *bytes, size_t length);
void sha256_end(struct sha256 *sum, unsigned char out[SHA256_BYTES]);

void sha256_of(const void *bytes, size_t length, unsigned char out[SHA256_BYTES]);

#endif
