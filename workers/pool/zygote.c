#include "workers/pool/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/library_path.h"
#include "base/sealed_library.h"
#include "base/trace.h"
#include "workers/pool/reference_environment.h"
#include "workers/pool/leftover_processes.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/memory_watch.h"
#include "workers/pool/visible_device.h"
#include "workers/sandbox/containment.h"
#include "workers/sandbox/sandbox.h"

#include "library_digests.h"

enum {
	/* The time in which a zygote must import torch, and in which a runner must become ready. The time is long,
	 * because disks may be slow. */
	UP_MS = 300000,
	/* The time in which a runner must end after it has closed its socket. The kernel closes the socket of an
	 * exiting process before it destroys the process's GPU context. With a dozen contexts on an H200, destroying
	 * one of them took more than a second. */
	END_MS = 5000,
	CONTINUE_MS = 200, /* the interval between two SIGCONT signals to processes that a reference may have stopped */
	UNLOAD_MS = 10000, /* the time in which a runner must remove a reference from its process */
	ORPHANS_MS = 20, /* the interval between two searches for orphans */
	CLOSE_MS = 1000, /* the time in which all processes must end in zygote_close */
	/* A runner is ended if the machine's available memory falls below 1/SPARE_PART of the memory that was available
	 * when the runner started. The limit for the memory of the runner's processes is not enough, because it does
	 * not count the memory that the kernel itself uses for the runner, for example for sockets. */
	SPARE_PART = 20,
	FAILURES_MAX = 3,
	/* The number of CUDA contexts that are created at the same time. A larger number would help little, because the
	 * driver creates one context after the other. On an H200, creating three contexts at a time gives 13.4 contexts
	 * per second. Creating eight contexts at a time gives 13.9 contexts per second, but each context then takes
	 * twice as long (bench/contexts.py). */
	WARMING_MOST = 3,
	PIPE_READS = 32 /* a pipe is read at most this many times in a row, because a reference may print endlessly */
};

int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- printed output ---- */

static void keep_tail(struct buf *buf)
{
	if (buf->length > 2 * RUNNER_POOL_PRINTED)
		buf_drop(buf, buf->length - RUNNER_POOL_PRINTED);
}

/* Reads the available data of a pipe, closes the pipe at its end, and returns the number of bytes read. */
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

/* Creates a pipe. Its read end is non-blocking and is added to the epoll. */
static int make_pipe(int epoll, int ends[2], struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(err, "cannot create a pipe for a worker");
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0)
		return 0;
	err_errno(err, "cannot add a worker's pipe to epoll");
	close(ends[0]);
	close(ends[1]);
	return -1;
}

/* ---- the zygote ---- */

/* If runners have no /tmp of their own, their temporary folders are in the folder that this function makes. This
 * process, and not the zygote, removes the folder at the end, because the zygote may have been killed. */
static int make_folder(struct zygote *runners, struct err *err)
{
	const char *place = getenv("TMPDIR");

	snprintf(runners->folder, sizeof runners->folder, "%s/reftest-XXXXXX",
		 place != NULL && place[0] == '/' && strlen(place) < sizeof runners->folder - 32 ? place : "/tmp");
	if (mkdtemp(runners->folder) != NULL)
		return 0;
	err_errno(err, "cannot create a temporary folder '%s'", runners->folder);
	runners->folder[0] = '\0';
	return -1;
}

