#include "remote/message.h"

#include <string.h>

enum { MESSAGE_HEAD = 5 };

static void put_head(struct buf *out, enum message_kind kind, size_t length)
{
	const uint32_t size = (uint32_t)length;
	const unsigned char mark = (unsigned char)kind;

	buf_add(out, &size, sizeof size);
	buf_add(out, &mark, 1);
}

void message_put(struct buf *out, enum message_kind kind, const void *body, size_t length)
{
	put_head(out, kind, length);
	buf_add(out, body, length);
}

void message_put_numbered(struct buf *out, enum message_kind kind, uint32_t number, const void *body, size_t length)
{
	put_head(out, kind, sizeof number + length);
	buf_add(out, &number, sizeof number);
	buf_add(out, body, length);
}

int message_number(struct message *message, uint32_t *number)
{
	if (message->length < sizeof *number)
		return -1;
	memcpy(number, message->body, sizeof *number);
	message->body += sizeof *number;
	message->length -= sizeof *number;
	return 0;
}

int message_next(const struct buf *in, size_t *taken, struct message *out)
{
	size_t left = in->length - *taken;
	uint32_t length;

	if (left < MESSAGE_HEAD)
		return 0;
	memcpy(&length, in->data + *taken, sizeof length);
	if (length > MESSAGE_MAX)
		return -1;
	if (left - MESSAGE_HEAD < length)
		return 0;
	out->kind = (enum message_kind)(unsigned char)in->data[*taken + sizeof length];
	out->body = (const unsigned char *)in->data + *taken + MESSAGE_HEAD;
	out->length = length;
	*taken += MESSAGE_HEAD + length;
	return 1;
}
