/* seal - a key that says who wrote something: HMAC-SHA-256 with a shared secret, or Ed25519 with a pair of keys.
 *
 * A key is one line of text, hexadecimal:
 *   hmac:SECRET            16 to 64 bytes; signs and checks
 *   ed25519:SECRET         32 bytes; signs and checks
 *   ed25519-public:PUBLIC  32 bytes; only checks, so that who may not write can still tell
 * or the path (known by its '/') of a file whose first line is one. The arithmetic is libsodium's, in
 * libreftest_seal.so, loaded when a key is opened and not before. Wrong signatures are told from right ones in constant
 * time; secrets are wiped when the key is closed. */
#ifndef REFTEST_SEAL_SEAL_H
#define REFTEST_SEAL_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { SEAL_KEY_TEXT = 160, SEAL_SIGNATURE_MAX = 64 };

enum seal_kind { SEAL_HMAC_SHA256, SEAL_ED25519 };

struct seal; /* opaque */

/* The key that `text` is or names. NULL with a sentence, which never shows a secret. */
struct seal *seal_open(const char *text, struct err *err);
void seal_close(struct seal *seal); /* NULL: nothing */

enum seal_kind seal_kind(const struct seal *seal);
bool seal_signs(const struct seal *seal); /* false: it has only the public half */

/* The signature of these bytes: its length; 0 if the key cannot sign. */
size_t seal_sign(const struct seal *seal, const void *bytes, size_t length, unsigned char out[SEAL_SIGNATURE_MAX]);
bool seal_check(const struct seal *seal, const void *bytes, size_t length, const void *signature,
		size_t signature_length);

/* A new key of random bytes, as a line without newline. */
int seal_make(enum seal_kind kind, char text[SEAL_KEY_TEXT], struct err *err);
/* What checks what this key signs, as such a line. -1: a shared secret has no public half. */
int seal_public(const struct seal *seal, char text[SEAL_KEY_TEXT], struct err *err);

#endif
