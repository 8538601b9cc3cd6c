/* A lane's work is a task (or one case of it, tried again). For each case the judge is asked, its {"run": …} goes to the
 * runner child, the child's answer to the judge, until the judge gives a verdict; the child loads the reference while the
 * judge makes the first inputs. What goes wrong is told to the judge too ({"blame": …}), which makes a verdict of it.
 *
 *            task                 {"case"}            {"run"}             {"ran"}
 *   IDLE ──────────▶ WAITING ──────────────▶ WORKING ─────────▶ (child) ─────────▶ (judge) ──▶ verdict ──▶ next case
 *                    for a judge and                    ◀───────────────────────────┘ second run
 *                    a spare child
 *
 * The judge answers each message that wants an answer in order, so a case can be given up at any time: the answers
 * still owed for it are counted as stale and passed over. A child that misbehaves, dies or is late is killed, and the
 * next case gets a fresh one. A case whose judge or child was ended by somebody else (another reference, the kernel for
 * want of memory) is tried once more, alone: when no other lane is at work.
 *
 * All descriptors lie in one epoll, which only says that there is something to do: pool_dispatch then looks at
 * everything (lanes are few), so no event can be stale. */
#include "workers/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/trace.h"
#include "workers/channel.h"
#include "workers/crew.h"
#include "workers/machine.h"
#include "workers/process.h"

extern char **environ;

enum {
	STALE_MS = 250,      /* for a judge to finish what was given up, before it is replaced */
	BLAME_MS = 30000,    /* for a judge to make a verdict of a failure */
	JUDGE_UP_MS = 120000,
	JUDGE_FAILURES = 2,
	PROBE_MS = 60000,
	MESSAGE_MAX = 64 << 10, /* bytes of a runner's error message that go into a verdict */
	PROBE_ANSWER = 4096
};

/* ---- data ---- */

struct work {
	struct work *next;
	struct task task;
	int job;       /* the case under way */
	bool alone;    /* a second try, with nobody else at work */
	bool loaded;   /* the reference has loaded at least once */
	char *failure; /* {"reason", …}: it does not load; every case is told so. NULL */
	bool accident; /* of `failure` */
};

struct result {
	struct result *next;
	void *owner;
	const struct job *job;
	char *text; /* verdict JSON */
	size_t length;
	bool accident;
	char *printed; /* NULL: nothing */
	double seconds;
	int64_t time;
};

struct queue {
	struct work *first;
};

enum phase { LANE_IDLE, LANE_WAITING, LANE_WORKING };

struct lane {
	struct process judge;
	struct channel channel; /* to the judge */
	bool up;                /* the judge has said hello */
	int64_t up_deadline;    /* ms; 0: it is not being started */
	int owed, stale;        /* answers the judge owes, and how many of them (the first) nobody wants any more */
	int64_t stale_deadline;

	enum phase phase;
	struct work *work;      /* NULL: idle */
	struct child *child;    /* NULL: none */
	bool loaded, running;   /* the child has loaded the reference; it owes the answer to a run */
	bool staged;            /* this child is given tensors through the host */
	bool blamed;            /* the judge is making a verdict of a failure */
	bool accident;          /* of that failure */
	char *run;              /* the judge's {"run"} that waits for the child to have loaded; NULL */
	int run_fd;             /* the arena's memfd that goes with it; -1 */
	char *printed;          /* by a child that is gone; NULL */
	double started;         /* seconds, monotonic */
	int64_t deadline;       /* ms, monotonic; WORKING */
};

struct pool {
	char *device, *python, *root;
	double timeout_s;
	bool staged;            /* asked for */
	bool ipc_refused;       /* found out */
	bool warm;              /* pool_warm */
	int lane_count, threads;
	int epoll, wake, timer;
	int subreaper, dumpable; /* as they were before pool_open */
	struct crew crew;
	struct lane *lanes;
	struct queue queue, alone;
	struct result *first, **last;
	int pending;
	int judge_failures;
	char device_class[64];
};

/* ---- opening ---- */

static char *copy_text(const char *text)
{
	char *copy = strdup(text);

	if (copy == NULL)
		die_no_memory();
	return copy;
}

