#include "base/hash.h"

#include <string.h>

#include <xxhash.h>

#include "base/err.h"
#include "base/hex.h"

static struct digest canonical(XXH128_hash_t hash)
{
	XXH128_canonical_t canonical;
	struct digest digest;

	XXH128_canonicalFromHash(&canonical, hash);
	memcpy(digest.bytes, canonical.digest, sizeof digest.bytes);
	return digest;
}

struct digest digest_of(const void *bytes, size_t length)
{
	return canonical(XXH3_128bits(bytes, length));
}

/* A `struct hash *` is a pointer to an XXH3_state_t. */
struct hash *hash_begin(void)
{
	XXH3_state_t *state = XXH3_createState();

	if (state == NULL || XXH3_128bits_reset(state) != XXH_OK)
		die_no_memory();
	return (struct hash *)state;
}

void hash_add(struct hash *hash, const void *bytes, size_t length)
{
	XXH3_128bits_update((XXH3_state_t *)hash, bytes, length); /* fails only if the pointer is NULL */
}

struct digest hash_end(struct hash *hash)
{
	XXH3_state_t *state = (XXH3_state_t *)hash;
	struct digest digest = canonical(XXH3_128bits_digest(state));

	XXH3_freeState(state);
	return digest;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
	return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void digest_hex(const struct digest *digest, char hex[DIGEST_HEX])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < DIGEST_BYTES; i++) {
		hex[2 * i] = digits[digest->bytes[i] >> 4];
		hex[2 * i + 1] = digits[digest->bytes[i] & 15];
	}
	hex[2 * DIGEST_BYTES] = '\0';
}

bool digest_parse(const char *hex, struct digest *digest)
{
	return hex_read(hex, digest->bytes, DIGEST_BYTES) && hex[2 * DIGEST_BYTES] == '\0';
}
