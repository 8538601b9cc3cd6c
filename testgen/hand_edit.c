#include "testgen/hand_edit.h"

#include <string.h>

#include "base/hash.h"

static const char first_line[] =
    "# Made by `reftest generate`, which leaves this file alone once it has been edited.\n";
static const char second_line[] = "# reftest-body: ";

enum { HEADER = sizeof first_line - 1 + sizeof second_line - 1 + DIGEST_HEX };

size_t owned_body(const char *bytes, size_t length)
{
	size_t first = sizeof first_line - 1, second = sizeof second_line - 1;

	if (length < HEADER || memcmp(bytes, first_line, first) != 0 || memcmp(bytes + first, second_line, second) != 0)
		return 0;
	return bytes[HEADER - 1] == '\n' ? HEADER : 0;
}

enum owner owned_by(const char *bytes, size_t length)
{
	size_t body = owned_body(bytes, length);
	char hex[DIGEST_HEX] = "";
	struct digest noted, found;

	if (body == 0)
		return OWNER_USER;
	memcpy(hex, bytes + HEADER - DIGEST_HEX, DIGEST_HEX - 1);
	found = digest_of(bytes + body, length - body);
	return digest_parse(hex, &noted) && digest_equal(&noted, &found) ? OWNER_REFTEST : OWNER_EDITED;
}

void owned_seal(struct buf *out, const char *body, size_t length)
{
	struct digest digest = digest_of(body, length);
	char hex[DIGEST_HEX];

	digest_hex(&digest, hex);
	buf_printf(out, "%s%s%s\n", first_line, second_line, hex);
	buf_add(out, body, length);
}
