/* api - the interface that libreftest_sign.so exports as `reftest_sign`. The library is loaded by
 * remote/signing_key.c. */
#ifndef REFTEST_REMOTE_SODIUM_API_H
#define REFTEST_REMOTE_SODIUM_API_H

#include <stdbool.h>
#include <stddef.h>

enum {
	SIGNING_KEY_ABI = 1,
	SIGNING_KEY_KEY_MAX = 64,
	SIGNING_KEY_SEED = 32,
	SIGNING_KEY_PUBLIC = 32,
	SIGNING_KEY_HMAC = 32,
	SIGNING_KEY_ED = 64
};

struct sign_api {
	int abi;
	const char *(*version)(void); /* "libsodium 1.0.18" */
	void (*random)(void *out, size_t length);
	void (*wipe)(void *bytes, size_t length);
	void (*hmac)(const void *key, size_t key_length, const void *bytes, size_t length,
		     unsigned char out[SIGNING_KEY_HMAC]);
	bool (*same)(const void *a, const void *b, size_t length); /* in constant time */
	void (*ed_public)(const unsigned char seed[SIGNING_KEY_SEED], unsigned char out[SIGNING_KEY_PUBLIC]);
	void (*ed_sign)(const unsigned char seed[SIGNING_KEY_SEED], const void *bytes, size_t length,
			unsigned char out[SIGNING_KEY_ED]);
	bool (*ed_check)(const unsigned char key[SIGNING_KEY_PUBLIC], const void *bytes, size_t length,
			 const unsigned char signature[SIGNING_KEY_ED]);
};

#endif
