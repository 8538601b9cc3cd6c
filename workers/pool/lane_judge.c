/* lane_judge - starts the judge of a lane, sends messages to it and counts the messages that it has not answered yet.
 * lane.c handles the answers. */
#include "workers/pool/lane_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/json.h"
#include "base/trace.h"
#include "workers/pool/judge_fork.h"
#include "workers/pool/visible_device.h"

enum {
	STALE_MS = 250, /* if a judge needs longer than this to finish cancelled work, it is replaced */
	JUDGE_UP_MS = 120000
};

static int watch_fd(const struct pool_shared *shared, int fd, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(shared->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0
									: err_errno(err, "cannot add a judge to epoll");
}

int lane_judge_start(struct pool_shared *shared, struct lane *lane, struct err *err)
{
	struct arena arena = {0};
	const struct judge_order order = {.device = shared->device,
					  .visible = visible_device(shared->device, getenv("CUDA_VISIBLE_DEVICES"), &arena),
					  .visible_name = VISIBLE_DEVICE_NAME,
					  .staged = shared->staged,
					  .threads = shared->threads};
	int socket, rc = judge_fork(&lane->judge, &shared->judge, &order, &socket, err);

	arena_free(&arena);
	if (rc != 0)
		return -1;
	channel_open(&lane->channel, socket);
	rc = channel_watch(&lane->channel, shared->epoll, err);
	if (rc == 0 && lane->judge.pidfd >= 0)
		rc = watch_fd(shared, lane->judge.pidfd, err);
	lane->up = false;
	lane->outstanding = lane->stale = 0;
	lane->up_deadline = clock_ms() + JUDGE_UP_MS;
	trace("lane", "judge %d started", (int)lane->judge.pid);
	return rc;
}

void lane_judge_tell(struct lane *lane, const char *text, size_t length)
{
	channel_send(&lane->channel, text, length, NULL, 0);
}

void lane_judge_ask(struct lane *lane, const char *text, size_t length)
{
	lane->outstanding++;
	lane_judge_tell(lane, text, length);
}

void lane_judge_forget(struct lane *lane)
{
	lane->stale = lane->outstanding;
	lane->stale_deadline = clock_ms() + STALE_MS;
}

int lane_judge_hello(struct pool_shared *shared, struct lane *lane, const char *line, size_t length, struct err *err)
{
	const struct json_text text = {"judge", line, length, 1};
	cJSON *message = json_parse(&text, err);
	const cJSON *hello = json_member(message, "judge");
	const char *refused = json_text_of(message, "refused"), *class_name = json_text_of(hello, "class");
	int rc = 0;

	if (class_name != NULL) {
		snprintf(shared->device_class, sizeof shared->device_class, "%s", class_name);
		lane->up = true;
		shared->judge_failures = 0;
	} else {
		rc = refused == NULL ? err_set(err, "invalid message from the judge: %s", err_show(line).text)
		                     : err_set(err, "%s", refused);
	}
	cJSON_Delete(message);
	return rc;
}
