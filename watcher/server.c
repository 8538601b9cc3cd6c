#include "watcher/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/process_suspended.h"

#define SOCKET "watch.sock"
#define LOCK "watch.lock"

enum { ANSWER_MOST = 64 << 20, LISTENER = SERVER_CLIENTS, PATIENCE_MS = 500 };

/* Sets the address of the socket to a path of the form /proc/self/fd/FOLDER/NAME, where FOLDER is an open descriptor of
 * the socket's folder. The path of the folder itself may be too long, because an address has room for only 107
 * bytes. */
static bool socket_address(int folder, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	return snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/" SOCKET, folder) <
	       (int)sizeof address->sun_path;
}

static int open_folder(const char *root)
{
	char path[4200];

	snprintf(path, sizeof path, "%s/.reftest", root);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

void server_init(struct server *server)
{
	*server = (struct server){.lock = -1, .listener = -1, .epoll = -1, .folder = -1};
	for (int i = 0; i < SERVER_CLIENTS; i++)
		server->clients[i].fd = -1;
}

/* Locks the lock file and writes the id of this process to the file. Returns 0 on success. If another process holds the
 * lock, returns 1 and sets `holder` to the id of that process. Returns -1 if the lock file cannot be opened. */
static int take_lock(struct server *server, int folder, long *holder)
{
	char text[32] = "";

	server->lock = openat(folder, LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (server->lock < 0)
		return -1;
	if (flock(server->lock, LOCK_EX | LOCK_NB) != 0) {
		ssize_t length = pread(server->lock, text, sizeof text - 1, 0);

		*holder = length > 0 ? strtol(text, NULL, 10) : 0;
		close_fd(&server->lock);
		return 1;
	}
	int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());

	if (ftruncate(server->lock, 0) != 0 || pwrite(server->lock, text, (size_t)length, 0) != length)
		return 0; /* the disk is full: the process holds the lock, but its id is not in the file */
	return 0;
}

static bool watch_fd(const struct server *server, int fd, int who, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u32 = (uint32_t)who};

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Creates the socket and listens on it. Removes an existing socket file, which must be stale, because this process
 * holds the lock. */
static void open_listener(struct server *server, int folder)
{
	struct sockaddr_un address;
	struct stat st = {0};

	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlinkat(folder, SOCKET, 0);
	mode_t mask = umask(0177);
	bool open = server->epoll >= 0 && server->listener >= 0 && socket_address(folder, &address) &&
		    bind(server->listener, (const struct sockaddr *)&address, sizeof address) == 0 &&
		    listen(server->listener, SERVER_CLIENTS) == 0 &&
		    watch_fd(server, server->listener, LISTENER, EPOLLIN) &&
		    fstatat(folder, SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0;

	umask(mask);
	server->device = st.st_dev;
	server->inode = st.st_ino;
	if (!open) {
		close_fd(&server->listener);
		close_fd(&server->epoll);
	}
}

int server_open(struct server *server, const char *root, struct err *err)
{
	int folder = open_folder(root);
	long holder = 0;

	snprintf(server->root, sizeof server->root, "%s", root);
	if (folder < 0)
		return 0;
	int lock_answer = take_lock(server, folder, &holder);

	if (lock_answer == 0)
		open_listener(server, folder);
	if (server->listener >= 0)
		server->folder = folder;
	else
		close(folder);
	if (lock_answer != 1)
		return 0;
	if (holder <= 0) /* the lock file has no process id, because the other process has not written it yet or the
			  * disk is full */
		return err_set(err,
			       "%s is being watched by another process already; `reftest status` queries that process",
			       root);
	return err_set(err,
		       "%s is being watched by process %ld already; `reftest status` queries that process, and `kill %ld` "
		       "ends it",
		       root, holder, holder);
}

static void close_client(struct client *client)
{
	close_fd(&client->fd);
	buf_free(&client->in);
	buf_free(&client->out);
	*client = (struct client){.fd = -1};
}

/* Removes the socket file, but only if this process created it. If the root was replaced by another folder or the lock
 * file was removed, another watcher may have created a socket file at the same path. The inode numbers tell the two
 * socket files apart: while this process listens, no other file gets the inode number of its socket file. */
static void remove_socket(const struct server *server)
{
	struct stat st;

	if (server->listener >= 0 && fstatat(server->folder, SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == server->device && st.st_ino == server->inode)
		unlinkat(server->folder, SOCKET, 0);
}

void server_close(struct server *server)
{
	remove_socket(server);
	close_fd(&server->folder);
	for (int i = 0; i < SERVER_CLIENTS; i++)
		close_client(&server->clients[i]);
	close_fd(&server->listener);
	close_fd(&server->epoll);
	close_fd(&server->lock); /* releases the lock last, because the lock protects the socket file */
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

static bool is_owner(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == getuid() || peer.uid == 0);
}

static void accept_clients(struct server *server)
{
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		int i = 0;

		while (i < SERVER_CLIENTS && server->clients[i].fd >= 0)
			i++;
		if (i == SERVER_CLIENTS || !is_owner(fd) || !watch_fd(server, fd, i, EPOLLIN))
			close(fd);
		else
			server->clients[i].fd = fd;
	}
}

/* Reads from a client. Returns true if the client's query is complete. */
static bool read_question(struct client *client)
{
	ssize_t length;

	do {
		buf_reserve(&client->in, 4096);
		length = read(client->fd, client->in.data + client->in.length, 4096 - 1);
		client->in.length += length > 0 ? (size_t)length : 0;
	} while (length > 0 && client->in.length < SERVER_QUESTION);
	bool asked =
	    !client->asked && client->in.length > 0 && memchr(client->in.data, '\n', client->in.length) != NULL;

	if (length == 0 || (length < 0 && errno != EAGAIN) || client->in.length >= SERVER_QUESTION) {
		close_client(client);
		return false;
	}
	client->asked = client->asked || asked;
	return asked;
}

static void write_cookie(const struct server *server)
{
	char path[4200], text[64];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	int length = snprintf(text, sizeof text, "%20lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);

	snprintf(path, sizeof path, "%s/" SERVER_COOKIE, server->root);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && pwrite(fd, text, (size_t)length, 0) != length)
		unlink(path); /* the disk is full: deletes the file instead, because this causes an event, too */
	if (fd >= 0)
		close(fd); /* the file was opened for writing, so closing it causes the event */
}

bool server_turn(struct server *server)
{
	struct epoll_event events[SERVER_CLIENTS + 1];
	int count = epoll_wait(server->epoll, events, SERVER_CLIENTS + 1, 0);
	bool asked = false;

	for (int i = 0; i < count; i++) {
		uint32_t who = events[i].data.u32;

		if (who == LISTENER)
			accept_clients(server);
		else if (server->clients[who].fd >= 0)
			asked = read_question(&server->clients[who]) || asked;
	}
	if (asked)
		write_cookie(server);
	return asked;
}

void server_cookie_arrived(struct server *server)
{
	for (int i = 0; i < SERVER_CLIENTS; i++)
		server->clients[i].fresh = server->clients[i].asked;
}

bool server_waits(const struct server *server)
{
	for (int i = 0; i < SERVER_CLIENTS; i++)
		if (server->clients[i].asked)
			return true;
	return false;
}

int server_fd(const struct server *server)
{
	return server->epoll;
}

/* Sends the answer and closes the connection. If the client does not read for a second, closes the connection before
 * everything is sent. reftest's own client always reads. */
static void send_answer(struct client *client)
{
	struct pollfd ready = {client->fd, POLLOUT, 0};

	while (client->sent < client->out.length) {
		ssize_t length =
		    send(client->fd, client->out.data + client->sent, client->out.length - client->sent, MSG_NOSIGNAL);

		if (length < 0 && errno == EAGAIN && poll(&ready, 1, 1000) > 0)
			continue;
		if (length <= 0)
			break;
		client->sent += (size_t)length;
	}
	close_client(client);
}

void server_answer_all(struct server *server, server_answer *answer, void *context)
{
	for (int i = 0; i < SERVER_CLIENTS; i++) {
		struct client *client = &server->clients[i];

		if (!client->fresh)
			continue;
		const char *end = memchr(client->in.data, '\n', client->in.length);

		if (answer(client->in.data, (size_t)(end - client->in.data), &client->out, context))
			send_answer(client);
	}
}

/* ---- the client's side ------------------------------------------------------------------------------------------ */

/* Returns the id of the process that listens at the other end of the connection, or 0 if it is unknown. */
static long process_of(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0 ? (long)peer.pid : 0;
}

/* Waits until the answer can be read. If `long_wait` is set, there is no time limit, because the watcher may first have
 * to finish its runs. The function then returns false only if the watcher process is stopped (by Ctrl-Z or a
 * debugger). */
static bool wait_for_answer(int fd, const char *root, server_long_wait *long_wait, int64_t *waited_ms)
{
	const int64_t limit = long_wait != NULL ? SERVER_LONG_MS : SERVER_GLANCE_MS;
	struct pollfd ready = {fd, POLLIN, 0};
	long process = process_of(fd);

	for (int ms = 50; poll(&ready, 1, ms) == 0; ms = PATIENCE_MS) {
		bool was_long = *waited_ms >= limit;

		*waited_ms += ms;
		if (process_is_stopped(process) || (long_wait == NULL && *waited_ms >= limit))
			return false;
		if (!was_long && *waited_ms >= limit)
			long_wait(root, process);
	}
	return true;
}

static bool read_answer(int fd, const char *root, struct buf *answer, server_long_wait *long_wait)
{
	int64_t waited_ms = 0;
	ssize_t length;

	do {
		if (!wait_for_answer(fd, root, long_wait, &waited_ms))
			return false;
		buf_reserve(answer, 64 * 1024);
		length = read(fd, answer->data + answer->length, 64 * 1024 - 1);
		answer->length += length > 0 ? (size_t)length : 0;
	} while (length > 0 && answer->length < ANSWER_MOST);
	return answer->length > 0 && answer->data[answer->length - 1] == '\n';
}

bool server_ask(const char *root, const struct buf *question, struct buf *answer, server_long_wait *long_wait)
{
	int folder = open_folder(root), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* A time limit for connect, which waits if the watcher's listen queue is full. */
	const struct timeval patience = {.tv_usec = PATIENCE_MS * 1000};
	struct sockaddr_un address;
	bool answered = folder >= 0 && fd >= 0 && socket_address(folder, &address) &&
	                setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
	                connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
	                send(fd, question->data, question->length, MSG_NOSIGNAL) == (ssize_t)question->length &&
	                read_answer(fd, root, answer, long_wait);

	close_fd(&folder);
	close_fd(&fd);
	return answered;
}
