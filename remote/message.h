/* message - the protocol between the program and its helper process over a stream socket: messages with a
 * length prefix.
 *
 *   message = length u32 (of the body) . kind u8 . body
 *
 *   program to helper                             helper to program
 *   MESSAGE_ASK    key                            MESSAGE_FOUND   index u32 (of the key in the batch) . value
 *   MESSAGE_ASKED  (end of the batch: look up)    MESSAGE_REFUSED index u32 . reason why the value is invalid
 *   MESSAGE_KEEP   keys u8 . (length u8 . key)… . value
 *   MESSAGE_FLUSH  (report when all is stored)    MESSAGE_DONE    count of stored values u32 . message ("": no error)
 *
 * Both processes check the size of every message that they receive, although they run the same build on one machine. */
#ifndef REFTEST_REMOTE_MESSAGE_H
#define REFTEST_REMOTE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum message_kind {
	MESSAGE_ASK = 'a',
	MESSAGE_ASKED = 'A',
	MESSAGE_KEEP = 'k',
	MESSAGE_FLUSH = 'f',
	MESSAGE_FOUND = 'v',
	MESSAGE_REFUSED = 'r',
	MESSAGE_DONE = 'd',
};

/* The maximum size of a value, of a key and of a message body, and the maximum number of keys of one value. */
enum {
	REMOTE_VALUE_MAX = 256 * 1024,
	REMOTE_KEY_MAX = 255,
	REMOTE_KEYS_MAX = 4,
	MESSAGE_MAX = REMOTE_VALUE_MAX + 2048
};

struct message {
	enum message_kind kind;
	const unsigned char *body; /* points into the read buffer */
	size_t length;
};

void message_put(struct buf *out, enum message_kind kind, const void *body, size_t length);
/* Appends a message whose body is a number (u32) followed by bytes. */
void message_put_numbered(struct buf *out, enum message_kind kind, uint32_t number, const void *body, size_t length);
/* Reads the number at the beginning of a body, and removes it from the body. Returns 0, or -1 if the body is too
 * short. */
int message_number(struct message *message, uint32_t *number);

/* Reads the message that begins at byte `*taken` of `in`, and adds its size to `*taken`. Returns 1 on success, 0 if the
 * message is not complete yet, and -1 if it is invalid. */
int message_next(const struct buf *in, size_t *taken, struct message *out);

#endif