static int watch_fd(const struct pool *pool, int fd, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(pool->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : err_errno(err, "the pool cannot watch");
}

static int open_loop(struct pool *pool, struct err *err)
{
	pool->epoll = epoll_create1(EPOLL_CLOEXEC);
	pool->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pool->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (pool->epoll < 0 || pool->wake < 0 || pool->timer < 0)
		return err_errno(err, "the pool's loop cannot be made");
	return watch_fd(pool, pool->wake, err) == 0 ? watch_fd(pool, pool->timer, err) : -1;
}

static void close_loop(struct pool *pool)
{
	const int fds[] = {pool->epoll, pool->wake, pool->timer};

	for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void free_pool(struct pool *pool)
{
	close_loop(pool);
	free(pool->device);
	free(pool->python);
	free(pool->root);
	free(pool->lanes);
	free(pool);
}

struct pool *pool_open(const struct pool_options *options, struct err *err)
{
	struct pool *pool = calloc(1, sizeof *pool);
	int cores = machine_cores();

	if (pool == NULL)
		die_no_memory();
	pool->device = copy_text(options->device);
	pool->python = copy_text(options->python);
	pool->root = copy_text(options->root);
	pool->timeout_s = options->timeout_s;
	pool->staged = options->staged;
	pool->lane_count = options->lanes < 1 ? 1 : options->lanes;
	pool->threads = cores / pool->lane_count < 1 ? 1 : cores / pool->lane_count;
	pool->last = &pool->first;
	pool->lanes = calloc((size_t)pool->lane_count, sizeof *pool->lanes);
	if (pool->lanes == NULL)
		die_no_memory();
	for (int i = 0; i < pool->lane_count; i++) {
		channel_open(&pool->lanes[i].channel, -1);
		pool->lanes[i].judge.pidfd = pool->lanes[i].run_fd = -1;
	}
	if (open_loop(pool, err) != 0 || crew_open(&pool->crew, pool->python, pool->device, pool->lane_count, pool->threads,
	                                           pool->epoll, err) != 0) {
		free_pool(pool);
		return NULL;
	}
	prctl(PR_GET_CHILD_SUBREAPER, &pool->subreaper);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pool->dumpable = prctl(PR_GET_DUMPABLE);
	prctl(PR_SET_DUMPABLE, 0);
	return pool;
}

static void wake(struct pool *pool)
{
	const uint64_t one = 1;

	if (write(pool->wake, &one, sizeof one) < 0)
		return; /* the counter is full: it is readable as it is */
}

void pool_warm(struct pool *pool)
{
	pool->warm = true;
	wake(pool);
}

/* ---- work and results ---- */

static struct work *new_work(const struct task *task)
{
	struct work *work = calloc(1, sizeof *work);

	if (work == NULL)
		die_no_memory();
	work->task = *task;
	return work;
}

static void free_work(struct work *work)
{
	free(work->failure);
	free(work);
}

static void push(struct queue *queue, struct work *work)
{
	struct work **end = &queue->first;

	while (*end != NULL)
		end = &(*end)->next;
	*end = work;
	work->next = NULL;
}

static struct work *pop(struct queue *queue)
{
	struct work *work = queue->first;

	if (work != NULL)
		queue->first = work->next;
	return work;
}

static int queue_length(const struct queue *queue)
{
	int length = 0;

	for (const struct work *work = queue->first; work != NULL; work = work->next)
		length++;
	return length;
}

void pool_submit(struct pool *pool, const struct task *task)
{
	if (task->job_count <= 0)
		return;
	push(&pool->queue, new_work(task));
	pool->pending += task->job_count;
	wake(pool);
}

static const struct job *current_job(const struct lane *lane)
{
	return lane->work->task.jobs[lane->work->job];
}

/* What the reference printed since it was last asked: its end, marked when the beginning is gone; NULL: nothing. */
static char *take_printed(struct child *child)
{
	struct buf text = {0};
	size_t length, cut;

	child_listen(child);
	length = child->printed.length;
	cut = length > CREW_PRINTED ? length - CREW_PRINTED : 0;
	if (child->printed_bytes > (int64_t)(length - cut))
		buf_printf(&text, "[%lld bytes before this are not kept]\n",
		           (long long)child->printed_bytes - (long long)(length - cut));
	if (length > cut)
		buf_add(&text, child->printed.data + cut, length - cut);
	for (size_t i = 0; i < text.length; i++)
		if (text.data[i] == '\0') /* C strings end there */
			text.data[i] = '?';
	buf_clear(&child->printed);
	child->printed_bytes = 0;
	return text.data;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void add_result(struct pool *pool, struct lane *lane, const char *text, size_t length)
{
	struct result *result = calloc(1, sizeof *result);

	if (result == NULL)
		die_no_memory();
	result->owner = lane->work->task.owner;
	result->job = current_job(lane);
	result->text = malloc(length + 1);
	if (result->text == NULL)
		die_no_memory();
	memcpy(result->text, text, length);
	result->text[length] = '\0';
	result->length = length;
	result->accident = lane->accident;
	result->printed = lane->printed != NULL || lane->child == NULL ? lane->printed : take_printed(lane->child);
	lane->printed = NULL;
	result->seconds = now_s() - lane->started;
	result->time = (int64_t)time(NULL);
	*pool->last = result;
	pool->last = &result->next;
}

static void free_result(struct result *result)
{
	free(result->text);
	free(result->printed);
	free(result);
}

/* ---- judges ---- */

static char **judge_environment(const struct pool *pool, struct arena *arena)
{
	size_t count = 0, kept = 0;
	char **out;

	while (environ[count] != NULL)
		count++;
	out = arena_array(arena, count + 3, sizeof *out);
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], "OMP_NUM_THREADS=", 16) != 0 && strncmp(environ[i], "OMP_WAIT_POLICY=", 16) != 0)
			out[kept++] = environ[i];
	out[kept++] = arena_printf(arena, "OMP_NUM_THREADS=%d", pool->threads);
	/* Threads that have nothing to do leave the core to the reference. */
	out[kept++] = arena_string(arena, "OMP_WAIT_POLICY=passive");
	return out;
}

