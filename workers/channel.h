/* channel - lines over a stream socket, with descriptors beside them where one is to be handed over.
 *
 * Works on blocking sockets (the judge) and on non-blocking ones (the pool). What a peer sends is not trusted: a line is
 * bounded, and descriptors that nobody takes are closed. */
#ifndef REFTEST_WORKERS_CHANNEL_H
#define REFTEST_WORKERS_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { CHANNEL_LINE_MAX = 16 << 20, CHANNEL_FDS = 2 };

struct parcel; /* a message on its way */

struct channel {
	int fd;                /* owned; -1: closed */
	int received;          /* a descriptor that came and has not been taken, owned; -1: none */
	struct buf in;
	size_t taken, scanned; /* of `in`: bytes already handed out as lines, bytes known to hold no further newline */
	struct parcel *first, **last;
	int epoll;    /* not owned; -1: nobody waits for this channel in a loop */
	bool waiting; /* to be told by it when more can be sent */
};

/* Takes over `fd`. */
void channel_open(struct channel *channel, int fd);
/* From now on `epoll` becomes readable when there is something to read or, while something is unsent, to send. */
int channel_watch(struct channel *channel, int epoll, struct err *err);
void channel_close(struct channel *channel); /* any number of times */

/* Two connected sockets, both close-on-exec; `ours` does not block. */
int channel_pair(int *ours, int *theirs, struct err *err);

enum channel_answer {
	CHANNEL_DATA,    /* something came: look for lines */
	CHANNEL_EMPTY,   /* nothing at present */
	CHANNEL_END,     /* the peer is gone */
	CHANNEL_TOO_LONG /* a line beyond CHANNEL_LINE_MAX */
};
/* One read. */
enum channel_answer channel_read(struct channel *channel);

/* The next whole line, NUL-terminated without its newline, valid until the next channel_read; NULL: none yet. */
char *channel_line(struct channel *channel, size_t *length);

/* The descriptor that came last, now the caller's; -1: none. */
int channel_take_fd(struct channel *channel);

/* Sends the text and a newline, and with its first byte copies of the descriptors (at most CHANNEL_FDS; not taken over).
 * What the socket does not take at once is sent by channel_flush. */
void channel_send(struct channel *channel, const char *text, size_t length, const int *fds, int fd_count);
void channel_flush(struct channel *channel);
bool channel_unsent(const struct channel *channel);

#endif
