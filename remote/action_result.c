#include "remote/action_result.h"

#include <stdint.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* wire types of protobuf */

static const char file_name[] = "verdict"; /* the path of the output file, which a valid ActionResult needs */

static void put_varint(struct buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_add(out, &(unsigned char){(unsigned char)(value | 0x80)}, 1);
	buf_add(out, &(unsigned char){(unsigned char)value}, 1);
}

static void put_bytes(struct buf *out, unsigned field, const void *bytes, size_t length)
{
	put_varint(out, field << 3 | BYTES);
	put_varint(out, length);
	buf_add(out, bytes, length);
}

void action_result_write(const char *hash, const void *value, size_t length, struct buf *out)
{
	struct buf digest = {0}, file = {0};

	put_bytes(&digest, 1, hash, strlen(hash));
	put_varint(&digest, 2 << 3 | VARINT);
	put_varint(&digest, length);
	put_bytes(&file, 1, file_name, strlen(file_name));
	put_bytes(&file, 2, digest.data, digest.length);
	put_bytes(&file, 5, value, length);
	put_bytes(out, 2, file.data, file.length);
	buf_free(&digest);
	buf_free(&file);
}

struct message {
	const unsigned char *at;
	size_t left;
	bool bad;
};

static uint64_t get_varint(struct message *from)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && from->left > 0; shift += 7) {
		unsigned char byte = *from->at++;

		from->left--;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	from->bad = true;
	return 0;
}

static struct message get_bytes(struct message *from, uint64_t length)
{
	struct message part = {from->at, (size_t)length, false};

	if (from->bad || length > from->left) {
		from->bad = true;
		return (struct message){NULL, 0, true};
	}
	from->at += length;
	from->left -= (size_t)length;
	return part;
}

/* Reads the next field. Returns the field's number, and sets `value` or `bytes`. Returns 0 at the end of the message.
 * If the message is invalid, sets `from->bad` and returns 0. */
static uint64_t get_field(struct message *from, uint64_t *value, struct message *bytes)
{
	if (from->left == 0 || from->bad)
		return 0;
	uint64_t tag = get_varint(from);

	*value = 0;
	*bytes = (struct message){NULL, 0, false};
	switch (tag & 7) {
	case VARINT:
		*value = get_varint(from);
		break;
	case FIXED64:
		get_bytes(from, 8);
		break;
	case BYTES:
		*bytes = get_bytes(from, get_varint(from));
		break;
	case FIXED32:
		get_bytes(from, 4);
		break;
	default: /* groups, an obsolete kind of field, are not supported */
		from->bad = true;
	}
	return from->bad ? 0 : tag >> 3;
}

static bool is_hash(const struct message *bytes)
{
	for (size_t i = 0; i < bytes->left; i++)
		if (strchr("0123456789abcdef", bytes->at[i]) == NULL || bytes->at[i] == '\0')
			return false;
	return bytes->left == SHA256_HEX - 1;
}

static bool read_digest(struct message digest, struct action_result *out)
{
	struct message bytes;
	uint64_t field, value, size = 0;
	bool hash = false;

	while ((field = get_field(&digest, &value, &bytes)) != 0) {
		if (field == 1 && bytes.at != NULL && is_hash(&bytes)) {
			memcpy(out->hash, bytes.at, bytes.left);
			out->hash[bytes.left] = '\0';
			hash = true;
		} else if (field == 2) {
			size = value;
		}
	}
	out->size = (size_t)size;
	return !digest.bad && hash && size > 0 && size <= SIZE_MAX;
}

static bool read_file(struct message file, struct action_result *out)
{
	struct message bytes, contents = {NULL, 0, false};
	bool digest = false;
	uint64_t field, value;

	while ((field = get_field(&file, &value, &bytes)) != 0) {
		if (field == 2 && bytes.at != NULL)
			digest = read_digest(bytes, out);
		else if (field == 5 && bytes.left > 0)
			contents = bytes;
	}
	out->value = contents.at;
	return !file.bad && digest && (contents.at == NULL || contents.left == out->size);
}

bool action_result_read(const void *message, size_t length, struct action_result *out)
{
	struct message from = {message, length, false}, bytes;
	bool file = false;
	uint64_t field, value;

	*out = (struct action_result){.value = NULL};
	while ((field = get_field(&from, &value, &bytes)) != 0) {
		if (field != 2 || bytes.at == NULL || file)
			continue;
		if (!read_file(bytes, out))
			return false;
		file = true;
	}
	return !from.bad && file;
}