int zygote_open(struct zygote *runners, const char *python, const char *device, const char *root, int places,
		int threads, int epoll, struct err *err)
{
	static const char library[] = "libreftest_sandbox.so";

	*runners = (struct zygote){.python = python,
				   .device = device,
				   .root = root == NULL ? "" : root,
				   .threads = threads,
				   .epoll = epoll,
				   .pipe = -1,
				   .sandbox = -1,
				   .groups = {.parent = -1, .own = -1},
				   .zygote = {0, -1}};
	char path[4096];

	channel_open(&runners->channel, -1);
	if (machine_script("runner.py", "REFTEST_RUNNER", runners->script, sizeof runners->script, err) != 0)
		return -1;
	if (library_path(library, path, sizeof path) != 0)
		return err_set(err, "%s is missing, and no reference may run without it: run make", library);
	runners->sandbox = sealed_library_copy(path, SANDBOX_LIBRARY_DIGEST, NULL, err);
	if (runners->sandbox < 0 || make_folder(runners, err) != 0)
		return -1;
	runners->room =
	    6 * places + 2; /* room for taken, spare and ending runners; on a GPU, a runner takes long to end */
	runners->children = calloc((size_t)runners->room, sizeof *runners->children);
	if (runners->children == NULL)
		die_no_memory();
	control_groups_open(&runners->groups);
	for (int i = 0; i < runners->room; i++) {
		channel_open(&runners->children[i].channel, -1);
		runners->children[i].pipe = runners->children[i].pidfd = runners->children[i].proc = -1;
	}
	return 0;
}

static int launch(struct zygote *runners, int socket, int output, struct err *err)
{
	char threads[16];
	struct arena arena = {0};
	const char *visible = visible_device(runners->device, getenv("CUDA_VISIBLE_DEVICES"), &arena);
	/* -s: do not use the packages of the user's site directory. -S: do not import the module site, because
	 * runner.py adds the site packages itself, without customisations. */
	char *argv[] = {(char *)(uintptr_t)runners->python,
			(char *)(uintptr_t) "-sSu",
			runners->script,
			(char *)(uintptr_t)(visible != NULL ? VISIBLE_DEVICE_NAME : runners->device),
			threads,
			(char *)(uintptr_t) "4", /* the zygote loads the library of the sandbox from descriptor 4 */
			(char *)(uintptr_t)runners->root,
			runners->folder,
			NULL};
	const int fds[] = {-1, output, output, socket, runners->sandbox};
	struct epoll_event event = {.events = EPOLLIN};
	/* On a CPU, torch must see no GPU: otherwise, torch.cuda.is_available() would depend on the machine. */
	char **environment = visible_device_environment(environment_of_references(&arena),
							strcmp(runners->device, "cpu") == 0 ? "" : visible, &arena);

	snprintf(threads, sizeof threads, "%d", runners->threads);
	int rc = process_start(&runners->zygote, runners->python, argv, environment, fds, 5, err);

	arena_free(&arena);
	if (rc != 0)
		return -1;
	if (runners->zygote.pidfd >= 0)
		epoll_ctl(runners->epoll, EPOLL_CTL_ADD, runners->zygote.pidfd, &event);
	return 0;
}

static int start_zygote(struct zygote *runners, struct err *err)
{
	int ours, theirs, ends[2], rc;

	if (machine_script("runner.py", "REFTEST_RUNNER", runners->script, sizeof runners->script, err) != 0)
		return -1;
	if (make_pipe(runners->epoll, ends, err) != 0)
		return -1;
	if (channel_pair(&ours, &theirs, err) != 0) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	rc = launch(runners, theirs, ends[1], err);
	close(theirs);
	close(ends[1]);
	runners->pipe = ends[0];
	channel_open(&runners->channel, ours);
	if (rc == 0)
		rc = channel_watch(&runners->channel, runners->epoll, err);
	runners->deadline_ms = clock_ms() + UP_MS;
	trace("runners", "zygote %d started", (int)runners->zygote.pid);
	return rc;
}

/* ---- children ---- */

static void free_slot(struct zygote *runners, struct child *child)
{
	control_group_remove(&runners->groups, child->group);
	channel_close(&child->channel);
	if (child->pipe >= 0)
		close(child->pipe);
	if (child->pidfd >= 0)
		close(child->pidfd);
	if (child->proc >= 0)
		close(child->proc);
	buf_free(&child->printed);
	*child = (struct child){.state = CHILD_NONE, .pipe = -1, .pidfd = -1, .proc = -1};
	channel_open(&child->channel, -1);
}

