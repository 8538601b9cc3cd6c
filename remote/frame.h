/* frame - what the program and its courier say to each other over a stream socket: counted frames.
 *
 *   frame = length u32 (of the body) . kind u8 . body
 *
 *   program to courier                          courier to program
 *   FRAME_ASK    key                            FRAME_FOUND   place u32 (of the key among those asked) . value
 *   FRAME_ASKED  (that was all: look them up)   FRAME_REFUSED place u32 . sentence: what came is no value
 *   FRAME_KEEP   keys u8 . (length u8 . key)… . value
 *   FRAME_FLUSH  (say when all is kept)         FRAME_DONE    kept u32 . sentence ("": all is well)
 *
 * Both ends are of one build on one machine; all the same every frame is bounded. */
#ifndef REFTEST_REMOTE_FRAME_H
#define REFTEST_REMOTE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum frame_kind {
	FRAME_ASK = 'a',
	FRAME_ASKED = 'A',
	FRAME_KEEP = 'k',
	FRAME_FLUSH = 'f',
	FRAME_FOUND = 'v',
	FRAME_REFUSED = 'r',
	FRAME_DONE = 'd',
};

/* Of a value that a remote may hold, of a key, and of the keys that one value is kept under. */
enum { REMOTE_VALUE_MAX = 256 * 1024, REMOTE_KEY_MAX = 255, REMOTE_KEYS_MAX = 4, FRAME_MAX = REMOTE_VALUE_MAX + 2048 };

struct frame {
	enum frame_kind kind;
	const unsigned char *body; /* inside what was read */
	size_t length;
};

void frame_put(struct buf *out, enum frame_kind kind, const void *body, size_t length);
/* A number in front of the body. */
void frame_put_numbered(struct buf *out, enum frame_kind kind, uint32_t number, const void *body, size_t length);
/* Takes the number that a body begins with. 0, -1: it has none. */
int frame_number(struct frame *frame, uint32_t *number);

/* The next whole frame of `in` behind the first `*taken` bytes, which it is added to. 1; 0: none yet; -1: what is there
 * can be none. */
int frame_next(const struct buf *in, size_t *taken, struct frame *out);

#endif