/* /proc/self/exe is this very program, even when the file has been replaced since. */
static int launch_judge(struct process *process, const char *const *words, char **environment, const int *fds,
                        int fd_count, struct err *err)
{
	char *argv[8] = {NULL};

	for (int i = 0; words[i] != NULL && i < 7; i++)
		argv[i] = (char *)(uintptr_t)words[i];
	return process_start(process, "/proc/self/exe", argv, environment, fds, fd_count, err);
}

static int start_judge(struct pool *pool, struct lane *lane, struct err *err)
{
	const char *words[] = {"reftest", "judge", "--device", pool->device, pool->staged ? "--staged" : NULL, NULL};
	struct arena arena = {0};
	int ours, theirs, rc;

	if (channel_pair(&ours, &theirs, err) != 0)
		return -1;
	const int fds[] = {-1, STDERR_FILENO, STDERR_FILENO, theirs};

	channel_open(&lane->channel, ours);
	rc = launch_judge(&lane->judge, words, judge_environment(pool, &arena), fds, 4, err);
	close(theirs);
	arena_free(&arena);
	if (rc == 0)
		rc = channel_watch(&lane->channel, pool->epoll, err);
	if (rc == 0 && lane->judge.pidfd >= 0)
		rc = watch_fd(pool, lane->judge.pidfd, err);
	lane->up = false;
	lane->owed = lane->stale = 0;
	lane->up_deadline = clock_ms() + JUDGE_UP_MS;
	trace("pool", "judge %d started", (int)lane->judge.pid);
	return rc;
}

static void tell_judge(struct lane *lane, const char *text, size_t length)
{
	channel_send(&lane->channel, text, length, NULL, 0);
}

/* Sends a message that wants an answer. */
static void ask_judge(struct lane *lane, const char *text, size_t length)
{
	lane->owed++;
	tell_judge(lane, text, length);
}

/* Answers to what was asked so far are no longer wanted. */
static void forget_answers(struct lane *lane)
{
	lane->stale = lane->owed;
	lane->stale_deadline = clock_ms() + STALE_MS;
}

/* ---- a lane's child ---- */

static void drop_run(struct lane *lane)
{
	free(lane->run);
	lane->run = NULL;
	if (lane->run_fd >= 0)
		close(lane->run_fd);
	lane->run_fd = -1;
}

/* What it printed stays for the verdict to come. */
static void drop_child(struct pool *pool, struct lane *lane)
{
	drop_run(lane);
	if (lane->child != NULL) {
		free(lane->printed);
		lane->printed = take_printed(lane->child);
		crew_drop(&pool->crew, lane->child);
	}
	lane->child = NULL;
	lane->loaded = lane->running = false;
}

static int64_t largest_case(const struct task *task)
{
	int64_t most = 0;

	for (int i = 0; i < task->job_count; i++) {
		int64_t bytes = job_bytes(task->jobs[i]);

		most = bytes > most && bytes < (int64_t)1 << 52 ? bytes : most;
	}
	return most;
}

/* A fresh child gets the reference, the judge a fresh arena to share with it. */
static void bind_child(struct pool *pool, struct lane *lane, struct child *child)
{
	struct buf text = {0};

	lane->child = child;
	lane->loaded = lane->running = false;
	lane->staged = pool->staged || pool->ipc_refused;
	buf_text(&text, "{\"load\":");
	buf_json_string(&text, lane->work->task.reference);
	buf_text(&text, ",\"name\":");
	buf_json_string(&text, lane->work->task.name);
	buf_text(&text, "}");
	channel_send(&child->channel, text.data, text.length, NULL, 0);
	buf_clear(&text);
	buf_printf(&text, "{\"begin\":{\"bytes\":%lld,\"staged\":%s}}", (long long)largest_case(&lane->work->task),
	           lane->staged ? "true" : "false");
	tell_judge(lane, text.data, text.length);
	buf_free(&text);
}

/* ---- cases ---- */

static int64_t case_deadline(const struct pool *pool)
{
	double ms = pool->timeout_s * 1000;

	return ms > 0 && ms < 1e15 ? clock_ms() + (int64_t)ms : INT64_MAX;
}

static void ask_verdict_on_failure(struct lane *lane, const char *failure, bool accident)
{
	struct buf text = {0};

	forget_answers(lane);
	buf_printf(&text, "{\"blame\":%s,\"job\":", failure);
	job_write(current_job(lane), &text);
	buf_text(&text, "}");
	lane->blamed = true;
	lane->accident = accident;
	lane->deadline = clock_ms() + BLAME_MS;
	ask_judge(lane, text.data, text.length);
	buf_free(&text);
}