/* Kills a runner. The zygote then kills the processes that the runner started. */
static void kill_child(const struct child *child)
{
	if (child->pidfd >= 0 && !child->ended)
		syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
}

static int fork_child(struct zygote *runners, int slot, bool reader, struct err *err)
{
	struct child *child = &runners->children[slot];
	int ours, ends[2], fds[3];
	char text[64];

	if (make_pipe(runners->epoll, ends, err) != 0)
		return -1;
	if (channel_pair(&ours, &fds[0], err) != 0) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	fds[1] = ends[1];
	child->group = control_group_add(&runners->groups, &fds[2]);
	if (child->group == 0 && control_groups_used(&runners->groups)) {
		err_errno(err, "cannot make a control group for a reference");
		for (const int *fd = (const int[]){ours, fds[0], ends[0], ends[1], -1}; *fd >= 0; fd++)
			close(*fd);
		return -1;
	}
	channel_open(&child->channel, ours);
	child->pipe = ends[0];
	child->state = CHILD_FORKING;
	child->number = ++runners->numbers;
	child->reader = reader;
	child->deadline_ms = clock_ms() + UP_MS;
	int length = snprintf(text, sizeof text, "{\"fork\":%d,\"group\":%s,\"reads\":%s}", slot,
			      child->group > 0 ? "true" : "false", reader ? "true" : "false");

	channel_send(&runners->channel, text, (size_t)length, fds, child->group > 0 ? 3 : 2);
	for (int i = 0; i < (child->group > 0 ? 3 : 2); i++)
		close(fds[i]);
	return channel_watch(&child->channel, runners->epoll, err);
}

static int count_state(const struct zygote *runners, enum child_state state)
{
	int count = 0;

	for (int i = 0; i < runners->room; i++)
		count += runners->children[i].state == state;
	return count;
}

/* Counts the runners that are ready or starting. */
static int count_there(const struct zygote *runners, bool used)
{
	int count = 0;

	for (int i = 0; i < runners->room; i++) {
		const struct child *child = &runners->children[i];

		count += child->used == used && !child->reader &&
			 (child->state == CHILD_FORKING || child->state == CHILD_WARMING || child->state == CHILD_SPARE);
	}
	return count;
}

int zygote_spares(const struct zygote *runners)
{
	int count = 0;

	for (int i = 0; i < runners->room; i++)
		count += runners->children[i].state == CHILD_SPARE && !runners->children[i].used;
	return count;
}

int zygote_idle(const struct zygote *runners)
{
	return runners->room - count_state(runners, CHILD_NONE) - count_state(runners, CHILD_TAKEN);
}

void zygote_drop_used(struct zygote *runners)
{
	for (int i = 0; i < runners->room; i++) {
		struct child *child = &runners->children[i];

		if (child->used && (child->state == CHILD_SPARE || child->state == CHILD_WARMING))
			zygote_drop(runners, child);
	}
}

void zygote_thin(struct zygote *runners)
{
	struct child *kept = NULL;

	for (int i = 0; i < runners->room && kept == NULL; i++)
		if (runners->children[i].state == CHILD_SPARE && !runners->children[i].used)
			kept = &runners->children[i];
	for (int i = 0; i < runners->room; i++) {
		struct child *child = &runners->children[i];

		if (child->state != CHILD_SPARE && child->state != CHILD_WARMING && child->state != CHILD_FORKING)
			continue;
		if (kept == NULL && !child->used)
			kept = child;
		else if (child != kept)
			zygote_drop(runners, child);
	}
}

int zygote_ending(const struct zygote *runners)
{
	return count_state(runners, CHILD_ENDING);
}

struct child *zygote_reader(struct zygote *runners, struct err *err)
{
	if (!runners->up)
		return NULL;
	for (int i = 0; i < runners->room; i++)
		if (runners->children[i].state == CHILD_NONE) {
			if (fork_child(runners, i, true, err) != 0)
				return NULL;
			runners->children[i].state = CHILD_TAKEN;
			return &runners->children[i];
		}
	return NULL;
}

