/* server - the Unix socket below .reftest through which other commands query a running watcher. Only the user who
 * started the watcher, and root, can connect.
 *
 * A client opens one connection per query, sends one line of JSON and receives one line of JSON. watcher/query.c
 * computes the answers. Events (changes, verdicts) are not sent through the socket; `watch --json` prints them
 * (watcher/watch_output.h).
 *
 *   {"ask":"verified","context":HEX} asks for the verified definitions, and is answered when all batches have ended.
 *   {"ask":"paths","names":[NAME…]} asks for the paths of definitions, and is answered when all batches are planned.
 *   {"ask":"progress"} asks how many definitions are left to verify, and is answered immediately.
 *
 * An answer includes the effects of every file change that was made before the query. To ensure this, the watcher
 * writes a cookie file into a watched folder when a query arrives. When the watcher receives the event for the cookie
 * file, it has received all earlier events. The cookie file contains the current time, because a polling watcher
 * detects the file only if its content has changed.
 *
 * The watcher holds an flock on a lock file beside the socket. The kernel releases the lock when the watcher dies, so a
 * socket is stale if its lock file is not locked. */
#ifndef REFTEST_WATCHER_SERVER_H
#define REFTEST_WATCHER_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum { SERVER_CLIENTS = 32, SERVER_QUESTION = 64 * 1024 };

#define SERVER_COOKIE ".reftest/watch.cookie"

struct client {
	int fd;           /* the connection; -1: this entry is unused */
	struct buf in, out;
	bool asked;       /* the whole query was received */
	bool fresh;       /* all events for file changes before the query have been received */
	size_t sent;
};

struct server {
	int lock, listener, epoll; /* descriptors; -1: none */
	int folder;                /* a descriptor of the folder with the socket, which stays valid if the folder is
				    * moved; -1: none */
	dev_t device;              /* device and inode number identify the socket file that this watcher created */
	ino_t inode;
	char root[4096];
	struct client clients[SERVER_CLIENTS];
};

void server_init(struct server *server);
/* Opens the socket. Returns 0 even if no socket can be created, for example in a read-only folder. Returns -1 and sets
 * `err` if another process watches this root. */
int server_open(struct server *server, const char *root, struct err *err);
void server_close(struct server *server);

int server_fd(const struct server *server); /* call server_turn when this descriptor is readable; -1: there is no
					     * socket */
/* Reads queries. If there is a new query, writes the cookie file and returns true. */
bool server_turn(struct server *server);
/* Call this when the event for the cookie file arrives. Sets `fresh` of every client whose query has been received. */
void server_cookie_arrived(struct server *server);
bool server_waits(const struct server *server); /* returns whether some query has no answer yet */

/* Appends the answer to `question` (a JSON text) to `out`. Returns false if there is no answer yet. */
typedef bool server_answer(const char *question, size_t length, struct buf *out, void *context);
/* Answers the query of each client with `fresh` set, if the answer is available. */
void server_answer_all(struct server *server, server_answer *answer, void *context);

/* ---- the client's side --------------------------------------------------------------------------------------- */

enum { SERVER_LONG_MS = 1000, SERVER_GLANCE_MS = 500 };

/* Informs the user that the watcher has not answered after SERVER_LONG_MS. `process` is the watcher's process id, or 0
 * if it is unknown. Called at most once; the client then continues to wait. */
typedef void server_long_wait(const char *root, long process);

/* Sends a query to the watcher of this root. Returns true and sets `answer` to the answer, which is one line. Returns
 * false if there is no watcher, if the watcher exits, or if it is stopped (Ctrl-Z) and would never answer. If
 * `long_wait` is NULL, waits at most SERVER_GLANCE_MS; use this for queries that are answered immediately. */
bool server_ask(const char *root, const struct buf *question, struct buf *answer, server_long_wait *long_wait);

#endif
