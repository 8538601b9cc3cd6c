/* sha256 - SHA-256 (FIPS 180-4), by which Git LFS names contents. */
#ifndef REFTEST_BASE_SHA256_H
#define REFTEST_BASE_SHA256_H

#include <stddef.h>

enum { SHA256_BYTES = 32 };

void sha256_of(const void *bytes, size_t length, unsigned char out[SHA256_BYTES]);

#endif
