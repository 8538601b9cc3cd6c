/* channel - sends and receives lines over a stream socket, with optional descriptors (SCM_RIGHTS).
 *
 * A channel works with a blocking socket (in the judge) or with a non-blocking socket (in the pool). The process at the
 * other end of the socket is not trusted. Therefore the length of a line is limited, and received descriptors are
 * closed if no caller asks for them (channel_take_fd). */
#ifndef REFTEST_WORKERS_PROTOCOL_CHANNEL_H
#define REFTEST_WORKERS_PROTOCOL_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum { CHANNEL_LINE_MAX = 16 << 20, CHANNEL_FDS = 3 };

struct outgoing; /* a message that has not been sent completely */

struct channel {
	int fd;                /* the socket, which the channel closes; -1: closed */
	int received;          /* a received descriptor that nobody has taken yet, which the channel closes; -1: none */
	struct buf in;
	size_t taken;          /* how many bytes of `in` were already returned as lines */
	size_t scanned;        /* how many bytes of `in` were already searched for a newline */
	struct outgoing *first, **last;
	int epoll;    /* the epoll of channel_watch, which belongs to the caller; -1: channel_watch was not called */
	bool waiting; /* there is unsent data, so the epoll also reports that the socket accepts data (EPOLLOUT) */
};

/* `fd` then belongs to the channel. */
void channel_open(struct channel *channel, int fd);
/* Adds the channel to `epoll`. The epoll becomes readable when data can be read, or when unsent data can be sent. */
int channel_watch(struct channel *channel, int epoll, struct err *err);
void channel_close(struct channel *channel); /* may be called more than once */

/* Creates two connected sockets that are close-on-exec. `ours` is non-blocking. */
int channel_pair(int *ours, int *theirs, struct err *err);

enum channel_answer {
	CHANNEL_DATA,    /* data was read, so channel_line may return a line */
	CHANNEL_EMPTY,   /* there is no data to read now */
	CHANNEL_END,     /* the peer closed the socket */
	CHANNEL_TOO_LONG /* the peer sent a line longer than CHANNEL_LINE_MAX */
};
/* Reads data with one call of recvmsg. */
enum channel_answer channel_read(struct channel *channel);

/* Returns the next complete line, with a NUL in place of its newline. The line is valid until the next channel_read.
 * Returns NULL if there is no complete line yet. */
char *channel_line(struct channel *channel, size_t *length);

/* Returns the descriptor that was received last, or -1 if there is none. The caller must close it. */
int channel_take_fd(struct channel *channel);

/* Sends the text and a newline. Copies of the descriptors (at most CHANNEL_FDS) are sent with the first byte; the
 * caller keeps its own descriptors. If the socket does not accept all data, channel_flush sends the rest later. If not
 * all descriptors can be sent, nothing is sent and the connection ends; channel_read then returns CHANNEL_END. */
void channel_send(struct channel *channel, const char *text, size_t length, const int *fds, int fd_count);
void channel_flush(struct channel *channel);
bool channel_unsent(const struct channel *channel);

#endif
