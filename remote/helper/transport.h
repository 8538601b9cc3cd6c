/* transport - the interface to a remote cache. redis.c and http.c implement it, each for one protocol. Every function
 * blocks until it is done, or until the time limit of the caller has passed. remote/url.h lists what a new protocol
 * needs. */
#ifndef REFTEST_REMOTE_TRANSPORT_H
#define REFTEST_REMOTE_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "remote/action_result.h"
#include "remote/message.h"
#include "remote/url.h"

/* The SHA-256 of a key as hexadecimal digits. These digits name the key's value in the remote cache. */
struct hashed {
	char hex[SHA256_HEX];
};

/* The transport calls this function once for each key that has a value, with the key's number `index` and the value (at
 * most REMOTE_VALUE_MAX bytes). If the value is invalid, `refused` says why, and `bytes` is NULL. If the value is
 * valid, `refused` is NULL. */
typedef void answer_taker(void *context, int index, const void *bytes, size_t length, const char *refused);

struct put_request {
	const void *value;
	size_t length;
	struct hashed keys[REMOTE_KEYS_MAX];
	int key_count;
};

/* If a function fails, it writes a message to `err` that completes the sentence "the remote cache URL …". */
struct transport {
	void *(*open)(const struct remote_url *url,
		      struct err *err); /* `open` does not connect yet; it returns NULL if the transport cannot be
					 * used */
	int (*get)(void *self, const struct hashed *keys, int count, int64_t deadline_ms, answer_taker *taker,
		   void *context, struct err *err);
	/* Stores values. Increments `kept` for each value that was stored under all its keys. The total time of `put`
	 * has no limit, because the program does not wait for it. But `put` fails if the server sends no answer for
	 * `wait_ms`. */
	int (*put)(void *self, const struct put_request *requests, int count, int64_t wait_ms, int *kept, struct err *err);
	void (*close)(void *self);
	void (*version)(char *text, size_t size);
};

extern const struct transport transport_redis, transport_http;

int64_t transport_now_ms(void);
void transport_sha256(const void *bytes, size_t length, struct hashed *out);

#endif
