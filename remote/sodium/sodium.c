/* sodium - implements the signatures of libreftest_sign.so with libsodium. */
#include "remote/sodium/api.h"

#include <sodium.h>

static const char *version(void)
{
	return "libsodium " SODIUM_VERSION_STRING;
}

static void fill_random(void *out, size_t length)
{
	randombytes_buf(out, length);
}

static void hmac(const void *key, size_t key_length, const void *bytes, size_t length,
		 unsigned char out[SIGNING_KEY_HMAC])
{
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, key, key_length);
	crypto_auth_hmacsha256_update(&state, bytes, length);
	crypto_auth_hmacsha256_final(&state, out);
	sodium_memzero(&state, sizeof state);
}

static bool same(const void *a, const void *b, size_t length)
{
	return sodium_memcmp(a, b, length) == 0;
}

/* Derives libsodium's expanded key from the seed, which is the only stored secret. */
static void expand(const unsigned char seed[SIGNING_KEY_SEED], unsigned char public[SIGNING_KEY_PUBLIC],
		   unsigned char secret[crypto_sign_SECRETKEYBYTES])
{
	crypto_sign_seed_keypair(public, secret, seed);
}

static void ed_public(const unsigned char seed[SIGNING_KEY_SEED], unsigned char out[SIGNING_KEY_PUBLIC])
{
	unsigned char secret[crypto_sign_SECRETKEYBYTES];

	expand(seed, out, secret);
	sodium_memzero(secret, sizeof secret);
}

static void ed_sign(const unsigned char seed[SIGNING_KEY_SEED], const void *bytes, size_t length,
		    unsigned char out[SIGNING_KEY_ED])
{
	unsigned char public[SIGNING_KEY_PUBLIC], secret[crypto_sign_SECRETKEYBYTES];

	expand(seed, public, secret);
	crypto_sign_detached(out, NULL, bytes, length, secret);
	sodium_memzero(secret, sizeof secret);
}

static bool ed_check(const unsigned char key[SIGNING_KEY_PUBLIC], const void *bytes, size_t length,
		     const unsigned char signature[SIGNING_KEY_ED])
{
	return crypto_sign_verify_detached(signature, bytes, length, key) == 0;
}

/* Initialises libsodium, because its random numbers are secure only after that. sodium_init may be called more than
 * once. */
__attribute__((constructor)) static void begin(void)
{
	if (sodium_init() < 0)
		sodium_misuse();
}

_Static_assert(SIGNING_KEY_ED == crypto_sign_BYTES && SIGNING_KEY_SEED == crypto_sign_SEEDBYTES &&
		   SIGNING_KEY_PUBLIC == crypto_sign_PUBLICKEYBYTES && SIGNING_KEY_HMAC == crypto_auth_hmacsha256_BYTES,
	       "libsodium's sizes");

__attribute__((visibility("default"))) const struct sign_api reftest_sign = {
    SIGNING_KEY_ABI, version, fill_random, sodium_memzero, hmac, same, ed_public, ed_sign, ed_check,
};
