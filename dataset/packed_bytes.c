#include "dataset/packed_bytes.h"

#include <stddef.h>

uint64_t packed_get(struct packed_bytes *from)
{
	uint64_t value = 0;

	for (int shift = 0; shift < 64; shift += 7) {
		if (from->at == from->end)
			break;
		unsigned char byte = *from->at++;

		value |= (uint64_t)(byte & 0x7F) << shift;
		if (byte < 0x80)
			return value;
	}
	from->bad = true;
	from->at = from->end;
	return 0;
}

const unsigned char *packed_take(struct packed_bytes *from, uint64_t length)
{
	const unsigned char *at = from->at;

	if (from->bad || length > (uint64_t)(from->end - at)) {
		from->bad = true;
		from->at = from->end;
		return NULL;
	}
	from->at += length;
	return at;
}
