/* helper - the process that accesses a remote cache for the program. The helper receives messages from the program,
 * collects them in batches, and sends each batch to the cache with a transport (redis or HTTP). After the first
 * failure, it sends no more requests, and answers each batch with the message of that failure. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "base/arena.h"
#include "remote/helper/transport.h"
#include "remote/remote_library.h"

enum { READ_BYTES = 256 * 1024, REQUESTS = 256 };

static const struct transport *const transports[] = {
    [REMOTE_URL_REDIS] = &transport_redis,
    [REMOTE_URL_HTTP] = &transport_http,
};

_Static_assert(sizeof transports / sizeof *transports == REMOTE_URL_KINDS, "each kind of URL has a transport");

struct helper {
	const struct remote_url *url;
	const struct transport *transport;
	void *remote; /* the state of the transport, or NULL if it is not open yet */
	int fd;
	struct buf in, out;
	size_t taken;			/* bytes of `in` that are already handled */
	struct buf asked;		/* the keys of the next batch, as an array of struct hashed */
	struct put_request requests[REQUESTS]; /* write requests that are not yet sent to the cache */
	int request_count;
	struct arena arena; /* owns the memory of `requests` */
	int kept;
	struct err failure; /* message of the first failure, or "" */
};

int64_t transport_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void transport_sha256(const void *bytes, size_t length, struct hashed *out)
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(hash, bytes, length);
	sodium_bin2hex(out->hex, sizeof out->hex, hash, sizeof hash);
}

/* Returns how long the helper waits for the cache. The program that uses the helper waits a little longer than the
 * helper, so that it still receives the helper's message about a timeout. */
static int64_t wait_of(const struct helper *helper)
{
	int64_t wait = helper->url->timeout_ms;

	return wait - wait / 10;
}

/* Sends all output. Returns false if the program has closed the socket. */
static bool send_all(struct helper *helper)
{
	size_t sent = 0;

	while (sent < helper->out.length) {
		ssize_t n = send(helper->fd, helper->out.data + sent, helper->out.length - sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		sent += (size_t)n;
	}
	buf_clear(&helper->out);
	return true;
}

static bool ready(struct helper *helper)
{
	if (helper->failure.text[0] != '\0')
		return false;
	if (helper->remote == NULL)
		helper->remote = helper->transport->open(helper->url, &helper->failure);
	return helper->remote != NULL;
}

static void take_answer(void *context, int index, const void *bytes, size_t length, const char *refused)
{
	struct helper *helper = context;

	if (refused != NULL)
		message_put_numbered(&helper->out, MESSAGE_REFUSED, (uint32_t)index, refused, strlen(refused));
	else
		message_put_numbered(&helper->out, MESSAGE_FOUND, (uint32_t)index, bytes, length);
	if (helper->out.length > READ_BYTES)
		send_all(helper); /* the result is ignored: if the program has exited, the next read detects it */
}

static void report_done(struct helper *helper)
{
	message_put_numbered(&helper->out, MESSAGE_DONE, (uint32_t)helper->kept, helper->failure.text,
			     strlen(helper->failure.text));
}

static void look_up(struct helper *helper)
{
	int count = (int)(helper->asked.length / sizeof(struct hashed));

	if (ready(helper))
		helper->transport->get(helper->remote, (const struct hashed *)(const void *)helper->asked.data,
					count, transport_now_ms() + wait_of(helper), take_answer, helper,
					&helper->failure);
	buf_clear(&helper->asked);
	report_done(helper);
}

static void send_requests(struct helper *helper)
{
	if (helper->request_count > 0 && ready(helper))
		helper->transport->put(helper->remote, helper->requests, helper->request_count, wait_of(helper),
					&helper->kept, &helper->failure);
	helper->request_count = 0;
	arena_free(&helper->arena);
}

static bool take_key(struct message *message, struct hashed *out)
{
	size_t length = message->length > 0 ? message->body[0] : 0;

	if (length == 0 || message->length < 1 + length)
		return false;
	transport_sha256(message->body + 1, length, out);
	message->body += 1 + length;
	message->length -= 1 + length;
	return true;
}

static bool take_request(struct helper *helper, struct message *message)
{
	struct put_request *request = &helper->requests[helper->request_count];
	int keys = message->length > 0 ? message->body[0] : 0;

	if (keys < 1 || keys > REMOTE_KEYS_MAX)
		return false;
	message->body++;
	message->length--;
	*request = (struct put_request){.key_count = keys};
	for (int i = 0; i < keys; i++)
		if (!take_key(message, &request->keys[i]))
			return false;
	request->value = arena_copy(&helper->arena, message->body, message->length);
	request->length = message->length;
	if (++helper->request_count == REQUESTS)
		send_requests(helper);
	return true;
}

static bool take_message(struct helper *helper, struct message *message)
{
	struct hashed key;

	switch (message->kind) {
	case MESSAGE_ASK:
		transport_sha256(message->body, message->length, &key);
		buf_add(&helper->asked, &key, sizeof key);
		return true;
	case MESSAGE_ASKED:
		look_up(helper);
		return true;
	case MESSAGE_KEEP:
		return take_request(helper, message);
	case MESSAGE_FLUSH:
		send_requests(helper);
		report_done(helper);
		return true;
	default:
		return false;
	}
}

/* Returns true if there is nothing to read now. */
static bool quiet(const struct helper *helper)
{
	struct pollfd fd = {.fd = helper->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 0;
}

/* Reads once, and handles the messages that were read. Returns false if the program has exited or sent an invalid
 * message. */
static bool turn(struct helper *helper)
{
	struct message message;
	int rc;

	buf_reserve(&helper->in, READ_BYTES);
	ssize_t came = recv(helper->fd, helper->in.data + helper->in.length, READ_BYTES, 0);

	if (came < 0 && errno == EINTR)
		return true;
	if (came <= 0)
		return false;
	helper->in.length += (size_t)came;
	while ((rc = message_next(&helper->in, &helper->taken, &message)) > 0)
		if (!take_message(helper, &message))
			return false;
	buf_drop(&helper->in, helper->taken);
	helper->taken = 0;
	if (quiet(helper))
		send_requests(helper);
	return rc == 0 && send_all(helper);
}

static int serve(int fd, const struct remote_url *url)
{
	struct helper *helper = calloc(1, sizeof *helper);

	if (helper == NULL || sodium_init() < 0)
		die_no_memory();
	helper->url = url;
	helper->fd = fd;
	helper->transport = transports[url->kind];
	while (turn(helper))
		;
	if (helper->remote != NULL)
		helper->transport->close(helper->remote);
	buf_free(&helper->in);
	buf_free(&helper->out);
	buf_free(&helper->asked);
	arena_free(&helper->arena);
	free(helper);
	return 0;
}

static void versions(char *text, size_t size)
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t kind = 0; kind < REMOTE_URL_KINDS && length < size; kind++) {
		char version[64];

		transports[kind]->version(version, sizeof version);
		length += (size_t)snprintf(text + length, size - length, "%s%s", kind > 0 ? ", " : "", version);
	}
}

__attribute__((visibility("default"))) const struct remote_api reftest_remote = {REMOTE_ABI, versions, serve};
