#include "workers/protocol/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 64 << 10, RECEIVED_MAX = 8 };

struct outgoing {
	struct outgoing *next;
	int fds[CHANNEL_FDS]; /* copies of the descriptors, which are closed after they are sent */
	int fd_count;
	size_t sent, length;
	char text[];
};

union control { /* a buffer with the alignment of a cmsghdr */
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int) * RECEIVED_MAX)];
};

void channel_open(struct channel *channel, int fd)
{
	*channel = (struct channel){.fd = fd, .received = -1, .epoll = -1};
	channel->last = &channel->first;
}

int channel_watch(struct channel *channel, int epoll, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &event) != 0)
		return err_errno(err, "cannot add a worker's socket to epoll");
	channel->epoll = epoll;
	return 0;
}

static void outgoing_free(struct outgoing *outgoing)
{
	for (int i = 0; i < outgoing->fd_count; i++)
		close(outgoing->fds[i]);
	free(outgoing);
}

void channel_close(struct channel *channel)
{
	while (channel->first != NULL) {
		struct outgoing *outgoing = channel->first;

		channel->first = outgoing->next;
		outgoing_free(outgoing);
	}
	channel->last = &channel->first;
	if (channel->received >= 0)
		close(channel->received);
	if (channel->fd >= 0)
		close(channel->fd);
	channel->fd = channel->received = -1;
	channel->taken = channel->scanned = 0;
	buf_free(&channel->in);
}

int channel_pair(int *ours, int *theirs, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return err_errno(err, "cannot create a socket pair for a worker");
	if (fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0) {
		err_errno(err, "cannot make a socket non-blocking");
		close(pair[0]);
		close(pair[1]);
		return -1;
	}
	*ours = pair[0];
	*theirs = pair[1];
	return 0;
}

/* Keeps the last descriptor of a received message, and closes the other descriptors. */
static void take_descriptors(struct channel *channel, struct msghdr *message)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (channel->received >= 0)
				close(channel->received);
			channel->received = fd;
		}
	}
}

enum channel_answer channel_read(struct channel *channel)
{
	char bytes[READ_SIZE];
	union control control;
	struct iovec part = {bytes, sizeof bytes};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
	ssize_t got;

	if (channel->fd < 0)
		return CHANNEL_END;
	do
		got = recvmsg(channel->fd, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? CHANNEL_EMPTY : CHANNEL_END;
	take_descriptors(channel, &message);
	if (got == 0)
		return CHANNEL_END;
	buf_drop(&channel->in, channel->taken);
	channel->scanned -= channel->taken;
	channel->taken = 0;
	buf_add(&channel->in, bytes, (size_t)got);
	if (channel->in.length > CHANNEL_LINE_MAX && memchr(channel->in.data, '\n', channel->in.length) == NULL)
		return CHANNEL_TOO_LONG;
	return CHANNEL_DATA;
}

char *channel_line(struct channel *channel, size_t *length)
{
	char *newline = NULL, *line;

	if (channel->scanned < channel->in.length)
		newline = memchr(channel->in.data + channel->scanned, '\n', channel->in.length - channel->scanned);
	if (newline == NULL) {
		channel->scanned = channel->in.length;
		return NULL;
	}
	line = channel->in.data + channel->taken;
	*length = (size_t)(newline - line);
	*newline = '\0';
	channel->taken = channel->scanned = (size_t)(newline + 1 - channel->in.data);
	return line;
}

int channel_take_fd(struct channel *channel)
{
	int fd = channel->received;

	channel->received = -1;
	return fd;
}

/* Sends the next bytes of a message with one call of sendmsg. Returns the number of bytes sent, or -1 and sets
 * errno. */
static ssize_t send_some(int fd, struct outgoing *outgoing)
{
	union control control = {0};
	struct iovec part = {outgoing->text + outgoing->sent, outgoing->length - outgoing->sent};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	if (outgoing->fd_count > 0) {
		size_t bytes = sizeof(int) * (size_t)outgoing->fd_count;

		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(bytes);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(&control.head), outgoing->fds, bytes);
	}
	do
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent;
}

/* Sends waiting messages until the socket accepts no more data. If the peer has closed the socket, drops the messages;
 * channel_read reports the end. */
static void send_outgoing(struct channel *channel)
{
	while (channel->fd >= 0 && channel->first != NULL) {
		struct outgoing *outgoing = channel->first;
		ssize_t sent = send_some(channel->fd, outgoing);

		if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (sent > 0) {
			for (int i = 0; i < outgoing->fd_count; i++)
				close(outgoing->fds[i]);
			outgoing->fd_count = 0;
			outgoing->sent += (size_t)sent;
		}
		if (sent >= 0 && outgoing->sent < outgoing->length)
			continue;
		channel->first = outgoing->next;
		if (channel->first == NULL)
			channel->last = &channel->first;
		outgoing_free(outgoing);
	}
}

void channel_flush(struct channel *channel)
{
	bool unsent;

	send_outgoing(channel);
	unsent = channel->first != NULL;
	if (channel->fd < 0 || channel->epoll < 0 || unsent == channel->waiting)
		return;
	struct epoll_event event = {.events = unsent ? EPOLLIN | EPOLLOUT : EPOLLIN};

	channel->waiting = epoll_ctl(channel->epoll, EPOLL_CTL_MOD, channel->fd, &event) == 0 && unsent;
}

/* Copies the descriptors that are sent with a message. Returns false if not all can be copied. */
static bool copy_fds(struct outgoing *outgoing, const int *fds, int fd_count)
{
	for (int i = 0; i < fd_count && i < CHANNEL_FDS; i++) {
		int copy = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);

		if (copy >= 0)
			outgoing->fds[outgoing->fd_count++] = copy;
	}
	return outgoing->fd_count == fd_count;
}

void channel_send(struct channel *channel, const char *text, size_t length, const int *fds, int fd_count)
{
	struct outgoing *outgoing;

	if (channel->fd < 0)
		return;
	outgoing = malloc(sizeof *outgoing + length + 1);
	if (outgoing == NULL)
		die_no_memory();
	*outgoing = (struct outgoing){.length = length + 1};
	memcpy(outgoing->text, text, length);
	outgoing->text[length] = '\n';
	if (!copy_fds(outgoing, fds, fd_count)) {
		outgoing_free(outgoing);
		shutdown(channel->fd, SHUT_RDWR);
		return;
	}
	*channel->last = outgoing;
	channel->last = &outgoing->next;
	channel_flush(channel);
}

bool channel_unsent(const struct channel *channel)
{
	return channel->first != NULL;
}
