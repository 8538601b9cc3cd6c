/* replies - the fuzz targets for the answers of a remote cache's server. This file includes the source files that parse
 * answers, because their functions are static. The targets connect to no server. For a new protocol, add a function
 * here, its declaration in feed.h, a row in the table of targets.c, and replies in corpus/. */
#include "remote/helper/redis.c"

/* Renames two functions of http.c, because redis.c defines functions with the same names. */
#define take_value http_take_value
#define broke http_broke
#include "remote/helper/http.c"
#undef take_value
#undef broke

#include <sys/socket.h>

#include "base/sha256.h"
#include "tests/fuzz/feed.h"

enum { KEYS = 3, REPLY_MS = 1000 };

int64_t transport_now_ms(void)
{
	return 0; /* no time passes */
}

void transport_sha256(const void *bytes, size_t length, struct hashed *out)
{
	unsigned char digest[SHA256_BYTES];

	sha256_of(bytes, length, digest);
	for (int i = 0; i < SHA256_BYTES; i++)
		snprintf(out->hex + (ptrdiff_t)2 * i, 3, "%02x", digest[i]);
}

struct taking {
	const struct input *input;
	int values;
};

static void take(void *context, int index, const void *bytes, size_t length, const char *refused)
{
	struct taking *taking = context;

	hold(taking->input, index >= 0 && index < KEYS, "an answer belongs to a key that was asked for");
	hold(taking->input, refused == NULL || is_sentence(refused), "the sentence prints");
	hold(taking->input, refused != NULL || (bytes != NULL && length <= REMOTE_VALUE_MAX), "values are bounded");
	taking->values += refused == NULL;
}

/* The input consists of the bytes that the server sends before it closes the connection. */
bool feed_redis_reply(const struct input *input)
{
	struct remote_url url = {.timeout_ms = REPLY_MS};
	const struct hashed keys[KEYS] = {0};
	struct taking taking = {input, 0};
	struct err err = {""};
	struct redis *redis = redis_open(&url, &err);
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ||
	    send(ends[0], input->bytes, input->length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)input->length)
		abort();
	shutdown(ends[0], SHUT_WR);
	redis->context = redisConnectFd(ends[1]);
	if (redis->context == NULL || set_up(redis, &err) != 0)
		abort();
	bool answered = redis_get(redis, keys, KEYS, REPLY_MS, take, &taking, &err) == 0;

	hold(input, answered || is_sentence(err.text), "the sentence prints");
	redis_close(redis); /* closes ends[1] */
	close(ends[0]);
	return answered && taking.values > 0;
}

/* Passes a part of the input as the body of an answer, in two pieces, as libcurl may do. */
static void give_body(struct slot *slot, const char *bytes, size_t length)
{
	size_t half = length / 2;

	if (take_bytes((char *)(uintptr_t)bytes, 1, half, slot) == half)
		take_bytes((char *)(uintptr_t)(bytes + half), 1, length - half, slot);
}

/* The first byte of the input selects the HTTP status. The bytes up to a byte 0x1E are the answer to the request for
 * /ac, and the bytes after it are the answer to the request for /cas. */
bool feed_http_reply(const struct input *input)
{
	static const long statuses[] = {200, 204, 301, 401, 404, 410, 500};
	static struct http *http;
	const struct remote_url url = {.shown = "http://127.0.0.1:1", .timeout_ms = REPLY_MS};
	const struct hashed keys[KEYS] = {0};
	struct taking taking = {input, 0};
	struct err err = {""};
	struct batch batch = {.deadline = REPLY_MS, .count = 1, .keys = keys, .taker = take, .context = &taking,
			      .ended = get_ended, .begin = get_begin};
	struct slot *slot = &batch.slots[0];
	int rc = 0;

	if (http == NULL && (http = http_open(&url, &err)) == NULL)
		abort();
	batch.http = http;
	fill_slots(&batch); /* begins a request that is never performed */
	size_t head = input->length > 0, rest = input->length - head;
	const char *at = input->bytes + head;
	long status = head == 0 ? 200 : statuses[(unsigned char)input->bytes[0] % (sizeof statuses / sizeof *statuses)];

	for (int step = 0; rc == 0 && slot->busy && step < 2; step++) {
		const char *end = memchr(at, 0x1E, rest);
		size_t length = step == 0 && end != NULL ? (size_t)(end - at) : rest;

		curl_multi_remove_handle(http->multi, slot->easy);
		slot->busy = false;
		batch.busy--;
		give_body(slot, at, length);
		rc = get_ended(&batch, slot, status, &err);
		at += length + (length < rest);
		rest -= length + (length < rest);
	}
	hold(input, rc == 0 || is_sentence(err.text), "the sentence prints");
	free_slots(&batch);
	return taking.values > 0;
}
