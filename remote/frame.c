#include "remote/frame.h"

#include <string.h>

enum { FRAME_HEAD = 5 };

static void put_head(struct buf *out, enum frame_kind kind, size_t length)
{
	const uint32_t size = (uint32_t)length;
	const unsigned char mark = (unsigned char)kind;

	buf_add(out, &size, sizeof size);
	buf_add(out, &mark, 1);
}

void frame_put(struct buf *out, enum frame_kind kind, const void *body, size_t length)
{
	put_head(out, kind, length);
	buf_add(out, body, length);
}

void frame_put_numbered(struct buf *out, enum frame_kind kind, uint32_t number, const void *body, size_t length)
{
	put_head(out, kind, sizeof number + length);
	buf_add(out, &number, sizeof number);
	buf_add(out, body, length);
}

int frame_number(struct frame *frame, uint32_t *number)
{
	if (frame->length < sizeof *number)
		return -1;
	memcpy(number, frame->body, sizeof *number);
	frame->body += sizeof *number;
	frame->length -= sizeof *number;
	return 0;
}

int frame_next(const struct buf *in, size_t *taken, struct frame *out)
{
	size_t left = in->length - *taken;
	uint32_t length;

	if (left < FRAME_HEAD)
		return 0;
	memcpy(&length, in->data + *taken, sizeof length);
	if (length > FRAME_MAX)
		return -1;
	if (left - FRAME_HEAD < length)
		return 0;
	out->kind = (enum frame_kind)(unsigned char)in->data[*taken + sizeof length];
	out->body = (const unsigned char *)in->data + *taken + FRAME_HEAD;
	out->length = length;
	*taken += FRAME_HEAD + length;
	return 1;
}