int zygote_want(struct zygote *runners, struct runner_demand demand, struct err *err)
{
	int fresh = count_there(runners, false), used = count_there(runners, true);
	int of_fresh = demand.fresh - fresh, of_all = demand.fresh + demand.any - fresh - used;
	int more = of_fresh > of_all ? of_fresh : of_all;

	if (more <= 0)
		return 0;
	if (runners->zygote.pid == 0)
		return runners->orphans_ms != 0 ? 0 : start_zygote(runners, err);

	if (strcmp(runners->device, "cpu") != 0) {
		int room = WARMING_MOST - count_state(runners, CHILD_FORKING) - count_state(runners, CHILD_WARMING);

		more = more < room ? more : room;
	}
	for (int i = 0; runners->up && i < runners->room && more > 0; i++)
		if (runners->children[i].state == CHILD_NONE) {
			if (fork_child(runners, i, false, err) != 0)
				return -1;
			more--;
		}
	return 0;
}

/* Returns whether the spare runner `a` is taken rather than the spare runner `b`. A runner that has served a definition
 * is taken rather than an unused one, so that unused runners stay available. If both are used or both are unused, the
 * one that has waited longer is taken. */
static bool better(const struct child *a, const struct child *b)
{
	return b == NULL || (a->used != b->used ? a->used : a->ready_ms < b->ready_ms);
}

bool zygote_reaches_processes(const struct zygote *runners)
{
	return runners->taken && sandbox_gap_is_open(sandbox_gap_named("process_memory"), runners->layers);
}

struct child *zygote_take(struct zygote *runners, bool used)
{
	struct child *warmest = NULL;

	for (int i = 0; i < runners->room; i++) {
		struct child *child = &runners->children[i];

		if (child->state == CHILD_SPARE && !child->ended && (used || !child->used) && better(child, warmest))
			warmest = child;
	}
	if (warmest != NULL) {
		warmest->state = CHILD_TAKEN;
		runners->taken = true;
		process_let_continue(warmest->pidfd); /* resumes the runner, which another reference may have stopped */
		warmest->deadline_ms = INT64_MAX;
	}
	return warmest;
}

void zygote_release(struct zygote *runners, struct child *child)
{
	static const char unload[] = "{\"unload\":true}";

	(void)runners;
	child->used = true;
	child->ready = false;
	child->state = CHILD_WARMING;
	child->deadline_ms = clock_ms() + UNLOAD_MS;
	buf_clear(&child->printed);
	child->printed_bytes = 0;
	channel_send(&child->channel, unload, sizeof unload - 1, NULL, 0);
}

static void reap(struct zygote *runners, struct child *child)
{
	char text[96];
	int length = snprintf(text, sizeof text, "{\"reap\":%d,\"number\":%lld}", (int)child->pid, (long long)child->number);

	if (!child->lost)
		channel_send(&runners->channel, text, (size_t)length, NULL, 0);
	free_slot(runners, child);
}

bool zygote_is_gone(const struct zygote *runners, int64_t number)
{
	for (int i = 0; i < ZYGOTE_GONE; i++)
		if (number != 0 && runners->gone[i] == number)
			return true;
	return false;
}

int zygote_limit_memory(struct zygote *runners, struct child *child, int64_t bytes)
{
	if (child->proc >= 0 && child->group == 0) {
		int64_t available = sandbox_available_memory(), used = memory_watch_sum(child->proc, false);

		if (used < 0)
			return -1;
		child->memory_most = used + (bytes < available ? bytes : available);
		child->memory_spare = available / SPARE_PART;
		runners->watch_ms = clock_ms() + MEMORY_WATCH_MS;
	}
	return child->group == 0 ? 0 : control_group_limit_memory(&runners->groups, child->group, bytes);
}

void zygote_drop(struct zygote *runners, struct child *child)
{
	kill_child(child);
	child->state = CHILD_ENDING;
	channel_close(&child->channel);
	if (child->pipe >= 0)
		close(child->pipe);
	child->pipe = -1;
	if (child->ended)
		reap(runners, child);
}

