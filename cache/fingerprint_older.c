/* fingerprint_older - reads the lists of fields that older versions of reftest stored.
 *
 * fields = 0x80000002 u32 . count . { how . tag . value, unless how is 0 . digest, if how is below 2 } … Before that
 * version: count u32 . { tag bytes . has_value u32 . value bytes . digest } … */
#include "cache/fingerprint_internal.h"

#include <string.h>

#include "cache/checksummed_record.h"
#include "dataset/packed_bytes.h"

/* Returns a copy of the bytes as a C string. Returns NULL if there are too few bytes, or if they contain a NUL, at
 * which a C string would end. */
static const char *text_of(const void *bytes, size_t length, struct arena *arena)
{
	if (bytes == NULL || (length > 0 && memchr(bytes, '\0', length) != NULL))
		return NULL;
	return arena_copy(arena, bytes, length);
}

static const char *get_text(struct packed_bytes *from, struct arena *arena)
{
	uint64_t length = packed_get(from);

	return text_of(packed_take(from, length), length, arena);
}

static bool add_field(struct fields *out, struct arena *arena, const char *tag, const char *value, const char *hashed,
		      const unsigned char *digest)
{
	if (tag == NULL || (hashed == NULL && digest == NULL))
		return false;
	field_add(out, arena, tag, NULL, hashed != NULL ? hashed : "", hashed != NULL ? strlen(hashed) : 0);
	out->items[out->count - 1].value = value;
	if (digest != NULL)
		memcpy(out->items[out->count - 1].digest.bytes, digest, DIGEST_BYTES);
	return true;
}

static bool get_field(struct packed_bytes *from, struct arena *arena, struct fields *out)
{
	uint64_t how = packed_get(from);
	const char *tag = get_text(from, arena), *value = how > 0 ? get_text(from, arena) : NULL;

	if (how == 0)
		return add_field(out, arena, tag, NULL, NULL, packed_take(from, DIGEST_BYTES));
	if (how > 3 || value == NULL || (how > 1 && strlen(value) > FIELD_VALUE_MAX))
		return false;
	if (how == 1)
		return add_field(out, arena, tag, value, NULL, packed_take(from, DIGEST_BYTES));
	return add_field(out, arena, tag, value, how == 2 ? value : arena_printf(arena, "const %s", value), NULL);
}

static bool read_oldest(struct reader from, struct arena *arena, struct fields *out)
{
	uint32_t count = record_get_u32(&from);
	size_t length;

	for (uint32_t i = 0; i < count; i++) {
		const char *tag = record_get_bytes(&from, &length);

		tag = text_of(tag, length, arena);
		uint32_t has_value = record_get_u32(&from);
		const char *value = record_get_bytes(&from, &length);

		value = text_of(value, length, arena);
		struct digest digest = record_get_digest(&from);

		if (from.bad || value == NULL ||
		    !add_field(out, arena, tag, has_value != 0 ? value : NULL, NULL, digest.bytes))
			return false;
	}
	return !from.bad && from.left == 0;
}

bool fields_read_v2(const void *bytes, size_t length, struct arena *arena, struct fields *out)
{
	struct reader head = {.at = bytes, .left = length};
	struct packed_bytes from = {bytes, (const unsigned char *)bytes + length, false};

	*out = (struct fields){0};
	if (record_get_u32(&head) != FIELDS_V2)
		return read_oldest((struct reader){.at = bytes, .left = length}, arena, out);
	from.at += 4;
	for (uint64_t count = packed_get(&from); count > 0; count--)
		if (!get_field(&from, arena, out))
			return false;
	return !from.bad && from.at == from.end;
}
