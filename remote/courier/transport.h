/* transport - one way of speaking to a remote: redis, or HTTP. Everything blocks, for no longer than is said. */
#ifndef REFTEST_REMOTE_TRANSPORT_H
#define REFTEST_REMOTE_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "remote/action_result.h"
#include "remote/frame.h"
#include "remote/place.h"

/* The SHA-256 of a key's text, in hex: what values lie under. */
struct hashed {
	char hex[SHA256_HEX];
};

/* What lies under the key at `place`. `refused` NULL: these bytes, at most REMOTE_VALUE_MAX; else what lies there is no
 * value, and this is why. Keys under which nothing lies are not told of. */
typedef void answer_taker(void *context, int place, const void *bytes, size_t length, const char *refused);

struct parcel {
	const void *value;
	size_t length;
	struct hashed keys[REMOTE_KEYS_MAX];
	int key_count;
};

/* `err` gets what follows "the remote cache URL ". */
struct transport {
	void *(*open)(const struct place *place, struct err *err); /* connects later; NULL: it cannot be used at all */
	int (*get)(void *self, const struct hashed *keys, int count, int64_t deadline_ms, answer_taker *taker,
		   void *context, struct err *err);
	/* `kept` is raised by each parcel that lies there now, under all its keys. Nobody waits for it, so it may take
	 * as long as it likes; but at most `wait_ms` from one answer to the next. */
	int (*put)(void *self, const struct parcel *parcels, int count, int64_t wait_ms, int *kept, struct err *err);
	void (*close)(void *self);
	const char *(*version)(void);
};

extern const struct transport transport_redis, transport_http;

int64_t transport_now_ms(void);
void transport_sha256(const void *bytes, size_t length, struct hashed *out);

#endif
