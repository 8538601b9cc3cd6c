/* redis - stores values in redis as strings. The redis key of a value is "reftest:" followed by the SHA-256 of the
 * value's key in reftest. Lookups use MGET, writes use SET. All commands of a batch are sent before the first reply is
 * read. The size of a reply is checked before memory is allocated for it. One MGET requests at most CHUNK keys.
 * Therefore a reply is rejected if it is an array with more than CHUNK elements, or if it is longer than CHUNK values
 * of the largest size. */
#include "remote/helper/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

enum { CHUNK = 64, BULK_HEAD = 32, CONNECT_LEAST_MS = 10 };

#if HIREDIS_MAJOR >= 1
typedef size_t array_size;
#else
typedef int array_size;
#endif

struct redis {
	struct remote_url url;
	redisContext *context; /* NULL: not connected */
	redisReplyObjectFunctions functions, *original;
	size_t answered; /* bytes received since the last complete reply */
};

/* Allocates the array of a reply. Fails if the array would have more than CHUNK elements, because no request has more
 * keys. */
static void *make_array(const redisReadTask *task, array_size elements)
{
	const struct redis *redis = task->privdata;

	return elements > CHUNK ? NULL : redis->original->createArray(task, elements);
}

static void *redis_open(const struct remote_url *url, struct err *err)
{
	struct redis *redis = calloc(1, sizeof *redis);

	(void)err;
	if (redis == NULL)
		die_no_memory();
	redis->url = *url;
	return redis;
}

static void disconnect(struct redis *redis)
{
	if (redis->context != NULL)
		redisFree(redis->context);
	redis->context = NULL;
}

static void redis_close(void *self)
{
	disconnect(self);
	free(self);
}

static int broke(struct redis *redis, const char *what, struct err *err)
{
	err_set(err, "%s (%s)", what, err_show(redis->context->errstr).text);
	disconnect(redis);
	return -1;
}

/* Sends buffered commands, and passes received bytes to hiredis's reply parser. Waits at most once. */
static int move_bytes(struct redis *redis, int64_t deadline, struct err *err)
{
	redisContext *context = redis->context;
	struct pollfd fd = {.fd = context->fd, .events = POLLIN};
	int written = 0;

	if (redisBufferWrite(context, &written) != REDIS_OK)
		return broke(redis, "accepts no commands", err);
	if (!written)
		fd.events |= POLLOUT;
	int64_t left = deadline - transport_now_ms();

	if (left <= 0 || poll(&fd, 1, (int)left) == 0) {
		disconnect(redis);
		return err_set(err, "did not answer within %.3g s", redis->url.timeout_ms / 1000.0);
	}
	if ((fd.revents & (POLLIN | POLLHUP | POLLERR)) == 0)
		return 0;
	size_t before = context->reader->len;

	if (redisBufferRead(context) != REDIS_OK)
		return broke(redis, "closed the connection", err);
	redis->answered += context->reader->len > before ? context->reader->len - before : 0;
	return 0;
}

/* Returns the next reply, which the caller frees, or NULL with a message. */
static redisReply *next_reply(struct redis *redis, int64_t deadline, struct err *err)
{
	void *reply = NULL;

	for (;;) {
		if (redisGetReplyFromReader(redis->context, &reply) != REDIS_OK) {
			broke(redis, "sent a reply that is not redis protocol", err);
			return NULL;
		}
		if (reply != NULL) {
			redis->answered = 0;
			return reply;
		}
		if (redis->answered > (size_t)CHUNK * (REMOTE_VALUE_MAX + BULK_HEAD)) {
			err_set(err, "sent more data than was requested");
			disconnect(redis);
			return NULL;
		}
		if (move_bytes(redis, deadline, err) < 0)
			return NULL;
	}
}

/* Reads a reply. Accepts every reply that is not an error. */
static int expect_no_error(struct redis *redis, const char *command, int64_t deadline, struct err *err)
{
	redisReply *reply = next_reply(redis, deadline, err);
	int rc = reply != NULL ? 0 : -1;

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		rc = err_set(err, "answered %s with an error: %s", command, err_show(reply->str).text);
	freeReplyObject(reply);
	return rc;
}

/* Sends AUTH if the URL has a password, and SELECT if it has a database. */
static int introduce(struct redis *redis, int64_t deadline, struct err *err)
{
	const struct remote_url *url = &redis->url;

	if (url->password[0] != '\0') {
		if (url->user[0] != '\0')
			redisAppendCommand(redis->context, "AUTH %s %s", url->user, url->password);
		else
			redisAppendCommand(redis->context, "AUTH %s", url->password);
		if (expect_no_error(redis, "AUTH", deadline, err) < 0)
			return -1;
	}
	if (url->database == 0)
		return 0;
	redisAppendCommand(redis->context, "SELECT %d", url->database);
	return expect_no_error(redis, "SELECT", deadline, err);
}

