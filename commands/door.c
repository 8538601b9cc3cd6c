#include "commands/door.h"

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

#include "base/stopped.h"

#define SOCKET "watch.sock"
#define LOCK "watch.lock"

enum { ANSWER_MOST = 64 << 20, LISTENER = DOOR_VISITORS, PATIENCE_MS = 500 };

/* Of a folder anywhere: a socket's address holds 107 bytes, a root's path may have thousands. */
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

void door_init(struct door *door)
{
	*door = (struct door){.lock = -1, .listener = -1, .epoll = -1, .folder = -1};
	for (int i = 0; i < DOOR_VISITORS; i++)
		door->visitors[i].fd = -1;
}

/* Takes the lock and writes our number into it. 1: somebody else has it, `holder` is his number; 0; -1: there is none. */
static int take_lock(struct door *door, int folder, long *holder)
{
	char text[32] = "";

	door->lock = openat(folder, LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (door->lock < 0)
		return -1;
	if (flock(door->lock, LOCK_EX | LOCK_NB) != 0) {
		ssize_t length = pread(door->lock, text, sizeof text - 1, 0);

		*holder = length > 0 ? strtol(text, NULL, 10) : 0;
		close_fd(&door->lock);
		return 1;
	}
	int length = snprintf(text, sizeof text, "%ld\n", (long)getpid());

	if (ftruncate(door->lock, 0) != 0 || pwrite(door->lock, text, (size_t)length, 0) != length)
		return 0; /* a full disk: the lock holds, only its number is missing */
	return 0;
}

static bool watch_fd(const struct door *door, int fd, int who, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u32 = (uint32_t)who};

	return epoll_ctl(door->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Whoever holds the lock owns the name: a socket that is there was left behind. */
static void open_listener(struct door *door, int folder)
{
	struct sockaddr_un address;
	struct stat st = {0};

	door->epoll = epoll_create1(EPOLL_CLOEXEC);
	door->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlinkat(folder, SOCKET, 0);
	mode_t mask = umask(0177);
	bool open = door->epoll >= 0 && door->listener >= 0 && socket_address(folder, &address) &&
	            bind(door->listener, (const struct sockaddr *)&address, sizeof address) == 0 &&
	            listen(door->listener, DOOR_VISITORS) == 0 && watch_fd(door, door->listener, LISTENER, EPOLLIN) &&
	            fstatat(folder, SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0;

	umask(mask);
	door->device = st.st_dev;
	door->inode = st.st_ino;
	if (!open) {
		close_fd(&door->listener);
		close_fd(&door->epoll);
	}
}

int door_open(struct door *door, const char *root, struct err *err)
{
	int folder = open_folder(root);
	long holder = 0;

	snprintf(door->root, sizeof door->root, "%s", root);
	if (folder < 0)
		return 0;
	int taken = take_lock(door, folder, &holder);

	if (taken == 0)
		open_listener(door, folder);
	if (door->listener >= 0)
		door->folder = folder;
	else
		close(folder);
	if (taken != 1)
		return 0;
	if (holder <= 0) /* it has not written its number yet, or could not: a full disk */
		return err_set(err, "%s is being watched by another process already; `reftest status` asks it", root);
	return err_set(err, "%s is being watched by process %ld already; `reftest status` asks it, and `kill %ld` ends it",
	               root, holder, holder);
}

static void leave(struct visitor *visitor)
{
	close_fd(&visitor->fd);
	buf_free(&visitor->in);
	buf_free(&visitor->out);
	*visitor = (struct visitor){.fd = -1};
}

/* The root may have been moved since, and another folder put in its place in which somebody else watches; or somebody took our
 * lock file away, and another watcher its place. As long as we listen, no other socket has the number of ours. */
static void take_socket_away(const struct door *door)
{
	struct stat st;

	if (door->listener >= 0 && fstatat(door->folder, SOCKET, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == door->device &&
	    st.st_ino == door->inode)
		unlinkat(door->folder, SOCKET, 0);
}

void door_close(struct door *door)
{
	take_socket_away(door);
	close_fd(&door->folder);
	for (int i = 0; i < DOOR_VISITORS; i++)
		leave(&door->visitors[i]);
	close_fd(&door->listener);
	close_fd(&door->epoll);
	close_fd(&door->lock); /* last: until here the name is ours */
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

static bool is_owner(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == getuid() || peer.uid == 0);
}

static void accept_visitors(struct door *door)
{
	int fd;

	while ((fd = accept4(door->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		int i = 0;

		while (i < DOOR_VISITORS && door->visitors[i].fd >= 0)
			i++;
		if (i == DOOR_VISITORS || !is_owner(fd) || !watch_fd(door, fd, i, EPOLLIN))
			close(fd);
		else
			door->visitors[i].fd = fd;
	}
}

/* true: the question is whole now. */
static bool read_question(struct visitor *visitor)
{
	ssize_t length;

	do {
		buf_reserve(&visitor->in, 4096);
		length = read(visitor->fd, visitor->in.data + visitor->in.length, 4096 - 1);
		visitor->in.length += length > 0 ? (size_t)length : 0;
	} while (length > 0 && visitor->in.length < DOOR_QUESTION);
	bool asked = !visitor->asked && visitor->in.length > 0 && memchr(visitor->in.data, '\n', visitor->in.length) != NULL;

	if (length == 0 || (length < 0 && errno != EAGAIN) || visitor->in.length >= DOOR_QUESTION) {
		leave(visitor);
		return false;
	}
	visitor->asked = visitor->asked || asked;
	return asked;
}

static void write_cookie(const struct door *door)
{
	char path[4200], text[64];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	int length = snprintf(text, sizeof text, "%20lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);

	snprintf(path, sizeof path, "%s/" DOOR_COOKIE, door->root);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && pwrite(fd, text, (size_t)length, 0) != length)
		unlink(path); /* a full disk: that it goes is heard of, too */
	if (fd >= 0)
		close(fd); /* closed after being opened for writing: that is the event */
}

bool door_turn(struct door *door)
{
	struct epoll_event events[DOOR_VISITORS + 1];
	int count = epoll_wait(door->epoll, events, DOOR_VISITORS + 1, 0);
	bool asked = false;

	for (int i = 0; i < count; i++) {
		uint32_t who = events[i].data.u32;

		if (who == LISTENER)
			accept_visitors(door);
		else if (door->visitors[who].fd >= 0)
			asked = read_question(&door->visitors[who]) || asked;
	}
	if (asked)
		write_cookie(door);
	return asked;
}

void door_heard_cookie(struct door *door)
{
	for (int i = 0; i < DOOR_VISITORS; i++)
		door->visitors[i].fresh = door->visitors[i].asked;
}

bool door_waits(const struct door *door)
{
	for (int i = 0; i < DOOR_VISITORS; i++)
		if (door->visitors[i].asked)
			return true;
	return false;
}

int door_fd(const struct door *door)
{
	return door->epoll;
}

/* The answer goes out as fast as the other side reads, within a second in all: it is somebody of ours. */
static void send_answer(struct visitor *visitor)
{
	struct pollfd ready = {visitor->fd, POLLOUT, 0};

	while (visitor->sent < visitor->out.length) {
		ssize_t length = send(visitor->fd, visitor->out.data + visitor->sent, visitor->out.length - visitor->sent,
		                      MSG_NOSIGNAL);

		if (length < 0 && errno == EAGAIN && poll(&ready, 1, 1000) > 0)
			continue;
		if (length <= 0)
			break;
		visitor->sent += (size_t)length;
	}
	leave(visitor);
}

void door_answer_all(struct door *door, door_answer *answer, void *context)
{
	for (int i = 0; i < DOOR_VISITORS; i++) {
		struct visitor *visitor = &door->visitors[i];

		if (!visitor->fresh)
			continue;
		const char *end = memchr(visitor->in.data, '\n', visitor->in.length);

		if (answer(visitor->in.data, (size_t)(end - visitor->in.data), &visitor->out, context))
			send_answer(visitor);
	}
}

/* ---- who asks --------------------------------------------------------------------------------------------------- */

/* The process that listens there; 0: not known. */
static long process_of(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0 ? (long)peer.pid : 0;
}

/* An answer may take as long as what it waits for runs, so only one from a process that stands still (Ctrl-Z, a debugger) is
 * given up: it answers nobody until somebody lets it go on. */
static bool wait_for_answer(int fd, const char *root, door_long_wait *long_wait, int64_t *waited_ms)
{
	const int64_t limit = long_wait != NULL ? DOOR_LONG_MS : DOOR_GLANCE_MS;
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

static bool read_answer(int fd, const char *root, struct buf *answer, door_long_wait *long_wait)
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

bool door_ask(const char *root, const struct buf *question, struct buf *answer, door_long_wait *long_wait)
{
	int folder = open_folder(root), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval patience = {.tv_usec = PATIENCE_MS * 1000}; /* for a place in his queue, if that is full */
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