static void begin_case(struct pool *pool, struct lane *lane)
{
	struct buf text = {0};

	lane->phase = LANE_WORKING;
	lane->blamed = lane->accident = false;
	free(lane->printed);
	lane->printed = NULL;
	lane->started = now_s();
	lane->deadline = case_deadline(pool);
	if (lane->work->failure != NULL) {
		ask_verdict_on_failure(lane, lane->work->failure, lane->work->accident);
		return;
	}
	buf_text(&text, "{\"case\":");
	job_write(current_job(lane), &text);
	buf_text(&text, "}");
	ask_judge(lane, text.data, text.length);
	buf_free(&text);
}

static void finish_work(struct pool *pool, struct lane *lane)
{
	static const char end[] = "{\"end\":true}";

	drop_child(pool, lane);
	tell_judge(lane, end, sizeof end - 1);
	free_work(lane->work);
	lane->work = NULL;
	lane->phase = LANE_IDLE;
}

/* On to the next case of the lane's work, or to none. One that cannot be loaded needs no child. */
static void next_case(struct pool *pool, struct lane *lane)
{
	drop_run(lane);
	if (lane->child != NULL && lane->child->ended)
		drop_child(pool, lane);
	if (++lane->work->job >= lane->work->task.job_count)
		finish_work(pool, lane);
	else if (lane->up && (lane->child != NULL || lane->work->failure != NULL))
		begin_case(pool, lane);
	else
		lane->phase = LANE_WAITING;
}

/* The case is tried again later, with nobody else at work. */
static void retry_alone(struct pool *pool, struct lane *lane)
{
	struct task one = lane->work->task;
	struct work *work;

	one.jobs += lane->work->job;
	one.job_count = 1;
	work = new_work(&one);
	work->alone = true;
	push(&pool->alone, work);
	wake(pool);
	trace("pool", "%s %s: to be tried again alone", one.name, one.jobs[0]->id);
	forget_answers(lane);
	next_case(pool, lane);
}

static bool others_at_work(const struct pool *pool, const struct lane *lane)
{
	for (int i = 0; i < pool->lane_count; i++)
		if (&pool->lanes[i] != lane && pool->lanes[i].phase != LANE_IDLE)
			return true;
	return false;
}

/* Too little memory is only believed when nobody else holds some. */
static bool is_crowded_out(const struct pool *pool, const struct lane *lane, const char *verdict)
{
	return !lane->work->alone && strstr(verdict, "\"reason\":\"memory\"") != NULL && others_at_work(pool, lane);
}

static void take_verdict(struct pool *pool, struct lane *lane, const char *text, size_t length)
{
	if (is_crowded_out(pool, lane, text)) {
		retry_alone(pool, lane);
		return;
	}
	add_result(pool, lane, text, length);
	next_case(pool, lane);
}

/* A verdict that no judge can make, because it is the judge that failed. */
static void verdict_without_judge(struct pool *pool, struct lane *lane, enum reason reason, const char *message)
{
	const struct verdict verdict = {.status = STATUS_ERROR, .reason = reason, .message = message, .device = pool->device,
	                                .device_class = pool->device_class[0] == '\0' ? "unknown" : pool->device_class};
	struct buf text = {0};

	verdict_write(&verdict, &text);
	lane->accident = true;
	add_result(pool, lane, text.data, text.length);
	buf_free(&text);
	next_case(pool, lane);
}

/* ---- what a child says ---- */

/* {"reason", "message", "line", "loading"}; free() it. */
static char *failure_text(const char *reason, const char *message, int64_t line, bool loading)
{
	size_t length = strlen(message);
	struct buf text = {0};

	buf_printf(&text, "{\"reason\":\"%s\",\"message\":", reason);
	buf_json_bytes(&text, message, length < MESSAGE_MAX ? length : MESSAGE_MAX);
	buf_printf(&text, ",\"line\":%lld,\"loading\":%s}", (long long)line, loading ? "true" : "false");
	return text.data;
}

/* The reference failed at the case under way; while it was loading, at all cases to come too. */
static void blame(struct lane *lane, const char *reason, const char *message, int64_t line, bool accident)
{
	char *failure = failure_text(reason, message, line, !lane->loaded);

	trace("pool", "%s %s: %s", lane->work->task.name, current_job(lane)->id, message);
	drop_run(lane);
	ask_verdict_on_failure(lane, failure, accident);
	if (!lane->loaded && !lane->work->loaded) {
		lane->work->failure = failure;
		lane->work->accident = accident;
	} else {
		free(failure);
	}
}

static void blame_child(struct pool *pool, struct lane *lane, const char *reason, const char *message)
{
	blame(lane, reason, message, 0, true);
	drop_child(pool, lane);
}

static void forward_run(struct lane *lane)
{
	if (lane->run == NULL || !lane->loaded || lane->running || lane->child == NULL)
		return;
	channel_send(&lane->child->channel, lane->run, strlen(lane->run), &lane->run_fd, lane->run_fd >= 0 ? 1 : 0);
	lane->running = true;
	drop_run(lane);
}

static void on_error(struct pool *pool, struct lane *lane, const cJSON *error)
{
	const char *message = json_text_of(error, "message");
	int64_t line = 0;

	json_integer(json_member(error, "line"), &line);
	lane->running = false;
	blame(lane, "raised", message == NULL ? "the reference failed" : message, line,
	      cJSON_IsTrue(json_member(error, "accident")));
	if (cJSON_IsTrue(json_member(error, "fatal")))
		drop_child(pool, lane);
}

