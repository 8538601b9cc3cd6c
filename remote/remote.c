#include "remote/remote.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Bytes that may wait for the courier before values are dropped, and that one run may take in. */
enum { UNSENT_MAX = 64 << 20, TAKEN_MAX = 512 << 20, READ_BYTES = 256 * 1024 };

struct remote {
	struct place place;
	int fd, signals;
	struct buf in, out;
	size_t taken, sent; /* of `in`, of `out` */
	int64_t left_ms;    /* that this run may still wait */
	int64_t received;
	bool failed, interrupted;
	int puts, refused;
	struct err first;	 /* refused */
	const char *const *keys; /* of the batch under way */
	int key_count;
	remote_found *found;
	void *context;
	bool done; /* FRAME_DONE has come */
	uint32_t kept;
	struct err trouble; /* what it said */
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct remote *remote_open(const struct place *place, int fd, int signals)
{
	struct remote *remote = calloc(1, sizeof *remote);

	if (remote == NULL)
		die_no_memory();
	remote->place = *place;
	remote->fd = fd;
	remote->signals = signals;
	remote->left_ms = place->timeout_ms;
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
	return err_set(err, "the remote cache %s %s", remote->place.shown, why);
}

/* What the socket takes now. false: the courier is gone. */
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

static void take_refusal(struct remote *remote, struct frame *frame)
{
	if (remote->refused++ == 0)
		err_set(&remote->first, "%.*s", (int)frame->length, (const char *)frame->body);
}

/* false: it makes no sense. */
static bool take_frame(struct remote *remote, struct frame *frame)
{
	uint32_t number;

	if (frame_number(frame, &number) < 0)
		return false;
	switch (frame->kind) {
	case FRAME_FOUND:
		if (remote->found == NULL || number >= (uint32_t)remote->key_count)
			return false;
		remote->found(remote->context, (int)number, frame->body, frame->length);
		return true;
	case FRAME_REFUSED:
		take_refusal(remote, frame);
		return true;
	case FRAME_DONE:
		remote->done = true;
		remote->kept = number;
		err_set(&remote->trouble, "%.*s", (int)frame->length, (const char *)frame->body);
		return true;
	default:
		return false;
	}
}

/* One read, and what is whole by then. false: the courier is gone, or speaks nonsense. */
static bool receive_some(struct remote *remote)
{
	struct frame frame;
	int rc;

	buf_reserve(&remote->in, READ_BYTES);
	ssize_t came = recv(remote->fd, remote->in.data + remote->in.length, READ_BYTES, MSG_DONTWAIT);

	if (came < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
	if (came == 0)
		return false;
	remote->in.length += (size_t)came;
	remote->received += came;
	while ((rc = frame_next(&remote->in, &remote->taken, &frame)) > 0)
		if (!take_frame(remote, &frame))
			return false;
	buf_drop(&remote->in, remote->taken);
	remote->taken = 0;
	return rc == 0 && remote->received <= TAKEN_MAX;
}

/* One wait. false: it is over, whyever. */
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

/* Until the courier says that it is done, or the run's time for it is over. */
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
		return fail(remote, "was not waited for: interrupted", err);
	if (!going)
		return fail(remote,
			    remote->received > TAKEN_MAX ? "sends more than anybody asked for"
							 : "could not be asked: the courier (reftest courier) ended",
			    err);
	struct err why;

	err_set(&why, "did not answer within %.3g s", remote->place.timeout_ms / 1000.0);
	return fail(remote, why.text, err);
}

int remote_get(struct remote *remote, const char *const *keys, int count, remote_found *found, void *context,
	       struct err *err)
{
	if (remote->failed || count == 0)
		return 0;
	for (int i = 0; i < count; i++)
		frame_put(&remote->out, FRAME_ASK, keys[i], strlen(keys[i]));
	frame_put(&remote->out, FRAME_ASKED, NULL, 0);
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
		return; /* remote_flush counts it as not kept */
	buf_add(&body, &number, 1);
	for (int i = 0; i < count; i++) {
		const unsigned char size = (unsigned char)strlen(keys[i]);

		buf_add(&body, &size, 1);
		buf_add(&body, keys[i], size);
	}
	buf_add(&body, bytes, length);
	frame_put(&remote->out, FRAME_KEEP, body.data, body.length);
	buf_free(&body);
	send_some(remote); /* the rest goes with the next, or with the flush */
}

int remote_flush(struct remote *remote, struct err *err)
{
	struct err why;

	if (remote->failed || remote->puts == 0)
		return 0;
	frame_put(&remote->out, FRAME_FLUSH, NULL, 0);
	if (wait_done(remote, err) < 0)
		return -1;
	if ((int)remote->kept == remote->puts)
		return 0;
	err_set(&why, "took %d of %d verdicts", (int)remote->kept, remote->puts);
	return fail(remote, why.text, err);
}
