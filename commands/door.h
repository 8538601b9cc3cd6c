/* door - where other commands ask a running watcher: a Unix socket below .reftest, for its owner alone.
 *
 * One question a connection, one JSON line each way:
 *   {"ask": "verified", "context": HEX}   when everything written before is verified: who vouches for what
 *   {"ask": "paths", "names": [NAME…]}    when everything written before is planned: the definitions of these names
 *   {"ask": "progress"}                   at once: how far it is
 * An answer includes every write made before the question: the watcher writes a cookie file where it watches, and what
 * stands before the cookie in the queue of events was heard of when the cookie is. (Each cookie holds another time, for where
 * files are polled their content tells them apart.) The lock beside the socket is the
 * kernel's (flock), so that a watcher that died holds nothing and the socket it left behind is known to be stale. */
#ifndef REFTEST_COMMANDS_DOOR_H
#define REFTEST_COMMANDS_DOOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum { DOOR_VISITORS = 32, DOOR_QUESTION = 64 * 1024 };

#define DOOR_COOKIE ".reftest/watch.cookie"

struct visitor {
	int fd;           /* -1: nobody */
	struct buf in, out;
	bool asked;       /* the question is whole */
	bool fresh;       /* what was written before it has been heard of */
	size_t sent;
};

struct door {
	int lock, listener, epoll; /* -1: none */
	int folder;                /* in which the socket lies, wherever it has been moved to; -1 */
	dev_t device;              /* and of the socket there: another's may have come in its place */
	ino_t inode;
	char root[4096];
	struct visitor visitors[DOOR_VISITORS];
};

void door_init(struct door *door);
/* 0, also when there can be no socket (a folder that cannot be written); -1: another process watches this root, and
 * which. */
int door_open(struct door *door, const char *root, struct err *err);
void door_close(struct door *door);

int door_fd(const struct door *door); /* readable: door_turn has something to do; -1 */
/* Takes in questions. true: there is a new one, and the cookie has been written. */
bool door_turn(struct door *door);
/* The cookie has been heard of: all questions asked so far are fresh. */
void door_heard_cookie(struct door *door);
bool door_waits(const struct door *door); /* is a question without an answer? */

/* Appends the answer to `question` (a JSON text) to `out`; false: not yet. */
typedef bool door_answer(const char *question, size_t length, struct buf *out, void *context);
/* Answers what is fresh and can be answered. */
void door_answer_all(struct door *door, door_answer *answer, void *context);

/* ---- The other side: who asks ------------------------------------------------------------------------------------- */

enum { DOOR_LONG_MS = 1000, DOOR_GLANCE_MS = 500 };

/* Called once, when the watcher `process` (0: not known) has not answered within DOOR_LONG_MS; the wait goes on. */
typedef void door_long_wait(const char *root, long process);

/* Asks the watcher of this root. true: `answer` holds its line; false: there is none, it went away, or it is stopped
 * (Ctrl-Z) and would never answer. `long_wait` NULL: it is asked for what it can say at once, and waited for DOOR_GLANCE_MS. */
bool door_ask(const char *root, const struct buf *question, struct buf *answer, door_long_wait *long_wait);

#endif