/* The child cannot map device memory: from now on every lane goes through the host. The case begins anew. */
static void on_unmapped(struct pool *pool, struct lane *lane, const char *why)
{
	trace("pool", "CUDA IPC is refused (%s): tensors go through the host", why);
	pool->ipc_refused = true;
	drop_child(pool, lane);
	forget_answers(lane);
	lane->phase = LANE_WAITING;
}

static void on_child_line(struct pool *pool, struct lane *lane, const char *line, size_t length)
{
	const struct json_text text = {"runner", line, length, 1};
	cJSON *message = json_parse(&text, NULL);
	const cJSON *error = json_member(message, "error");
	const char *unmapped = json_text_of(message, "unmapped");
	bool expected = lane->loaded ? lane->running : true;

	if (expected && cJSON_IsObject(error)) {
		on_error(pool, lane, error);
	} else if (!lane->loaded && cJSON_IsTrue(json_member(message, "loaded"))) {
		lane->loaded = lane->work->loaded = true;
		forward_run(lane);
	} else if (lane->running && unmapped != NULL && !lane->staged) {
		on_unmapped(pool, lane, unmapped);
	} else if (lane->running && cJSON_IsArray(json_member(message, "ran"))) {
		lane->running = false;
		ask_judge(lane, line, length);
	} else {
		blame_child(pool, lane, "crashed", "the reference's process sent something that is no answer: it writes to "
		                                   "descriptors that are not its own, or answers out of turn");
	}
	cJSON_Delete(message);
}

static const char *child_end(const struct child *child, struct arena *arena, const struct lane *lane)
{
	const char *doing = lane->loaded ? "while it ran" : "while the reference was loading";

	if (child->shut)
		return arena_printf(arena, "the reference's process closed the descriptor on which it answers, %s", doing);
	if (child->lost)
		return arena_printf(arena, "the reference's process was ended together with its parent, %s", doing);
	return arena_printf(arena, "the reference's process ended by %s, %s", process_end(child->status).text, doing);
}

static void on_child_end(struct pool *pool, struct lane *lane)
{
	struct child *child = lane->child;
	bool killed = child->lost || (!child->shut && process_was_killed(child->status));
	struct arena arena = {0};

	if (killed && !lane->work->alone) {
		drop_child(pool, lane);
		retry_alone(pool, lane);
	} else {
		blame_child(pool, lane, "crashed", child_end(child, &arena, lane));
	}
	arena_free(&arena);
}

/* A child that ends while the judge has what it needs of it has done nothing wrong yet. */
static bool child_is_needed(const struct lane *lane)
{
	return !lane->blamed && (!lane->loaded || lane->running || lane->run != NULL);
}

static void read_child(struct pool *pool, struct lane *lane)
{
	int64_t now = clock_ms();
	enum child_event event = CHILD_LINE;
	size_t length;
	char *line;

	while (lane->child != NULL && event == CHILD_LINE) {
		event = child_next(lane->child, now, &line, &length);
		if (event == CHILD_LINE)
			on_child_line(pool, lane, line, length);
		else if (event == CHILD_BABBLES)
			blame_child(pool, lane, "crashed", "the reference's process sent a line without end in place of an answer");
		else if (event == CHILD_ENDED && child_is_needed(lane))
			on_child_end(pool, lane);
	}
}

/* ---- what a judge says ---- */

/* -1: no judge can be had. */
static int on_hello(struct pool *pool, struct lane *lane, const char *line, size_t length, struct err *err)
{
	const struct json_text text = {"judge", line, length, 1};
	cJSON *message = json_parse(&text, err);
	const cJSON *hello = json_member(message, "judge");
	const char *refused = json_text_of(message, "refused"), *class_name = json_text_of(hello, "class");
	int rc = 0;

	if (class_name != NULL) {
		snprintf(pool->device_class, sizeof pool->device_class, "%s", class_name);
		lane->up = true;
		pool->judge_failures = 0;
	} else {
		rc = refused == NULL ? err_set(err, "the judge says what nobody understands: %s", err_show(line).text)
		                     : err_set(err, "%s", refused);
	}
	cJSON_Delete(message);
	return rc;
}

static void on_judge_line(struct pool *pool, struct lane *lane, char *line, size_t length)
{
	int fd = channel_take_fd(&lane->channel);

	lane->owed--;
	if (lane->stale > 0) {
		lane->stale--;
		if (fd >= 0)
			close(fd);
	} else if (strncmp(line, "{\"run\":", 7) == 0) {
		drop_run(lane);
		lane->run = copy_text(line);
		lane->run_fd = fd;
		forward_run(lane);
	} else {
		take_verdict(pool, lane, line, length);
	}
}