/* Handles a runner that closed its socket. The runner is probably exiting. If it is still running after END_MS
 * milliseconds, it is killed. */
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

static struct child *child_of_pid(struct zygote *runners, int64_t pid)
{
	for (int i = 0; i < runners->room; i++)
		if (runners->children[i].pid == pid && runners->children[i].state != CHILD_NONE)
			return &runners->children[i];
	return NULL;
}

static void copy_text(char *out, size_t size, const cJSON *object, const char *key)
{
	const char *text = json_text_of(object, key);

	snprintf(out, size, "%s", text == NULL ? "" : text);
}

static void on_forked(struct zygote *runners, int64_t slot, int64_t pid)
{
	struct child *child = slot >= 0 && slot < runners->room ? &runners->children[slot] : NULL;
	int pidfd = channel_take_fd(&runners->channel);

	if (child == NULL || child->state == CHILD_NONE || pid <= 1 || child->pidfd >= 0) {
		if (pidfd >= 0)
			close(pidfd);
		return;
	}
	child->pid = (pid_t)pid;
	child->pidfd = pidfd;
	if (child->state == CHILD_FORKING)
		child->state = child->ready ? CHILD_SPARE : CHILD_WARMING;
	else if (child->state == CHILD_ENDING)
		kill_child(child);
}

static void on_exit_of(struct zygote *runners, int64_t pid, int64_t status)
{
	struct child *child = child_of_pid(runners, pid);

	if (child == NULL)
		return;
	child->ended = true;
	child->status = (int)status;
	/* `shut` means that the pool sent SIGKILL because the runner had closed its socket; `shut` becomes false if the
	 * runner ended in another way */
	child->out_of_memory = child->out_of_memory || control_group_ran_out_of_memory(&runners->groups, child->group);
	child->shut = child->shut && WIFSIGNALED(child->status) && WTERMSIG(child->status) == SIGKILL;
	trace("runners", "child %d: %s", (int)pid, process_end(child->status).text);
	if (child->state == CHILD_ENDING)
		reap(runners, child);
}

/* Returns -1 with a message if references could reach more than the user allows. */
static int check_containment(const struct zygote *runners, struct err *err)
{
	char text[CONTAINMENT_TEXT];

	containment_write(runners->layers, text);
	if (containment_suffices(text, runners->required))
		return 0;
	return err_set(err,
		       "no reference runs, because this machine does not meet --require-containment %s (missing: %s); `reftest "
		       "doctor` prints what references could reach",
		       runners->required, text);
}

/* Handles a message of the zygote. Returns -1 if the zygote reports that it cannot work. */
static int on_zygote_line(struct zygote *runners, const char *line, size_t length, struct err *err)
{
	const struct json_text text = {"zygote", line, length, 1};
	cJSON *message = json_parse(&text, err);
	const cJSON *hello = json_member(message, "template");
	const char *refused = json_text_of(message, "refused");
	int64_t number = 0, more = 0;
	int rc = message == NULL ? -1 : 0;

	if (hello != NULL) {
		copy_text(runners->torch, sizeof runners->torch, hello, "torch");
		copy_text(runners->cuda, sizeof runners->cuda, hello, "cuda");
		copy_text(runners->python_version, sizeof runners->python_version, hello, "python");
		runners->layers = json_integer(json_member(hello, "layers"), &more) ? (uint32_t)more & SANDBOX_ALL & ~(uint32_t)SANDBOX_OF_POOL : 0;
		runners->layers = sandbox_with_sum(runners->layers);
		if (control_groups_used(&runners->groups))
			runners->layers |= SANDBOX_MEMORY_GROUP | SANDBOX_PROCESS_GROUP;
		rc = check_containment(runners, err);
		runners->up = true;
		runners->deadline_ms = 0;
	} else if (json_integer(json_member(message, "forked"), &number) &&
	           json_integer(json_member(message, "pid"), &more)) {
		on_forked(runners, number, more);
	} else if (json_integer(json_member(message, "exit"), &number) &&
	           json_integer(json_member(message, "status"), &more)) {
		on_exit_of(runners, number, more);
	} else if (json_integer(json_member(message, "gone"), &number)) {
		runners->gone[runners->gone_count++ % ZYGOTE_GONE] = number;
	} else if (refused != NULL) {
		rc = err_set(err, "%s", refused);
	}
	cJSON_Delete(message);
	return rc;
}

