#include "workers/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/trace.h"
#include "workers/machine.h"

enum {
	UP_MS = 300000,      /* for a template to import torch, for a child to warm up: generous, disks may be slow */
	END_MS = 5000,       /* for a child that has closed its socket to end: the kernel closes it first and takes the GPU's
	                        context down next, which took more than a second beside a dozen others (an H200) */
	ORPHANS_MS = 20,     /* between two looks for orphans */
	CLOSE_MS = 1000,     /* for everything to end at crew_close */
	FAILURES_MAX = 3,
	WARMING_MOST = 3,    /* contexts on their way at once: a GPU's driver makes one after the other, so that three give 13.4
	                        a second and eight 13.9, each of them after twice the time (bench/contexts.py, an H200) */
	PIPE_READS = 32      /* a full pipe is 16 pages: enough, and an end to it for one who prints without end */
};

int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- what is printed ---- */

static void keep_tail(struct buf *buf)
{
	if (buf->length > 2 * CREW_PRINTED)
		buf_drop(buf, buf->length - CREW_PRINTED);
}

/* Everything that stands in the pipe now. Closes it at its end. */
static int64_t listen_to(int *pipe, struct buf *out)
{
	char bytes[16 << 10];
	int64_t total = 0;
	ssize_t got = 1;

	for (int i = 0; i < PIPE_READS && *pipe >= 0 && got > 0; i++) {
		do
			got = read(*pipe, bytes, sizeof bytes);
		while (got < 0 && errno == EINTR);
		if (got > 0) {
			buf_add(out, bytes, (size_t)got);
			keep_tail(out);
			total += got;
		} else if (got == 0 || errno != EAGAIN) {
			close(*pipe);
			*pipe = -1;
		}
	}
	return total;
}

void child_listen(struct child *child)
{
	child->printed_bytes += listen_to(&child->pipe, &child->printed);
}

/* A pipe whose reading end does not block and wakes the loop. */
static int make_pipe(int epoll, int ends[2], struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(err, "no pipe for a worker");
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0)
		return 0;
	err_errno(err, "a worker's pipe cannot be watched");
	close(ends[0]);
	close(ends[1]);
	return -1;
}

/* ---- the template ---- */

int crew_open(struct crew *crew, const char *python, const char *device, int places, int threads, int epoll,
              struct err *err)
{
	*crew = (struct crew){.python = python, .device = device, .threads = threads, .epoll = epoll, .pipe = -1,
	                      .template = {0, -1}};
	channel_open(&crew->channel, -1);
	if (machine_script("runner.py", "REFTEST_RUNNER", crew->script, sizeof crew->script, err) != 0)
		return -1;
	crew->room = 6 * places + 2; /* taken, spare, and those that are still ending (on a GPU that takes a while) */
	crew->children = calloc((size_t)crew->room, sizeof *crew->children);
	if (crew->children == NULL)
		die_no_memory();
	for (int i = 0; i < crew->room; i++) {
		channel_open(&crew->children[i].channel, -1);
		crew->children[i].pipe = -1;
	}
	return 0;
}

static int launch(struct crew *crew, int socket, int output, struct err *err)
{
	char threads[16];
	/* -s: no user site; -S: runner.py calls for the site packages itself, without anybody's customisations. */
	char *argv[] = {(char *)(uintptr_t)crew->python, (char *)(uintptr_t) "-sSu", crew->script,
	                (char *)(uintptr_t)crew->device, threads, NULL};
	const int fds[] = {-1, output, output, socket};
	struct epoll_event event = {.events = EPOLLIN};
	struct arena arena = {0};

	snprintf(threads, sizeof threads, "%d", crew->threads);
	int rc = process_start(&crew->template, crew->python, argv, process_reference_environment(&arena), fds, 4, err);

	arena_free(&arena);
	if (rc != 0)
		return -1;
	if (crew->template.pidfd >= 0)
		epoll_ctl(crew->epoll, EPOLL_CTL_ADD, crew->template.pidfd, &event);
	return 0;
}

static int start_template(struct crew *crew, struct err *err)
{
	int ours, theirs, ends[2], rc;

	if (make_pipe(crew->epoll, ends, err) != 0)
		return -1;
	if (channel_pair(&ours, &theirs, err) != 0) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	rc = launch(crew, theirs, ends[1], err);
	close(theirs);
	close(ends[1]);
	crew->pipe = ends[0];
	channel_open(&crew->channel, ours);
	if (rc == 0)
		rc = channel_watch(&crew->channel, crew->epoll, err);
	crew->deadline_ms = clock_ms() + UP_MS;
	trace("crew", "template %d started", (int)crew->template.pid);
	return rc;
}

/* ---- children ---- */