/* Sets up the reply parser of a new connection. */
static int set_up(struct redis *redis, struct err *err)
{
	if (fcntl(redis->context->fd, F_SETFL, O_NONBLOCK) < 0)
		return broke(redis, "cannot set a timeout", err);
	redis->context->flags &= ~REDIS_BLOCK;
	redis->original = redis->context->reader->fn;
	redis->functions = *redis->original;
	redis->functions.createArray = make_array;
	redis->context->reader->fn = &redis->functions;
	redis->context->reader->privdata = redis;
	redis->answered = 0;
	return 0;
}

static int connect_to(struct redis *redis, int64_t deadline, struct err *err)
{
	const struct remote_url *url = &redis->url;
	int64_t left = deadline - transport_now_ms();
	struct timeval wait;

	if (redis->context != NULL)
		return 0;
	left = left < CONNECT_LEAST_MS ? CONNECT_LEAST_MS : left;
	wait = (struct timeval){left / 1000, left % 1000 * 1000};
	redis->context = url->socket[0] != '\0' ? redisConnectUnixWithTimeout(url->socket, wait)
						  : redisConnectWithTimeout(url->host, url->port, wait);
	if (redis->context == NULL)
		die_no_memory();
	if (redis->context->err != 0)
		return broke(redis, "cannot be reached", err);
	return set_up(redis, err) == 0 ? introduce(redis, deadline, err) : -1;
}

struct name {
	char text[8 + SHA256_HEX];
};

static struct name name_of(const struct hashed *key)
{
	struct name name;

	snprintf(name.text, sizeof name.text, "reftest:%s", key->hex);
	return name;
}

static void append_mget(struct redis *redis, const struct hashed *keys, int count)
{
	struct name names[CHUNK];
	const char *words[CHUNK + 1] = {"MGET"};

	for (int i = 0; i < count; i++) {
		names[i] = name_of(&keys[i]);
		words[i + 1] = names[i].text;
	}
	redisAppendCommandArgv(redis->context, count + 1, words, NULL);
}

static void take_value(const redisReply *value, int index, answer_taker *taker, void *context)
{
	if (value->type == REDIS_REPLY_NIL)
		return;
	if (value->type != REDIS_REPLY_STRING)
		taker(context, index, NULL, 0, "the value is not a string");
	else if (value->len > REMOTE_VALUE_MAX)
		taker(context, index, NULL, 0, "the value is longer than a verdict can be");
	else
		taker(context, index, value->str, value->len, NULL);
}

static int take_chunk(struct redis *redis, int first, int count, int64_t deadline, answer_taker *taker, void *context,
		      struct err *err)
{
	redisReply *reply = next_reply(redis, deadline, err);
	int rc = reply != NULL ? 0 : -1;

	if (reply != NULL && reply->type == REDIS_REPLY_ERROR)
		rc = err_set(err, "answered MGET with an error: %s", err_show(reply->str).text);
	else if (reply != NULL && (reply->type != REDIS_REPLY_ARRAY || reply->elements != (size_t)count))
		rc = err_set(err, "answered MGET with an unexpected reply");
	for (size_t i = 0; rc == 0 && i < reply->elements; i++)
		take_value(reply->element[i], first + (int)i, taker, context);
	freeReplyObject(reply);
	return rc;
}

static int redis_get(void *self, const struct hashed *keys, int count, int64_t deadline, answer_taker *taker,
		     void *context, struct err *err)
{
	struct redis *redis = self;

	if (connect_to(redis, deadline, err) < 0)
		return -1;
	for (int at = 0; at < count; at += CHUNK)
		append_mget(redis, keys + at, count - at < CHUNK ? count - at : CHUNK);
	for (int at = 0; at < count; at += CHUNK)
		if (take_chunk(redis, at, count - at < CHUNK ? count - at : CHUNK, deadline, taker, context, err) < 0)
			return -1;
	return 0;
}

static void append_set(struct redis *redis, const struct put_request *request, int key)
{
	struct name name = name_of(&request->keys[key]);
	const char *words[] = {"SET", name.text, request->value};
	const size_t lengths[] = {3, strlen(name.text), request->length};

	redisAppendCommandArgv(redis->context, 3, words, lengths);
}

static int redis_put(void *self, const struct put_request *requests, int count, int64_t wait_ms, int *kept, struct err *err)
{
	struct redis *redis = self;

	if (connect_to(redis, transport_now_ms() + wait_ms, err) < 0)
		return -1;
	for (int i = 0; i < count; i++)
		for (int k = 0; k < requests[i].key_count; k++)
			append_set(redis, &requests[i], k);
	for (int i = 0; i < count; i++, (*kept)++)
		for (int k = 0; k < requests[i].key_count; k++)
			if (expect_no_error(redis, "SET", transport_now_ms() + wait_ms, err) < 0)
				return -1;
	return 0;
}

static void redis_version(char *text, size_t size)
{
	snprintf(text, size, "hiredis %d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

const struct transport transport_redis = {redis_open, redis_get, redis_put, redis_close, redis_version};
