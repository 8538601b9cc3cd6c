/* record - see the header for the layout. Damage is found by the checksum, so whoever reads a body needs bounds only
 * against a writer of another mind. */
#include "cache/record.h"

#include <string.h>

#include <xxhash.h>

static const char magic[4] = "rftr";

static void put_number(struct buf *out, uint64_t value, size_t octets)
{
	unsigned char bytes[8];

	for (size_t i = 0; i < octets; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	buf_add(out, bytes, octets);
}

void record_put_u32(struct buf *out, uint32_t value)
{
	put_number(out, value, 4);
}

void record_put_u64(struct buf *out, uint64_t value)
{
	put_number(out, value, 8);
}

void record_put_digest(struct buf *out, const struct digest *digest)
{
	buf_add(out, digest->bytes, sizeof digest->bytes);
}

void record_put_bytes(struct buf *out, const void *bytes, size_t length)
{
	record_put_u32(out, (uint32_t)length);
	buf_add(out, bytes, (uint32_t)length);
}

void record_put_text(struct buf *out, const char *text)
{
	record_put_bytes(out, text, strlen(text));
}

/* The next `length` octets, NULL if there are not so many. */
static const unsigned char *take(struct reader *from, size_t length)
{
	const unsigned char *at = from->at;

	if (from->bad || length > from->left) {
		from->bad = true;
		return NULL;
	}
	from->at += length;
	from->left -= length;
	return at;
}

static uint64_t get_number(struct reader *from, size_t octets)
{
	const unsigned char *bytes = take(from, octets);
	uint64_t value = 0;

	for (size_t i = 0; bytes != NULL && i < octets; i++)
		value |= (uint64_t)bytes[i] << (8 * i);
	return value;
}

uint32_t record_get_u32(struct reader *from)
{
	return (uint32_t)get_number(from, 4);
}

uint64_t record_get_u64(struct reader *from)
{
	return get_number(from, 8);
}

struct digest record_get_digest(struct reader *from)
{
	const unsigned char *bytes = take(from, DIGEST_BYTES);
	struct digest digest = {{0}};

	if (bytes != NULL)
		memcpy(digest.bytes, bytes, sizeof digest.bytes);
	return digest;
}

const char *record_get_bytes(struct reader *from, size_t *length)
{
	size_t count = record_get_u32(from);
	const char *bytes = (const char *)take(from, count);

	*length = bytes != NULL ? count : 0;
	return bytes;
}

static uint64_t checksum(enum record_kind kind, const void *key, size_t key_length, const void *body, size_t length)
{
	uint64_t seed = XXH3_64bits_withSeed(key, key_length, (uint64_t)RECORD_FORMAT << 32 | (uint64_t)kind);

	return XXH3_64bits_withSeed(body, length, seed);
}

int record_write(enum record_kind kind, const void *key, size_t key_length, const void *body, size_t length,
                 struct buf *out)
{
	if (length > UINT32_MAX)
		return -1;
	buf_add(out, magic, sizeof magic);
	put_number(out, RECORD_FORMAT, 2);
	put_number(out, (uint64_t)kind, 2);
	put_number(out, length, 4);
	put_number(out, checksum(kind, key, key_length, body, length), 8);
	buf_add(out, body, length);
	return 0;
}

bool record_read(enum record_kind kind, const void *key, size_t key_length, const void *record, size_t length,
                 struct reader *body)
{
	struct reader head = {.at = record, .left = length};
	const unsigned char *mark = take(&head, sizeof magic);

	if (mark == NULL || memcmp(mark, magic, sizeof magic) != 0)
		return false;
	uint64_t format = get_number(&head, 2), found = get_number(&head, 2), size = get_number(&head, 4);
	uint64_t sum = get_number(&head, 8);

	*body = head;
	return !head.bad && format == RECORD_FORMAT && found == (uint64_t)kind && size == head.left &&
	       sum == checksum(kind, key, key_length, head.at, head.left);
}