static void free_slot(struct child *child)
{
	channel_close(&child->channel);
	if (child->pipe >= 0)
		close(child->pipe);
	buf_free(&child->printed);
	*child = (struct child){.state = CHILD_NONE, .pipe = -1};
	channel_open(&child->channel, -1);
}

static void kill_child(const struct child *child)
{
	if (child->pid == 0 || child->ended)
		return;
	kill(-child->pid, SIGKILL);
	kill(child->pid, SIGKILL);
}

static int fork_child(struct crew *crew, int slot, struct err *err)
{
	struct child *child = &crew->children[slot];
	int ours, ends[2], fds[2];
	char text[64];

	if (make_pipe(crew->epoll, ends, err) != 0)
		return -1;
	if (channel_pair(&ours, &fds[0], err) != 0) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	fds[1] = ends[1];
	channel_open(&child->channel, ours);
	child->pipe = ends[0];
	child->state = CHILD_FORKING;
	child->deadline_ms = clock_ms() + UP_MS;
	int length = snprintf(text, sizeof text, "{\"fork\":%d}", slot);

	channel_send(&crew->channel, text, (size_t)length, fds, 2);
	close(fds[0]);
	close(fds[1]);
	return channel_watch(&child->channel, crew->epoll, err);
}

static int count_state(const struct crew *crew, enum child_state state)
{
	int count = 0;

	for (int i = 0; i < crew->room; i++)
		count += crew->children[i].state == state;
	return count;
}

int crew_spares(const struct crew *crew)
{
	return count_state(crew, CHILD_SPARE);
}

int crew_idle(const struct crew *crew)
{
	return crew->room - count_state(crew, CHILD_NONE) - count_state(crew, CHILD_TAKEN);
}

void crew_thin(struct crew *crew)
{
	struct child *kept = NULL;

	for (int i = 0; i < crew->room && kept == NULL; i++)
		if (crew->children[i].state == CHILD_SPARE)
			kept = &crew->children[i];
	for (int i = 0; i < crew->room; i++) {
		struct child *child = &crew->children[i];

		if (child->state != CHILD_SPARE && child->state != CHILD_WARMING && child->state != CHILD_FORKING)
			continue;
		if (kept == NULL)
			kept = child;
		else if (child != kept)
			crew_drop(crew, child);
	}
}

int crew_want(struct crew *crew, int spares, struct err *err)
{
	int there = count_state(crew, CHILD_FORKING) + count_state(crew, CHILD_WARMING) + count_state(crew, CHILD_SPARE);

	if (spares <= there)
		return 0;
	if (crew->template.pid == 0)
		return start_template(crew, err);
	int more = spares - there;

	if (strcmp(crew->device, "cpu") != 0) {
		int room = WARMING_MOST - count_state(crew, CHILD_FORKING) - count_state(crew, CHILD_WARMING);

		more = more < room ? more : room;
	}
	for (int i = 0; crew->up && i < crew->room && more > 0; i++)
		if (crew->children[i].state == CHILD_NONE) {
			if (fork_child(crew, i, err) != 0)
				return -1;
			more--;
		}
	return 0;
}

struct child *crew_take(struct crew *crew)
{
	struct child *warmest = NULL;

	for (int i = 0; i < crew->room; i++) {
		struct child *child = &crew->children[i];

		if (child->state == CHILD_SPARE && !child->ended && (warmest == NULL || child->ready_ms < warmest->ready_ms))
			warmest = child;
	}
	if (warmest != NULL) {
		warmest->state = CHILD_TAKEN;
		warmest->deadline_ms = INT64_MAX;
	}
	return warmest;
}

static void reap(struct crew *crew, struct child *child)
{
	char text[64];
	int length = snprintf(text, sizeof text, "{\"reap\":%d}", (int)child->pid);

	if (!child->lost)
		channel_send(&crew->channel, text, (size_t)length, NULL, 0);
	free_slot(child);
}

void crew_drop(struct crew *crew, struct child *child)
{
	kill_child(child);
	child->state = CHILD_ENDING;
	channel_close(&child->channel);
	if (child->pipe >= 0)
		close(child->pipe);
	child->pipe = -1;
	if (child->ended)
		reap(crew, child);
}

/* Its socket is closed: it is about to end by itself, or it closed it and lives on. */
static void await_end(struct child *child, int64_t now_ms)
{
	channel_close(&child->channel);
	child->deadline_ms = now_ms + END_MS;
}

enum child_event child_next(struct child *child, int64_t now_ms, char **line, size_t *length)
{
	enum channel_answer answer = CHANNEL_DATA;