static int read_zygote(struct zygote *runners, struct err *err)
{
	size_t length;
	char *line;

	listen_to(&runners->pipe, &runners->said);
	channel_flush(&runners->channel);
	while (runners->channel.fd >= 0) {
		while ((line = channel_line(&runners->channel, &length)) != NULL)
			if (on_zygote_line(runners, line, length, err) != 0)
				return -1;
		switch (channel_read(&runners->channel)) {
		case CHANNEL_DATA:
			break;
		case CHANNEL_EMPTY:
			return 0;
		default:
			channel_close(&runners->channel);
			process_kill(&runners->zygote);
		}
	}
	return 0;
}

/* Returns the number of free bytes of GPU memory in a runner's {"ready"}, or 0 if there is no such number. */
static int64_t gpu_free_of(const char *line, size_t length)
{
	const struct json_text text = {"runner", line, length, 1};
	struct err ignored = {""};
	cJSON *message = json_parse(&text, &ignored);
	const cJSON *bytes = json_member(message, "gpu_free");
	double value = cJSON_IsNumber(bytes) ? bytes->valuedouble : 0;

	cJSON_Delete(message);
	return value > 0 && value < 0x1p60 ? (int64_t)value : 0;
}

/* Returns whether a runner that cannot use the device may be able to do so later. Earlier runners could use the device,
 * and references may use all of its memory now. */
static bool is_refused_for_now(const struct zygote *runners)
{
	return runners->was_ready && count_state(runners, CHILD_TAKEN) > 0;
}

/* Handles the first message of a runner, {"ready"} or {"refused"}, before a lane uses the runner. Returns -1 if
 * runners cannot work on this machine. */
static int read_fresh_child(struct zygote *runners, struct child *child, int64_t now_ms, struct err *err)
{
	char *line;
	size_t length;
	enum child_event event = child_next(child, now_ms, &line, &length);

	if (event == CHILD_LINE && strncmp(line, "{\"ready\"", 8) == 0) {
		trace("runners", "child %d: %.*s", (int)child->pid, (int)length, line);
		if (!child->used) /* a used runner sent the descriptor `proc` when it was new */
			child->proc = channel_take_fd(&child->channel);
		if (child->proc < 0 && (runners->layers & SANDBOX_MEMORY_SUM) != 0)
			return err_set(err, "the total memory of a reference's processes cannot be determined, "
					    "because its runner has no /proc");
		if (!child->used)
			runners->gpu_free = gpu_free_of(line, length);
		runners->failures = 0;
		runners->was_ready = true;
		child->ready = true;
		child->ready_ms = now_ms;
		if (child->state == CHILD_WARMING)
			child->state = CHILD_SPARE;
		child->deadline_ms = INT64_MAX;
		return 0;
	}
	if (child->used && event != CHILD_NOTHING) { /* a used runner that does not answer {"ready"} has been changed by
						      * its reference, or has ended */
		trace("runners", "child %d is not kept: %.*s", (int)child->pid, event == CHILD_LINE ? (int)length : 0,
		      event == CHILD_LINE ? line : "");
		zygote_drop(runners, child);
		return 0;
	}
	if (event == CHILD_LINE) {
		const struct json_text text = {"runner", line, length, 1};
		cJSON *message = json_parse(&text, err);
		const char *refused = json_text_of(message, "refused");

		err_set(err, "%s", refused == NULL ? "invalid message from a runner" : refused);
		cJSON_Delete(message);
		if (refused == NULL || !is_refused_for_now(runners))
			return -1;
		trace("runners", "a runner cannot start now: %s", err->text);
		runners->gpu_free = 0;
		zygote_drop(runners, child);
		return 0;
	}
	if (event == CHILD_NOTHING && (now_ms < child->deadline_ms || child->state == CHILD_SPARE))
		return 0;
	if (child->state != CHILD_SPARE && !child->used && runners->failures++ >= FAILURES_MAX)
		return err_set(err, "the runner processes ended before they were ready (%s): %.*s",
		               child->ended ? process_end(child->status).text : "it took too long",
		               (int)(child->printed.length < 1000 ? child->printed.length : 1000),
		               child->printed.length == 0 ? "" : child->printed.data);
	zygote_drop(runners, child);
	return 0;
}

