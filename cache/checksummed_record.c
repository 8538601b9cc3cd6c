/* checksummed_record - writes and reads the on-disk form of a row (layout: cache/checksummed_record.h). A body is read
 * only if the checksum of its record is right. If the checksum is right but a bounds check fails, another version of
 * the program wrote the body in another format. */
#include "cache/checksummed_record.h"

#include <endian.h>
#include <string.h>

#include <xxhash.h>

static const char magic[4] = "rftr";

static void put_u16(struct buf *out, uint16_t value)
{
	value = htole16(value);
	buf_add(out, &value, sizeof value);
}

void record_put_u32(struct buf *out, uint32_t value)
{
	value = htole32(value);
	buf_add(out, &value, sizeof value);
}

void record_put_u64(struct buf *out, uint64_t value)
{
	value = htole64(value);
	buf_add(out, &value, sizeof value);
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

/* Returns the next `length` bytes and advances past them. Returns NULL if fewer bytes are left. */
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

static uint16_t get_u16(struct reader *from)
{
	const unsigned char *bytes = take(from, 2);
	uint16_t value = 0;

	if (bytes != NULL)
		memcpy(&value, bytes, sizeof value);
	return le16toh(value);
}

uint32_t record_get_u32(struct reader *from)
{
	const unsigned char *bytes = take(from, 4);
	uint32_t value = 0;

	if (bytes != NULL)
		memcpy(&value, bytes, sizeof value);
	return le32toh(value);
}

uint64_t record_get_u64(struct reader *from)
{
	const unsigned char *bytes = take(from, 8);
	uint64_t value = 0;

	if (bytes != NULL)
		memcpy(&value, bytes, sizeof value);
	return le64toh(value);
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
	put_u16(out, RECORD_FORMAT);
	put_u16(out, (uint16_t)kind);
	record_put_u32(out, (uint32_t)length);
	record_put_u64(out, checksum(kind, key, key_length, body, length));
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
	uint16_t format = get_u16(&head), found = get_u16(&head);
	uint32_t size = record_get_u32(&head);
	uint64_t sum = record_get_u64(&head);

	*body = head;
	return !head.bad && format == RECORD_FORMAT && found == (uint16_t)kind && size == head.left &&
	       sum == checksum(kind, key, key_length, head.at, head.left);
}
