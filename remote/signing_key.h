/* signing_key - a key that authenticates records: HMAC-SHA-256 with a shared secret, or Ed25519 with a pair of keys.
 *
 * A key is one line of text, with hexadecimal digits:
 *   hmac:SECRET            16 to 64 bytes; signs and verifies
 *   ed25519:SECRET         32 bytes; signs and verifies
 *   ed25519-public:PUBLIC  32 bytes; only verifies, for machines that must not sign
 * A text with a '/' is the path of a file whose first line is such a key.
 *
 * Signatures are computed by libreftest_sign.so, which uses libsodium and is loaded when a key is opened. Signatures
 * are compared in constant time. Secrets are wiped when the key is closed. */
#ifndef REFTEST_REMOTE_SIGNING_KEY_H
#define REFTEST_REMOTE_SIGNING_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { SIGNING_KEY_TEXT = 160, SIGNATURE_MAX = 64 };

enum signing_key_kind { SIGNING_KEY_HMAC_SHA256, SIGNING_KEY_ED25519 };

struct signing_key; /* opaque */

/* Opens a key. `text` is the key itself or the path of a file that contains the key. Returns NULL with a message, which
 * never shows a secret. */
struct signing_key *signing_key_open(const char *text, struct err *err);
void signing_key_close(struct signing_key *signer); /* accepts NULL */

enum signing_key_kind signing_key_kind(const struct signing_key *signer);
bool signing_key_signs(const struct signing_key *signer); /* false if only the public key is known */

/* Signs the bytes. Returns the length of the signature, or 0 if the key cannot sign. */
size_t signing_key_sign(const struct signing_key *signer, const void *bytes, size_t length,
			unsigned char out[SIGNATURE_MAX]);
bool signing_key_check(const struct signing_key *signer, const void *bytes, size_t length, const void *signature,
		       size_t signature_length);

/* Generates a random key, and writes it as a line of text without a newline. */
int signing_key_make(enum signing_key_kind kind, char text[SIGNING_KEY_TEXT], struct err *err);
/* Writes, as a line of text, the public key that verifies signatures of this key. Returns -1 for a shared secret, which
 * has no public key. */
int signing_key_public(const struct signing_key *signer, char text[SIGNING_KEY_TEXT], struct err *err);

#endif