	child_listen(child);
	channel_flush(&child->channel);
	while (child->channel.fd >= 0 && answer == CHANNEL_DATA) {
		if ((*line = channel_line(&child->channel, length)) != NULL)
			return CHILD_LINE;
		answer = channel_read(&child->channel);
		if (answer == CHANNEL_TOO_LONG)
			return CHILD_BABBLES;
		if (answer == CHANNEL_END)
			await_end(child, now_ms);
	}
	if (child->ended) {
		child_listen(child);
		return CHILD_ENDED;
	}
	if (now_ms >= child->deadline_ms && !child->shut) {
		child->shut = true;
		kill_child(child);
	}
	return CHILD_NOTHING;
}

/* ---- messages ---- */

static struct child *child_of_pid(struct crew *crew, int64_t pid)
{
	for (int i = 0; i < crew->room; i++)
		if (crew->children[i].pid == pid && crew->children[i].state != CHILD_NONE)
			return &crew->children[i];
	return NULL;
}

static void copy_text(char *out, size_t size, const cJSON *object, const char *key)
{
	const char *text = json_text_of(object, key);

	snprintf(out, size, "%s", text == NULL ? "" : text);
}

static void on_forked(struct crew *crew, int64_t slot, int64_t pid)
{
	struct child *child = slot >= 0 && slot < crew->room ? &crew->children[slot] : NULL;

	if (child == NULL || child->state == CHILD_NONE || pid <= 1)
		return;
	child->pid = (pid_t)pid;
	if (child->state == CHILD_FORKING)
		child->state = child->ready ? CHILD_SPARE : CHILD_WARMING;
	else if (child->state == CHILD_ENDING)
		kill_child(child);
}

static void on_exit_of(struct crew *crew, int64_t pid, int64_t status)
{
	struct child *child = child_of_pid(crew, pid);

	if (child == NULL)
		return;
	child->ended = true;
	child->status = (int)status;
	/* It had ended, and took long to: what ended it is not what was sent after it. */
	child->shut = child->shut && WIFSIGNALED(child->status) && WTERMSIG(child->status) == SIGKILL;
	trace("crew", "child %d: %s", (int)pid, process_end(child->status).text);
	if (child->state == CHILD_ENDING)
		reap(crew, child);
}

/* -1: the template refuses. */
static int on_template_line(struct crew *crew, const char *line, size_t length, struct err *err)
{
	const struct json_text text = {"template", line, length, 1};
	cJSON *message = json_parse(&text, err);
	const cJSON *hello = json_member(message, "template");
	const char *refused = json_text_of(message, "refused");
	int64_t number = 0, more = 0;
	int rc = message == NULL ? -1 : 0;

	if (hello != NULL) {
		copy_text(crew->torch, sizeof crew->torch, hello, "torch");
		copy_text(crew->cuda, sizeof crew->cuda, hello, "cuda");
		crew->up = true;
		crew->deadline_ms = 0;
	} else if (json_integer(json_member(message, "forked"), &number) &&
	           json_integer(json_member(message, "pid"), &more)) {
		on_forked(crew, number, more);
	} else if (json_integer(json_member(message, "exit"), &number) &&
	           json_integer(json_member(message, "status"), &more)) {
		on_exit_of(crew, number, more);
	} else if (refused != NULL) {
		rc = err_set(err, "%s", refused);
	}
	cJSON_Delete(message);
	return rc;
}

static int read_template(struct crew *crew, struct err *err)
{
	size_t length;
	char *line;

	listen_to(&crew->pipe, &crew->said);
	channel_flush(&crew->channel);
	while (crew->channel.fd >= 0) {
		while ((line = channel_line(&crew->channel, &length)) != NULL)
			if (on_template_line(crew, line, length, err) != 0)
				return -1;
		switch (channel_read(&crew->channel)) {
		case CHANNEL_DATA:
			break;
		case CHANNEL_EMPTY:
			return 0;
		default:
			channel_close(&crew->channel);
			process_kill(&crew->template);
		}
	}
	return 0;
}

/* A child that is not a lane's yet says one thing. -1: it cannot serve, and no other could. */
static int read_fresh_child(struct crew *crew, struct child *child, int64_t now_ms, struct err *err)
{
	char *line;
	size_t length;
	enum child_event event = child_next(child, now_ms, &line, &length);

	if (event == CHILD_LINE && strncmp(line, "{\"ready\"", 8) == 0) {
		trace("crew", "child %d: %.*s", (int)child->pid, (int)length, line);
		crew->failures = 0;
		child->ready = true;
		child->ready_ms = now_ms;
		if (child->state == CHILD_WARMING)
			child->state = CHILD_SPARE;
		child->deadline_ms = INT64_MAX;
		return 0;
	}
	if (event == CHILD_LINE) {
		const struct json_text text = {"runner", line, length, 1};
		cJSON *message = json_parse(&text, err);
		const char *refused = json_text_of(message, "refused");

		err_set(err, "%s", refused == NULL ? "a runner says what nobody understands" : refused);
		cJSON_Delete(message);
		return -1;
	}
	if (event == CHILD_NOTHING && (now_ms < child->deadline_ms || child->state == CHILD_SPARE))
		return 0;
	if (child->state != CHILD_SPARE && crew->failures++ >= FAILURES_MAX)
		return err_set(err, "runners end before they are ready (%s): %.*s",
		               child->ended ? process_end(child->status).text : "they take too long",
		               (int)(child->printed.length < 1000 ? child->printed.length : 1000),
		               child->printed.length == 0 ? "" : child->printed.data);
	crew_drop(crew, child);
	return 0;
}

