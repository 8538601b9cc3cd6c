/* face - what libreftest_seal.so exports as `reftest_seal`. */
#ifndef REFTEST_SEAL_FACE_H
#define REFTEST_SEAL_FACE_H

#include <stdbool.h>
#include <stddef.h>

enum { SEAL_ABI = 1, SEAL_KEY_MAX = 64, SEAL_SEED = 32, SEAL_PUBLIC = 32, SEAL_HMAC = 32, SEAL_ED = 64 };

struct seal_face {
	int abi;
	const char *(*version)(void); /* "libsodium 1.0.18" */
	void (*random)(void *out, size_t length);
	void (*wipe)(void *bytes, size_t length);
	void (*hmac)(const void *key, size_t key_length, const void *bytes, size_t length,
		     unsigned char out[SEAL_HMAC]);
	bool (*same)(const void *a, const void *b, size_t length); /* in constant time */
	void (*ed_public)(const unsigned char seed[SEAL_SEED], unsigned char out[SEAL_PUBLIC]);
	void (*ed_sign)(const unsigned char seed[SEAL_SEED], const void *bytes, size_t length,
			unsigned char out[SEAL_ED]);
	bool (*ed_check)(const unsigned char key[SEAL_PUBLIC], const void *bytes, size_t length,
			 const unsigned char signature[SEAL_ED]);
};

/* The library, for as long as the program lives; NULL with a sentence. */
struct err;
const struct seal_face *seal_library(struct err *err);

#endif