/* Marks all runners as lost, because the zygote has died. The kernel kills the zygote's children. The processes that
 * these children started then become children of this process. */
static void lose_children(struct zygote *runners)
{
	for (int i = 0; i < runners->room; i++) {
		struct child *child = &runners->children[i];

		if (child->state == CHILD_NONE)
			continue;
		kill_child(child);
		child->ended = child->lost = true;
		if (child->state != CHILD_TAKEN)
			free_slot(runners, child);
	}
}

static int on_zygote_end(struct zygote *runners, int status, int64_t now_ms, struct err *err)
{
	bool was_up = runners->up;
	int tail;

	trace("runners", "zygote: %s", process_end(status).text);
	lose_children(runners);
	listen_to(&runners->pipe, &runners->said);
	channel_close(&runners->channel);
	if (runners->pipe >= 0)
		close(runners->pipe);
	runners->pipe = -1;
	runners->up = false;
	runners->deadline_ms = 0;
	runners->orphans_ms = now_ms;
	tail = (int)(runners->said.length < 1000 ? runners->said.length : 1000);
	if (runners->failures++ >= (was_up || process_was_killed(status) ? FAILURES_MAX : 0))
		return err_set(err, "%s does not start as a runner (%s): %.*s", runners->python,
			       process_end(status).text, tail,
			       tail == 0 ? "" : runners->said.data + runners->said.length - (size_t)tail);
	buf_clear(&runners->said);
	return 0;
}

static bool is_watched(const struct child *child)
{
	return child->state == CHILD_TAKEN && !child->ended && child->memory_most > 0;
}

static bool any_watched(const struct zygote *runners)
{
	for (int i = 0; i < runners->room; i++)
		if (is_watched(&runners->children[i]))
			return true;
	return false;
}

/* Returns whether the processes use too much memory. Computes the exact sum only if the quick sum is too large, because
 * the exact sum is never larger. */
static bool uses_too_much(const struct child *child)
{
	return memory_watch_sum(child->proc, false) > child->memory_most &&
	       memory_watch_sum(child->proc, true) > child->memory_most;
}

/* Ends the runners that use too much memory. If this machine has no memory left, ends all runners. If only one runner
 * belongs to a lane, its reference is blamed for the lack of memory. If several runners belong to lanes, the cause is
 * unknown, and their cases are tried again one by one. */
static void watch_memory(struct zygote *runners)
{
	int64_t available = sandbox_available_memory();
	bool alone = count_state(runners, CHILD_TAKEN) == 1;

	for (int i = 0; i < runners->room; i++) {
		struct child *child = &runners->children[i];

		if (!is_watched(child))
			continue;
		bool much = uses_too_much(child), short_of = available < child->memory_spare;

		if (!much && !short_of)
			continue;
		trace("runners", "child %d: %s", (int)child->pid, much ? "uses too much memory" : "this machine has no memory left");
		child->out_of_memory = much || alone;
		kill_child(child);
	}
	runners->watch_ms = clock_ms() + MEMORY_WATCH_MS; /* the interval begins only now, because computing the sums
							   * may have taken long */
}

/* Returns whether a reference may have stopped the zygote or a runner that is starting or ending. This is possible if
 * the sandbox does not prevent signals. */
