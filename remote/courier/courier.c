/* courier - the process between the program and a remote: takes frames, batches them, and speaks to the remote through
 * a transport. After the first failure it asks and sends nothing more, and says why to whatever comes. */
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
#include "remote/courier/transport.h"
#include "remote/library.h"

enum { READ_BYTES = 256 * 1024, PARCELS = 256 };

struct courier {
	const struct place *place;
	const struct transport *transport;
	void *remote; /* the transport's; NULL: not open yet */
	int fd;
	struct buf in, out;
	size_t taken;			/* of `in` */
	struct buf asked;		/* struct hashed, of the batch to come */
	struct parcel parcels[PARCELS]; /* that are still to go */
	int parcel_count;
	struct arena arena; /* theirs */
	int kept;
	struct err dead; /* "": alive */
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

/* A little less than the program waits, so that the sentence gets there. */
static int64_t wait_of(const struct courier *courier)
{
	int64_t wait = courier->place->timeout_ms;

	return wait - wait / 10;
}

/* false: the program is gone. */
static bool say_all(struct courier *courier)
{
	size_t sent = 0;

	while (sent < courier->out.length) {
		ssize_t n = send(courier->fd, courier->out.data + sent, courier->out.length - sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		sent += (size_t)n;
	}
	buf_clear(&courier->out);
	return true;
}

static bool ready(struct courier *courier)
{
	if (courier->dead.text[0] != '\0')
		return false;
	if (courier->remote == NULL)
		courier->remote = courier->transport->open(courier->place, &courier->dead);
	return courier->remote != NULL;
}

static void take_answer(void *context, int place, const void *bytes, size_t length, const char *refused)
{
	struct courier *courier = context;

	if (refused != NULL)
		frame_put_numbered(&courier->out, FRAME_REFUSED, (uint32_t)place, refused, strlen(refused));
	else
		frame_put_numbered(&courier->out, FRAME_FOUND, (uint32_t)place, bytes, length);
	if (courier->out.length > READ_BYTES)
		say_all(courier); /* whether the program is gone is seen at the next read */
}

static void say_done(struct courier *courier)
{
	frame_put_numbered(&courier->out, FRAME_DONE, (uint32_t)courier->kept, courier->dead.text,
			   strlen(courier->dead.text));
}

static void look_up(struct courier *courier)
{
	int count = (int)(courier->asked.length / sizeof(struct hashed));

	if (ready(courier))
		courier->transport->get(courier->remote, (const struct hashed *)(const void *)courier->asked.data,
					count, transport_now_ms() + wait_of(courier), take_answer, courier,
					&courier->dead);
	buf_clear(&courier->asked);
	say_done(courier);
}

static void send_parcels(struct courier *courier)
{
	if (courier->parcel_count > 0 && ready(courier))
		courier->transport->put(courier->remote, courier->parcels, courier->parcel_count, wait_of(courier),
					&courier->kept, &courier->dead);
	courier->parcel_count = 0;
	arena_free(&courier->arena);
}

static bool take_key(struct frame *frame, struct hashed *out)
{
	size_t length = frame->length > 0 ? frame->body[0] : 0;

	if (length == 0 || frame->length < 1 + length)
		return false;
	transport_sha256(frame->body + 1, length, out);
	frame->body += 1 + length;
	frame->length -= 1 + length;
	return true;
}

static bool take_parcel(struct courier *courier, struct frame *frame)
{
	struct parcel *parcel = &courier->parcels[courier->parcel_count];
	int keys = frame->length > 0 ? frame->body[0] : 0;

	if (keys < 1 || keys > REMOTE_KEYS_MAX)
		return false;
	frame->body++;
	frame->length--;
	*parcel = (struct parcel){.key_count = keys};
	for (int i = 0; i < keys; i++)
		if (!take_key(frame, &parcel->keys[i]))
			return false;
	parcel->value = arena_copy(&courier->arena, frame->body, frame->length);
	parcel->length = frame->length;
	if (++courier->parcel_count == PARCELS)
		send_parcels(courier);
	return true;
}

static bool take_frame(struct courier *courier, struct frame *frame)
{
	struct hashed key;

	switch (frame->kind) {
	case FRAME_ASK:
		transport_sha256(frame->body, frame->length, &key);
		buf_add(&courier->asked, &key, sizeof key);
		return true;
	case FRAME_ASKED:
		look_up(courier);
		return true;
	case FRAME_KEEP:
		return take_parcel(courier, frame);
	case FRAME_FLUSH:
		send_parcels(courier);
		say_done(courier);
		return true;
	default:
		return false;
	}
}

/* true: there is nothing to read at present. */
static bool quiet(const struct courier *courier)
{
	struct pollfd fd = {.fd = courier->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 0;
}

/* false: the program is gone, or speaks nonsense. */
static bool turn(struct courier *courier)
{
	struct frame frame;
	int rc;

	buf_reserve(&courier->in, READ_BYTES);
	ssize_t came = recv(courier->fd, courier->in.data + courier->in.length, READ_BYTES, 0);

	if (came < 0 && errno == EINTR)
		return true;
	if (came <= 0)
		return false;
	courier->in.length += (size_t)came;
	while ((rc = frame_next(&courier->in, &courier->taken, &frame)) > 0)
		if (!take_frame(courier, &frame))
			return false;
	buf_drop(&courier->in, courier->taken);
	courier->taken = 0;
	if (quiet(courier))
		send_parcels(courier);
	return rc == 0 && say_all(courier);
}

static int serve(int fd, const struct place *place)
{
	struct courier *courier = calloc(1, sizeof *courier);

	if (courier == NULL || sodium_init() < 0)
		die_no_memory();
	courier->place = place;
	courier->fd = fd;
	courier->transport = place->kind == PLACE_REDIS ? &transport_redis : &transport_http;
	while (turn(courier))
		;
	if (courier->remote != NULL)
		courier->transport->close(courier->remote);
	buf_free(&courier->in);
	buf_free(&courier->out);
	buf_free(&courier->asked);
	arena_free(&courier->arena);
	free(courier);
	return 0;
}

static const char *versions(void)
{
	static char text[256];

	snprintf(text, sizeof text, "%s, %s", transport_redis.version(), transport_http.version());
	return text;
}

__attribute__((visibility("default"))) const struct remote_face reftest_remote = {REMOTE_ABI, versions, serve};
