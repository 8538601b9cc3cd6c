#include "remote/remote_store.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* UNSENT_MAX: the maximum number of bytes that are buffered for the helper; further values are dropped. TAKEN_MAX: the
 * maximum number of bytes that a run receives. */
enum { UNSENT_MAX = 64 << 20, TAKEN_MAX = 512 << 20, READ_BYTES = 256 * 1024 };

struct remote {
	struct remote_url url;
	int fd, signals;
	struct buf in, out;
	size_t taken, sent; /* how many bytes of `in` were handled, and how many bytes of `out` were sent */
	int64_t left_ms;    /* how long this run may still wait for the remote */
	int64_t received;
	bool failed, interrupted;
	int puts, refused;
	struct err first;	 /* message about the first value that was refused */
	const char *const *keys; /* keys of the current batch */
	int key_count;
	remote_found *found;
	void *context;
	bool done; /* MESSAGE_DONE was received */
	uint32_t kept;
	struct err trouble; /* the error message in MESSAGE_DONE, or "" */
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct remote *remote_open(const struct remote_url *url, int fd, int signals)
{
	struct remote *remote = calloc(1, sizeof *remote);

	if (remote == NULL)
		die_no_memory();
	remote->url = *url;
	remote->fd = fd;
	remote->signals = signals;
	remote->left_ms = url->timeout_ms;
	return remote;
}

void remote_close(struct remote *remote)
{
	close(remote->fd);
	buf_free(&remote->in);
	buf_free(&remote->out);
	free(remote);
}

bool remote_failed(const struct remote *remote)
{
	return remote->failed;
}

int remote_refused(const struct remote *remote, const char **first)
{
	*first = remote->refused > 0 ? remote->first.text : NULL;
	return remote->refused;
}

static int fail(struct remote *remote, const char *why, struct err *err)
{
	remote->failed = true;
	return err_set(err, "the remote cache %s %s", remote->url.shown, why);
}

/* Sends as many bytes as the socket accepts. Returns false if the helper has exited. */
static bool send_some(struct remote *remote)
{
	while (remote->sent < remote->out.length) {
		ssize_t sent = send(remote->fd, remote->out.data + remote->sent, remote->out.length - remote->sent,
				    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		remote->sent += (size_t)sent;
	}
	buf_clear(&remote->out);
	remote->sent = 0;
	return true;
}

static void take_refusal(struct remote *remote, struct message *message)
{
	if (remote->refused++ == 0)
		err_set(&remote->first, "%.*s", (int)message->length, (const char *)message->body);
}

/* Handles one message of the helper. Returns false if the message is invalid. */
static bool take_message(struct remote *remote, struct message *message)
{
	uint32_t number;

	if (message_number(message, &number) < 0)
		return false;
	switch (message->kind) {
	case MESSAGE_FOUND:
		if (remote->found == NULL || number >= (uint32_t)remote->key_count)
			return false;
		remote->found(remote->context, (int)number, message->body, message->length);
		return true;
	case MESSAGE_REFUSED:
		take_refusal(remote, message);
		return true;
	case MESSAGE_DONE:
		remote->done = true;
		remote->kept = number;
		err_set(&remote->trouble, "%.*s", (int)message->length, (const char *)message->body);
		return true;
	default:
		return false;
	}
}

/* Reads once and handles all complete messages. Returns false if the helper has exited or sent an invalid message. */
static bool receive_some(struct remote *remote)
{
	struct message message;
	int rc;

	buf_reserve(&remote->in, READ_BYTES);
	ssize_t came = recv(remote->fd, remote->in.data + remote->in.length, READ_BYTES, MSG_DONTWAIT);

	if (came < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
	if (came == 0)
		return false;
	remote->in.length += (size_t)came;
	remote->received += came;
	while ((rc = message_next(&remote->in, &remote->taken, &message)) > 0)
		if (!take_message(remote, &message))
			return false;
	buf_drop(&remote->in, remote->taken);
	remote->taken = 0;
	return rc == 0 && remote->received <= TAKEN_MAX;
}

/* Waits once. Returns false if the caller must stop waiting: the user interrupted the program, or the helper has exited
 * or sent an invalid message. */
static bool turn(struct remote *remote, int64_t wait_ms)
{
	struct pollfd fds[2] = {{.fd = remote->fd, .events = POLLIN}, {.fd = remote->signals, .events = POLLIN}};

	if (remote->sent < remote->out.length)
		fds[0].events |= POLLOUT;
	if (poll(fds, 2, (int)wait_ms) < 0)
		return errno == EINTR;
	if ((fds[1].revents & POLLIN) != 0) {
		remote->interrupted = true;
		return false;
	}
	if ((fds[0].revents & POLLOUT) != 0 && !send_some(remote))
		return false;
	return (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0 || receive_some(remote);
}

/* Waits until the helper reports the end of the batch, or until the total time that the run may wait is used up. */
static int wait_done(struct remote *remote, struct err *err)
{
	int64_t start = now_ms(), end = start + remote->left_ms;
	bool going = true;

	remote->done = false;
	for (int64_t now = start; going && !remote->done && now < end; now = now_ms())
		going = turn(remote, end - now);
	remote->left_ms = remote->left_ms > now_ms() - start ? remote->left_ms - (now_ms() - start) : 0;
	if (remote->done && remote->trouble.text[0] == '\0')
		return 0;
	if (remote->done)
		return fail(remote, remote->trouble.text, err);
	if (remote->interrupted)
		return fail(remote, "did not finish: interrupted", err);
	if (!going)
		return fail(remote,
			    remote->received > TAKEN_MAX ? "sent more data than was requested"
							 : "could not be queried: the helper process exited",
			    err);
	struct err why;

	err_set(&why, "did not answer within %.3g s", remote->url.timeout_ms / 1000.0);
	return fail(remote, why.text, err);
}

int remote_get(struct remote *remote, const char *const *keys, int count, remote_found *found, void *context,
	       struct err *err)
{
	if (remote->failed || count == 0)
		return 0;
	for (int i = 0; i < count; i++)
		message_put(&remote->out, MESSAGE_ASK, keys[i], strlen(keys[i]));
	message_put(&remote->out, MESSAGE_ASKED, NULL, 0);
	remote->keys = keys;
	remote->key_count = count;
	remote->found = found;
	remote->context = context;
	int rc = wait_done(remote, err);

	remote->found = NULL;
	return rc;
}

void remote_put(struct remote *remote, const char *const *keys, int count, const void *bytes, size_t length)
{
	struct buf body = {0};
	const unsigned char number = (unsigned char)count;

	if (remote->failed)
		return;
	remote->puts++;
	if (length > REMOTE_VALUE_MAX || remote->out.length - remote->sent > UNSENT_MAX)
		return; /* the value is dropped; remote_flush counts it as not stored */
	buf_add(&body, &number, 1);
	for (int i = 0; i < count; i++) {
		const unsigned char size = (unsigned char)strlen(keys[i]);

		buf_add(&body, &size, 1);
		buf_add(&body, keys[i], size);
	}
	buf_add(&body, bytes, length);
	message_put(&remote->out, MESSAGE_KEEP, body.data, body.length);
	buf_free(&body);
	send_some(remote); /* if the socket is full, later calls of remote_put or remote_flush send the rest */
}

int remote_flush(struct remote *remote, struct err *err)
{
	struct err why;

	if (remote->failed || remote->puts == 0)
		return 0;
	message_put(&remote->out, MESSAGE_FLUSH, NULL, 0);
	if (wait_done(remote, err) < 0)
		return -1;
	if ((int)remote->kept == remote->puts)
		return 0;
	err_set(&why, "stored %d of %d verdicts", (int)remote->kept, remote->puts);
	return fail(remote, why.text, err);
}