static int read_judge(struct pool *pool, struct lane *lane, struct err *err)
{
	size_t length;
	char *line;

	channel_flush(&lane->channel);
	while (lane->channel.fd >= 0) {
		while ((line = channel_line(&lane->channel, &length)) != NULL)
			if (lane->up)
				on_judge_line(pool, lane, line, length);
			else if (on_hello(pool, lane, line, length, err) != 0)
				return -1;
		switch (channel_read(&lane->channel)) {
		case CHANNEL_DATA:
			break;
		case CHANNEL_EMPTY:
			return 0;
		default:
			channel_close(&lane->channel);
			process_kill(&lane->judge);
		}
	}
	return 0;
}

/* From now on there is no judge here; once it is reaped, another is started when it is wanted. */
static void kill_judge(struct pool *pool, struct lane *lane)
{
	process_kill(&lane->judge);
	channel_close(&lane->channel);
	lane->up = false;
	lane->up_deadline = 0;
	lane->owed = lane->stale = 0;
	drop_child(pool, lane); /* it shares an arena with nobody */
}

/* -1: judges do not come up at all. */
static int on_judge_end(struct pool *pool, struct lane *lane, int status, struct err *err)
{
	bool stillborn = !lane->up && lane->up_deadline != 0, judging = lane->owed > 0;
	struct arena arena = {0};

	trace("pool", "judge: %s", process_end(status).text);
	kill_judge(pool, lane);
	if (stillborn && pool->judge_failures++ >= JUDGE_FAILURES)
		return err_set(err, "the judge does not come up: it ended by %s", process_end(status).text);
	if (lane->phase == LANE_WORKING && !lane->work->alone)
		retry_alone(pool, lane);
	else if (lane->phase == LANE_WORKING)
		verdict_without_judge(pool, lane, process_was_killed(status) ? REASON_CRASHED : REASON_GROUND_TRUTH,
		                      arena_printf(&arena, "the judge ended by %s while it %s this case, twice",
		                                   process_end(status).text, judging ? "judged" : "waited in"));
	arena_free(&arena);
	return 0;
}

/* ---- the clock ---- */

static void on_late(struct pool *pool, struct lane *lane)
{
	struct arena arena = {0};
	double limit = lane->blamed ? BLAME_MS / 1000.0 : pool->timeout_s;

	if (lane->blamed || (lane->loaded && !lane->running && lane->child != NULL)) {
		kill_judge(pool, lane);
		verdict_without_judge(pool, lane, REASON_TIMEOUT,
		                      arena_printf(&arena, "the judge did not come to a verdict within %g s", limit));
	} else {
		blame_child(pool, lane, "timeout",
		            arena_printf(&arena, "the reference did not %s within %g s", lane->loaded ? "answer" : "load", limit));
	}
	arena_free(&arena);
}

static int check_clock(struct pool *pool, struct lane *lane, int64_t now, struct err *err)
{
	if (lane->phase == LANE_WORKING && now >= lane->deadline)
		on_late(pool, lane);
	if (lane->judge.pid != 0 && !lane->up && lane->channel.fd >= 0 && now >= lane->up_deadline)
		return err_set(err, "the judge does not come up on %s", pool->device);
	if (lane->stale > 0 && now >= lane->stale_deadline) {
		kill_judge(pool, lane);
		if (lane->phase == LANE_WORKING)
			lane->phase = LANE_WAITING;
	}
	return 0;
}

static int64_t lane_deadline(const struct lane *lane)
{
	int64_t deadline = lane->phase == LANE_WORKING ? lane->deadline : INT64_MAX;

	if (lane->judge.pid != 0 && !lane->up && lane->channel.fd >= 0 && lane->up_deadline < deadline)
		deadline = lane->up_deadline;
	return lane->stale > 0 && lane->stale_deadline < deadline ? lane->stale_deadline : deadline;
}