static bool may_be_stopped(const struct zygote *runners)
{
	return runners->up && sandbox_gap_is_open(sandbox_gap_named("signals"), runners->layers) &&
	       count_state(runners, CHILD_FORKING) + count_state(runners, CHILD_WARMING) + count_state(runners, CHILD_ENDING) > 0;
}

static void let_continue(const struct zygote *runners)
{
	process_let_continue(runners->zygote.pidfd);
	for (int i = 0; i < runners->room; i++)
		if (runners->children[i].state == CHILD_WARMING)
			process_let_continue(runners->children[i].pidfd);
}

int zygote_dispatch(struct zygote *runners, int64_t now_ms, struct err *err)
{
	int status;

	if (read_zygote(runners, err) != 0)
		return -1;
	if (runners->deadline_ms != 0 && now_ms >= runners->deadline_ms)
		return err_set(err, "%s does not start as a runner: it has been importing torch for %d s",
			       runners->python, UP_MS / 1000);
	for (int i = 0; i < runners->room; i++) {
		struct child *child = &runners->children[i];

		if ((child->state == CHILD_WARMING || child->state == CHILD_SPARE || child->state == CHILD_FORKING) &&
		    read_fresh_child(runners, child, now_ms, err) != 0)
			return -1;
	}
	if (process_ended(&runners->zygote, &status) && on_zygote_end(runners, status, now_ms, err) != 0)
		return -1;
	if (any_watched(runners) && now_ms >= runners->watch_ms)
		watch_memory(runners);
	if (may_be_stopped(runners))
		let_continue(runners);
	if (runners->orphans_ms != 0 && now_ms >= runners->orphans_ms)
		runners->orphans_ms = leftover_processes_kill() > 0 ? now_ms + ORPHANS_MS : 0;
	return 0;
}

int64_t zygote_deadline(const struct zygote *runners)
{
	int64_t deadline = INT64_MAX;

	if (runners->deadline_ms != 0)
		deadline = runners->deadline_ms;
	if (runners->orphans_ms != 0 && runners->orphans_ms < deadline)
		deadline = runners->orphans_ms;
	if (any_watched(runners) && runners->watch_ms < deadline)
		deadline = runners->watch_ms;
	if (may_be_stopped(runners) && clock_ms() + CONTINUE_MS < deadline)
		deadline = clock_ms() + CONTINUE_MS;
	for (int i = 0; i < runners->room; i++) {
		const struct child *child = &runners->children[i];

		if (child->state != CHILD_NONE && child->state != CHILD_ENDING && !child->ended && !child->shut &&
		    child->deadline_ms < deadline)
			deadline = child->deadline_ms;
	}
	return deadline;
}

void zygote_close(struct zygote *runners)
{
	int64_t end = clock_ms() + CLOSE_MS;
	int status;

	for (int i = 0; i < runners->room; i++)
		if (runners->children[i].state != CHILD_NONE)
			kill_child(&runners->children[i]);
	process_kill(&runners->zygote);
	do {
		struct pollfd poll_zygote = {runners->zygote.pidfd, POLLIN, 0};

		poll(&poll_zygote, 1, 1); /* waits for a millisecond, or until the zygote ends */
		process_ended(&runners->zygote, &status);
	} while ((leftover_processes_kill() > 0 || runners->zygote.pid != 0) && clock_ms() < end);
	for (int i = 0; i < runners->room; i++)
		free_slot(runners, &runners->children[i]);
	free(runners->children);
	channel_close(&runners->channel);
	if (runners->pipe >= 0)
		close(runners->pipe);
	if (runners->sandbox >= 0)
		close(runners->sandbox);
	control_groups_close(&runners->groups);
	if (runners->folder[0] != '\0')
		sandbox_remove_folder(runners->folder);
	buf_free(&runners->said);
	*runners = (struct zygote){.pipe = -1, .sandbox = -1, .groups = {.parent = -1, .own = -1}};
}
