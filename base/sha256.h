/* sha256 - SHA-256 (FIPS 180-4), by which Git LFS names contents. */
#ifndef REFTEST_BASE_SHA256_H
#define REFTEST_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

/* Of bytes that come one part after the other: {0} has had none. */
struct sha256 {
	uint32_t state[8]; /* of whole blocks; of no meaning before the first */
	uint64_t length;   /* of all that came */
	unsigned char last[64]; /* what came of a block that is not whole */
};
void sha256_add(struct sha256 *sum, const void *bytes, size_t length);
void sha256_end(struct sha256 *sum, unsigned char out[SHA256_BYTES]);

void sha256_of(const void *bytes, size_t length, unsigned char out[SHA256_BYTES]);

#endif