/* The template is gone: its children are dying by the kernel's hand, and what they leave behind comes to us. */
static void lose_children(struct crew *crew)
{
	for (int i = 0; i < crew->room; i++) {
		struct child *child = &crew->children[i];

		if (child->state == CHILD_NONE)
			continue;
		kill_child(child);
		child->ended = child->lost = true;
		if (child->state != CHILD_TAKEN)
			free_slot(child);
	}
}

static int on_template_end(struct crew *crew, int status, int64_t now_ms, struct err *err)
{
	bool was_up = crew->up;
	int tail;

	trace("crew", "template: %s", process_end(status).text);
	lose_children(crew);
	listen_to(&crew->pipe, &crew->said);
	channel_close(&crew->channel);
	if (crew->pipe >= 0)
		close(crew->pipe);
	crew->pipe = -1;
	crew->up = false;
	crew->deadline_ms = 0;
	crew->orphans_ms = now_ms;
	tail = (int)(crew->said.length < 1000 ? crew->said.length : 1000);
	if (!was_up && crew->failures++ >= (process_was_killed(status) ? FAILURES_MAX : 0))
		return err_set(err, "%s does not come up as a runner (%s): %.*s", crew->python, process_end(status).text, tail,
		               tail == 0 ? "" : crew->said.data + crew->said.length - (size_t)tail);
	buf_clear(&crew->said);
	return 0;
}

int crew_dispatch(struct crew *crew, int64_t now_ms, struct err *err)
{
	int status;

	if (read_template(crew, err) != 0)
		return -1;
	if (crew->deadline_ms != 0 && now_ms >= crew->deadline_ms)
		return err_set(err, "%s does not come up as a runner: it has been importing torch for %d s", crew->python,
		               UP_MS / 1000);
	for (int i = 0; i < crew->room; i++) {
		struct child *child = &crew->children[i];

		if ((child->state == CHILD_WARMING || child->state == CHILD_SPARE || child->state == CHILD_FORKING) &&
		    read_fresh_child(crew, child, now_ms, err) != 0)
			return -1;
	}
	if (process_ended(&crew->template, &status) && on_template_end(crew, status, now_ms, err) != 0)
		return -1;
	if (crew->orphans_ms != 0 && now_ms >= crew->orphans_ms)
		crew->orphans_ms = process_end_orphans() > 0 ? now_ms + ORPHANS_MS : 0;
	return 0;
}

int64_t crew_deadline(const struct crew *crew)
{
	int64_t deadline = INT64_MAX;

	if (crew->deadline_ms != 0)
		deadline = crew->deadline_ms;
	if (crew->orphans_ms != 0 && crew->orphans_ms < deadline)
		deadline = crew->orphans_ms;
	for (int i = 0; i < crew->room; i++) {
		const struct child *child = &crew->children[i];

		if (child->state != CHILD_NONE && child->state != CHILD_ENDING && !child->ended && !child->shut &&
		    child->deadline_ms < deadline)
			deadline = child->deadline_ms;
	}
	return deadline;
}

void crew_close(struct crew *crew)
{
	int64_t end = clock_ms() + CLOSE_MS;
	int status;

	for (int i = 0; i < crew->room; i++)
		if (crew->children[i].state != CHILD_NONE)
			kill_child(&crew->children[i]);
	process_kill(&crew->template);
	do {
		struct pollfd poll_template = {crew->template.pidfd, POLLIN, 0};

		poll(&poll_template, 1, 1); /* a millisecond, or the template's end */
		process_ended(&crew->template, &status);
	} while ((process_end_orphans() > 0 || crew->template.pid != 0) && clock_ms() < end);
	for (int i = 0; i < crew->room; i++)
		free_slot(&crew->children[i]);
	free(crew->children);
	channel_close(&crew->channel);
	if (crew->pipe >= 0)
		close(crew->pipe);
	buf_free(&crew->said);
	*crew = (struct crew){.pipe = -1};
}