static void arm_timer(struct pool *pool)
{
	int64_t deadline = crew_deadline(&pool->crew);
	struct itimerspec spec = {0};

	for (int i = 0; i < pool->lane_count; i++) {
		int64_t of_lane = lane_deadline(&pool->lanes[i]);

		deadline = of_lane < deadline ? of_lane : deadline;
	}
	if (deadline != INT64_MAX) {
		spec.it_value.tv_sec = deadline / 1000;
		spec.it_value.tv_nsec = deadline % 1000 * 1000000 + 1; /* all zero would disarm it */
	}
	timerfd_settime(pool->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* ---- scheduling ---- */

static bool any_alone(const struct pool *pool)
{
	for (int i = 0; i < pool->lane_count; i++)
		if (pool->lanes[i].work != NULL && pool->lanes[i].work->alone)
			return true;
	return false;
}

/* An idle lane, one with a judge that has nothing left to do if there is one. */
static struct lane *idle_lane(struct pool *pool)
{
	struct lane *any = NULL;

	for (int i = 0; i < pool->lane_count; i++) {
		struct lane *lane = &pool->lanes[i];

		if (lane->phase != LANE_IDLE)
			continue;
		if (lane->up && lane->stale == 0)
			return lane;
		if (any == NULL || lane->up)
			any = lane;
	}
	return any;
}

static void hand_out(struct pool *pool)
{
	struct lane *lane;

	while (!any_alone(pool) && (lane = idle_lane(pool)) != NULL) {
		struct work *work = pop(&pool->queue);

		if (work == NULL && !others_at_work(pool, lane))
			work = pop(&pool->alone);
		if (work == NULL)
			return;
		lane->work = work;
		lane->phase = LANE_WAITING;
	}
}

/* Starts what a waiting lane lacks, or the case. */
static int advance(struct pool *pool, struct lane *lane, struct err *err)
{
	struct child *child;

	if (lane->phase != LANE_WAITING)
		return 0;
	if (lane->judge.pid == 0)
		return start_judge(pool, lane, err);
	if (!lane->up)
		return 0;
	if (lane->work->failure == NULL && lane->child == NULL) {
		if ((child = crew_take(&pool->crew)) == NULL)
			return 0;
		bind_child(pool, lane, child);
	}
	begin_case(pool, lane);
	return 0;
}

/* As many spares as lanes are waiting and tasks are queued for; one more while nothing runs, to be kept warm. */
static int spares_wanted(const struct pool *pool)
{
	int waiting = 0, working = 0, queued = queue_length(&pool->queue) + queue_length(&pool->alone);

	for (int i = 0; i < pool->lane_count; i++) {
		const struct lane *lane = &pool->lanes[i];

		waiting += lane->phase == LANE_WAITING && lane->work->failure == NULL && lane->child == NULL;
		working += lane->phase == LANE_WORKING;
	}
	waiting += queued;
	if (waiting == 0 && working == 0 && pool->warm)
		return 1;
	return waiting < pool->lane_count ? waiting : pool->lane_count;
}

static int schedule(struct pool *pool, struct err *err)
{
	hand_out(pool);
	for (int i = 0; i < pool->lane_count; i++)
		if (advance(pool, &pool->lanes[i], err) != 0)
			return -1;
	if (pool->warm && pool->lanes[0].judge.pid == 0 && start_judge(pool, &pool->lanes[0], err) != 0)
		return -1;
	return crew_want(&pool->crew, spares_wanted(pool), err);
}

/* ---- the face ---- */

int pool_fd(const struct pool *pool)
{
	return pool->epoll;
}

static void drain(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof count) > 0)
		;
}

int pool_dispatch(struct pool *pool, struct err *err)
{
	int64_t now = clock_ms();
	int status;

	drain(pool->wake);
	drain(pool->timer);
	if (crew_dispatch(&pool->crew, now, err) != 0)
		return -1;
	for (int i = 0; i < pool->lane_count; i++) {
		struct lane *lane = &pool->lanes[i];

		if (read_judge(pool, lane, err) != 0)
			return -1;
		if (process_ended(&lane->judge, &status) && on_judge_end(pool, lane, status, err) != 0)
			return -1;
		read_child(pool, lane);
		if (check_clock(pool, lane, now, err) != 0)
			return -1;
	}
	if (schedule(pool, err) != 0)
		return -1;
	arm_timer(pool);
	return 0;
}

/* Accidents are not to be remembered: the same case may end otherwise tomorrow. */
static bool worth_keeping(const struct result *result, const struct verdict *verdict)
{
	switch (verdict->reason) {
	case REASON_MEMORY:
	case REASON_MISSING_BLOB:
	case REASON_UNSUPPORTED_DEVICE:
	case REASON_CRASHED:
	case REASON_TIMEOUT:
	case REASON_GROUND_TRUTH:
		return false;
	default:
		return !result->accident;
	}
}

bool pool_next(struct pool *pool, struct arena *arena, struct pool_result *out)
{
	struct result *result = pool->first;
	struct verdict *verdict = arena_alloc(arena, sizeof *verdict);
	const struct verdict *parsed;
	struct err err = {""};

	if (result == NULL)
		return false;
	pool->first = result->next;
	if (pool->first == NULL)
		pool->last = &pool->first;
	pool->pending--;
	parsed = verdict_parse(result->text, result->length, arena, &err);
	if (parsed != NULL)
		*verdict = *parsed;
	else
		*verdict = (struct verdict){.status = STATUS_ERROR, .reason = REASON_GROUND_TRUTH, .device = pool->device,
		                            .message = arena_string(arena, err.text)};
	verdict->torch = pool->crew.torch[0] == '\0' ? NULL : arena_string(arena, pool->crew.torch);
	verdict->cuda = pool->crew.cuda[0] == '\0' ? NULL : arena_string(arena, pool->crew.cuda);
	verdict->seconds = result->seconds;
	verdict->time = result->time;
	*out = (struct pool_result){result->owner, result->job, verdict, worth_keeping(result, verdict),
	                            result->printed == NULL ? NULL : arena_string(arena, result->printed)};
	free_result(result);
	return true;
}

int pool_pending(const struct pool *pool)
{
	return pool->pending;
}

const char *pool_device_class(const struct pool *pool)
{
	return pool->device_class[0] == '\0' ? NULL : pool->device_class;
}

const char *pool_torch(const struct pool *pool)
{
	return pool->crew.torch[0] == '\0' ? NULL : pool->crew.torch;
}

static void cancel_queue(struct pool *pool, struct queue *queue, const void *owner)
{
	struct work **at = &queue->first;

	while (*at != NULL) {
		struct work *work = *at;

		if (work->task.owner == owner) {
			*at = work->next;
			pool->pending -= work->task.job_count - work->job;
			free_work(work);
		} else {
			at = &work->next;
		}
	}
}

static void cancel_results(struct pool *pool, const void *owner)
{
	struct result **at = &pool->first;

	while (*at != NULL) {
		struct result *result = *at;

		if (result->owner == owner) {
			*at = result->next;
			pool->pending--;
			free_result(result);
		} else {
			at = &result->next;
		}
	}
	pool->last = at;
}

void pool_cancel(struct pool *pool, const void *owner)
{
	cancel_queue(pool, &pool->queue, owner);
	cancel_queue(pool, &pool->alone, owner);
	cancel_results(pool, owner);
	for (int i = 0; i < pool->lane_count; i++) {
		struct lane *lane = &pool->lanes[i];

		if (lane->work == NULL || lane->work->task.owner != owner)
			continue;
		pool->pending -= lane->work->task.job_count - lane->work->job;
		forget_answers(lane);
		finish_work(pool, lane);
	}
	wake(pool);
}

static void close_lane(struct pool *pool, struct lane *lane, int64_t deadline)
{
	int status;

	while (lane->judge.pid != 0 && !process_ended(&lane->judge, &status) && clock_ms() < deadline) {
		struct pollfd poll_judge = {lane->judge.pidfd, POLLIN, 0};

		poll(&poll_judge, 1, 10);
	}
	if (lane->judge.pidfd >= 0)
		close(lane->judge.pidfd);
	channel_close(&lane->channel);
	drop_run(lane);
	free(lane->printed);
	if (lane->work != NULL)
		free_work(lane->work);
	(void)pool;
}

void pool_close(struct pool *pool)
{
	int64_t deadline = clock_ms() + 1000;
	struct work *work;

	if (pool == NULL)
		return;
	for (int i = 0; i < pool->lane_count; i++)
		process_kill(&pool->lanes[i].judge);
	crew_close(&pool->crew);
	for (int i = 0; i < pool->lane_count; i++)
		close_lane(pool, &pool->lanes[i], deadline);
	while ((work = pop(&pool->queue)) != NULL || (work = pop(&pool->alone)) != NULL)
		free_work(work);
	while (pool->first != NULL) {
		struct result *result = pool->first;

		pool->first = result->next;
		free_result(result);
	}
	prctl(PR_SET_CHILD_SUBREAPER, pool->subreaper);
	prctl(PR_SET_DUMPABLE, pool->dumpable);
	free_pool(pool);
}

/* ---- asking for a device ---- */

static int read_probe(int fd, struct buf *out)
{
	struct pollfd poll_fd = {fd, POLLIN, 0};
	char bytes[512];
	ssize_t got = 1;

	while (got > 0 && out->length < PROBE_ANSWER) {
		if (poll(&poll_fd, 1, PROBE_MS) != 1)
			return -1;
		got = read(fd, bytes, sizeof bytes);
		if (got > 0)
			buf_add(out, bytes, (size_t)got);
	}
	return out->length > 0 ? 0 : -1;
}

static int understand_probe(const struct buf *answer, char *class_name, size_t size, char *product, size_t product_size,
                            struct err *err)
{
	const struct json_text text = {"judge", answer->data, answer->length, 1};
	cJSON *message = json_parse(&text, err);
	const char *found = json_text_of(message, "class"), *name = json_text_of(message, "product");
	const char *refused = json_text_of(message, "refused");
	int rc = -1;

	if (found != NULL && name != NULL) {
		snprintf(class_name, size, "%s", found);
		snprintf(product, product_size, "%s", name);
		rc = 0;
	} else if (refused != NULL) {
		err_set(err, "%s", refused);
	}
	cJSON_Delete(message);
	return rc;
}

int pool_probe_device(const char *device, char *class_name, size_t size, char *product, size_t product_size,
                      struct err *err)
{
	const char *words[] = {"reftest", "judge", "--probe", device, NULL};
	struct process judge;
	struct buf answer = {0};
	int ends[2], status = 0, rc;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(err, "no pipe for a worker");
	const int fds[] = {-1, ends[1], STDERR_FILENO};

	rc = launch_judge(&judge, words, environ, fds, 3, err);
	close(ends[1]);
	if (rc == 0 && read_probe(ends[0], &answer) != 0) {
		rc = -1;
		process_kill(&judge);
	}
	close(ends[0]);
	while (judge.pid != 0 && waitpid(judge.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (judge.pidfd >= 0)
		close(judge.pidfd);
	if (rc != 0 && judge.pid != 0)
		err_set(err, "a judge asked about %s did not answer: it ended by %s", device, process_end(status).text);
	if (rc == 0)
		rc = understand_probe(&answer, class_name, size, product, product_size, err);
	buf_free(&answer);
	return rc;
}
