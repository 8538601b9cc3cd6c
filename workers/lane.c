/* For each case the judge is asked, its {"run": …} goes to the runner child, the child's answer to the judge, until the
 * judge gives a verdict; the child loads the reference while the judge makes the first inputs. What goes wrong is told to
 * the judge too ({"blame": …}), which makes a verdict of it.
 *
 *            work                 {"case"}            {"run"}             {"ran"}
 *   IDLE ──────────▶ WAITING ──────────────▶ WORKING ─────────▶ (child) ─────────▶ (judge) ──▶ verdict ──▶ next case
 *                    for a judge and                    ◀───────────────────────────┘ second run
 *                    a spare child
 *
 * The judge answers each message that wants an answer in order, so a case can be given up at any time: the answers
 * still owed for it are counted as stale and passed over. A child that misbehaves, dies or is late is killed, and the
 * next case gets a fresh one. A case whose judge or child was ended by somebody else (another reference, the kernel for
 * want of memory) is tried once more, alone: when no other lane is at work. */
#include "workers/lane.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/trace.h"
#include "workers/lane_parts.h"

enum {
	BLAME_MS = 30000,    /* for a judge to make a verdict of a failure */
	JUDGE_FAILURES = 2,
	ALONE_MS = 5000,     /* for spares to leave the device to a case that is to be alone */
	MESSAGE_MAX = 64 << 10 /* bytes of a runner's error message that go into a verdict */
};

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

/* The verdict on the case under way. */
static void add_result(struct yard *yard, struct lane *lane, const char *text, size_t length)
{
	struct result result = {.owner = lane->work->task.owner, .job = current_job(lane), .accident = lane->accident,
	                        .printed = lane->printed, .seconds = now_s() - lane->started, .time = (int64_t)time(NULL),
	                        .reached = lane->work->reached};

	if (result.printed == NULL && lane->child != NULL)
		result.printed = take_printed(lane->child);
	lane->printed = NULL;
	results_add(&yard->results, &result, text, length);
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
static void drop_child(struct yard *yard, struct lane *lane)
{
	drop_run(lane);
	if (lane->child != NULL) {
		free(lane->printed);
		lane->printed = take_printed(lane->child);
		crew_drop(&yard->crew, lane->child);
	}
	lane->child = NULL;
	lane->loaded = lane->running = false;
}

static int64_t largest_case(const struct task *task)
{
	int64_t most = 0;

	for (int i = 0; i < task->job_count; i++) {
		int64_t bytes = job_arena_bytes(task->jobs[i]);

		most = bytes > most && bytes < (int64_t)1 << 52 ? bytes : most;
	}
	return most;
}

/* A fresh child gets the reference, the judge a fresh arena to share with it. */
static void bind_child(struct yard *yard, struct lane *lane, struct child *child)
{
	struct buf text = {0};

	lane->child = child;
	lane->loaded = lane->running = false;
	lane->staged = yard->staged || yard->ipc_refused;
	buf_text(&text, "{\"load\":");
	buf_json_string(&text, lane->work->task.reference);
	buf_text(&text, ",\"name\":");
	buf_json_string(&text, lane->work->task.name);
	buf_text(&text, "}");
	channel_send(&child->channel, text.data, text.length, NULL, 0);
	buf_clear(&text);
	buf_printf(&text, "{\"begin\":{\"bytes\":%lld,\"staged\":%s}}", (long long)largest_case(&lane->work->task),
	           lane->staged ? "true" : "false");
	lane_judge_tell(lane, text.data, text.length);
	buf_free(&text);
}

/* ---- cases ---- */

static int64_t case_deadline(const struct yard *yard)
{
	double ms = yard->timeout_s * 1000;

	return ms > 0 && ms < 1e15 ? clock_ms() + (int64_t)ms : INT64_MAX;
}

static void ask_verdict_on_failure(struct lane *lane, const char *failure, bool accident)
{
	struct buf text = {0};

	lane_judge_forget(lane);
	buf_printf(&text, "{\"blame\":%s,\"job\":", failure);
	job_write(current_job(lane), &text);
	buf_text(&text, "}");
	lane->blamed = true;
	lane->accident = accident;
	lane->deadline = clock_ms() + BLAME_MS;
	lane_judge_ask(lane, text.data, text.length);
	buf_free(&text);
}

static void begin_case(struct yard *yard, struct lane *lane)
{
	struct buf text = {0};

	lane->phase = LANE_WORKING;
	lane->asked = lane->blamed = lane->accident = false;
	free(lane->printed);
	lane->printed = NULL;
	lane->started = now_s();
	lane->deadline = case_deadline(yard);
	if (lane->work->failure != NULL) {
		ask_verdict_on_failure(lane, lane->work->failure, lane->work->accident);
		return;
	}
	buf_text(&text, "{\"case\":");
	job_write(current_job(lane), &text);
	buf_text(&text, "}");
	lane_judge_ask(lane, text.data, text.length);
	buf_free(&text);
}

static void finish_work(struct yard *yard, struct lane *lane)
{
	static const char end[] = "{\"end\":true}";

	drop_child(yard, lane);
	lane_judge_tell(lane, end, sizeof end - 1);
	work_free(lane->work);
	lane->work = NULL;
	lane->phase = LANE_IDLE;
	lane->alone_by = 0;
}

/* On to the next case of the lane's work, or to none. One that cannot be loaded needs no child. */
static void next_case(struct yard *yard, struct lane *lane)
{
	drop_run(lane);
	if (lane->child != NULL && lane->child->ended)
		drop_child(yard, lane);
	if (++lane->work->job >= lane->work->task.job_count)
		finish_work(yard, lane);
	else if (lane->up && (lane->child != NULL || lane->work->failure != NULL))
		begin_case(yard, lane);
	else
		lane->phase = LANE_WAITING;
}

/* The case is tried again later, with nobody else at work. */
static void retry_alone(struct yard *yard, struct lane *lane)
{
	struct task one = lane->work->task;
	struct work *work;

	one.jobs += lane->work->job;
	one.job_count = 1;
	work = work_new(&one);
	work->alone = true;
	queue_push(&yard->alone, work);
	trace("lane", "%s %s: to be tried again alone", one.name, one.jobs[0]->id);
	lane_judge_forget(lane);
	next_case(yard, lane);
}

bool yard_busy(const struct yard *yard, const struct lane *except)
{
	for (int i = 0; i < yard->lane_count; i++)
		if (&yard->lanes[i] != except && yard->lanes[i].phase != LANE_IDLE)
			return true;
	return false;
}

static bool lacks_memory(const char *text, size_t length)
{
	struct arena arena = {0};
	const struct verdict *verdict = strstr(text, "memory") == NULL ? NULL : verdict_parse(text, length, &arena, NULL);
	bool lacks = verdict != NULL && verdict->reason == REASON_MEMORY;

	arena_free(&arena);
	return lacks;
}

/* Spares have contexts there: on a GPU each holds memory that a large case may need. */
static bool spares_crowd(const struct yard *yard)
{
	return strcmp(yard->device, "cpu") != 0 && crew_idle(&yard->crew) > 0;
}

/* Too little memory is only believed when nobody else holds some. */
static bool is_crowded_out(const struct yard *yard, const struct lane *lane, const char *text, size_t length)
{
	return !lane->work->alone && (yard_busy(yard, lane) || spares_crowd(yard)) && lacks_memory(text, length);
}

static void take_verdict(struct yard *yard, struct lane *lane, const char *text, size_t length)
{
	if (is_crowded_out(yard, lane, text, length)) {
		retry_alone(yard, lane);
		return;
	}
	add_result(yard, lane, text, length);
	next_case(yard, lane);
}

/* A verdict that no judge can make, because it is the judge that failed. */
static void verdict_without_judge(struct yard *yard, struct lane *lane, enum reason reason, const char *message)
{
	const struct verdict verdict = {.status = STATUS_ERROR, .reason = reason, .message = message, .device = yard->device,
	                                .device_class = yard->device_class[0] == '\0' ? "unknown" : yard->device_class};
	struct buf text = {0};

	verdict_write(&verdict, &text);
	lane->accident = true;
	add_result(yard, lane, text.data, text.length);
	buf_free(&text);
	next_case(yard, lane);
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

	trace("lane", "%s %s: %s", lane->work->task.name, current_job(lane)->id, message);
	drop_run(lane);
	ask_verdict_on_failure(lane, failure, accident);
	if (!lane->loaded && !lane->work->loaded) {
		lane->work->failure = failure;
		lane->work->accident = accident;
	} else {
		free(failure);
	}
}

static void blame_child(struct yard *yard, struct lane *lane, const char *reason, const char *message)
{
	blame(lane, reason, message, 0, true);
	drop_child(yard, lane);
}

static void forward_run(struct lane *lane)
{
	if (lane->run == NULL || !lane->loaded || lane->running || lane->child == NULL)
		return;
	channel_send(&lane->child->channel, lane->run, strlen(lane->run), &lane->run_fd, lane->run_fd >= 0 ? 1 : 0);
	lane->running = lane->asked = true;
	drop_run(lane);
}

static void on_error(struct yard *yard, struct lane *lane, const cJSON *error)
{
	const char *message = json_text_of(error, "message");
	int64_t line = 0;

	json_integer(json_member(error, "line"), &line);
	lane->running = false;
	blame(lane, "raised", message == NULL ? "the reference failed" : message, line,
	      cJSON_IsTrue(json_member(error, "accident")));
	if (cJSON_IsTrue(json_member(error, "fatal")))
		drop_child(yard, lane);
}

/* The child cannot map device memory: from now on every lane goes through the host. The case begins anew. */
static void on_unmapped(struct yard *yard, struct lane *lane, const char *why)
{
	trace("lane", "CUDA IPC is refused (%s): tensors go through the host", why);
	yard->ipc_refused = true;
	drop_child(yard, lane);
	lane_judge_forget(lane);
	lane->phase = LANE_WAITING;
}

static void on_child_line(struct yard *yard, struct lane *lane, const char *line, size_t length)
{
	const struct json_text text = {"runner", line, length, 1};
	cJSON *message = json_parse(&text, NULL);
	const cJSON *error = json_member(message, "error");
	const char *unmapped = json_text_of(message, "unmapped");
	const char *reached = json_text_of(message, "reached");
	bool expected = lane->loaded ? lane->running : true;

	if (reached != NULL && lane->work != NULL && lane->work->reached == NULL)
		lane->work->reached = strdup(reached);
	if (expected && cJSON_IsObject(error)) {
		on_error(yard, lane, error);
	} else if (!lane->loaded && cJSON_IsTrue(json_member(message, "loaded"))) {
		lane->loaded = lane->work->loaded = true;
		forward_run(lane);
	} else if (lane->running && unmapped != NULL && !lane->staged && strcmp(yard->device, "cpu") != 0) {
		on_unmapped(yard, lane, unmapped);
	} else if (lane->running && cJSON_IsArray(json_member(message, "ran"))) {
		lane->running = false;
		lane_judge_ask(lane, line, length);
	} else {
		blame_child(yard, lane, "crashed", "the reference's process sent something that is no answer: it writes to "
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

static void on_child_end(struct yard *yard, struct lane *lane)
{
	struct child *child = lane->child;
	bool killed = child->lost || (!child->shut && process_was_killed(child->status));
	struct arena arena = {0};

	if (killed && !lane->work->alone) {
		drop_child(yard, lane);
		retry_alone(yard, lane);
	} else {
		blame_child(yard, lane, "crashed", child_end(child, &arena, lane));
	}
	arena_free(&arena);
}

/* A child that ends while the judge has what it needs of it has done nothing wrong yet. */
static bool child_is_needed(const struct lane *lane)
{
	return !lane->blamed && (!lane->loaded || lane->running || lane->run != NULL);
}

static void read_child(struct yard *yard, struct lane *lane)
{
	int64_t now = clock_ms();
	enum child_event event = CHILD_LINE;
	size_t length;
	char *line;

	while (lane->child != NULL && event == CHILD_LINE) {
		event = child_next(lane->child, now, &line, &length);
		if (event == CHILD_LINE)
			on_child_line(yard, lane, line, length);
		else if (event == CHILD_BABBLES)
			blame_child(yard, lane, "crashed", "the reference's process sent a line without end in place of an answer");
		else if (event == CHILD_ENDED && child_is_needed(lane))
			on_child_end(yard, lane);
	}
}

/* ---- what a judge says ---- */

static void on_judge_line(struct yard *yard, struct lane *lane, char *line, size_t length)
{
	int fd = channel_take_fd(&lane->channel);

	lane->owed--;
	if (lane->stale > 0) {
		lane->stale--;
		if (fd >= 0)
			close(fd);
	} else if (strncmp(line, "{\"run\":", 7) == 0) {
		drop_run(lane);
		lane->run = strdup(line);
		if (lane->run == NULL)
			die_no_memory();
		lane->run_fd = fd;
		forward_run(lane);
	} else if (strncmp(line, "{\"provide\":", 11) == 0) {
		lane_errand_take(yard, lane, line, fd);
	} else {
		take_verdict(yard, lane, line, length);
	}
}

static int read_judge(struct yard *yard, struct lane *lane, struct err *err)
{
	size_t length;
	char *line;

	channel_flush(&lane->channel);
	while (lane->channel.fd >= 0) {
		while ((line = channel_line(&lane->channel, &length)) != NULL)
			if (lane->up)
				on_judge_line(yard, lane, line, length);
			else if (lane_judge_hello(yard, lane, line, length, err) != 0)
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
static void kill_judge(struct yard *yard, struct lane *lane)
{
	lane_errand_drop(yard, lane);
	process_kill(&lane->judge);
	channel_close(&lane->channel);
	lane->up = false;
	lane->up_deadline = 0;
	lane->owed = lane->stale = 0;
	drop_child(yard, lane); /* it shares an arena with nobody */
}

/* -1: judges do not come up at all. */
static int on_judge_end(struct yard *yard, struct lane *lane, int status, struct err *err)
{
	bool stillborn = !lane->up && lane->up_deadline != 0, judging = lane->owed > 0;
	struct arena arena = {0};

	trace("lane", "judge: %s", process_end(status).text);
	kill_judge(yard, lane);
	if (stillborn && yard->judge_failures++ >= JUDGE_FAILURES)
		return err_set(err, "the judge does not come up: it ended by %s", process_end(status).text);
	if (lane->phase == LANE_WORKING && !lane->work->alone)
		retry_alone(yard, lane);
	else if (lane->phase == LANE_WORKING)
		verdict_without_judge(yard, lane, process_was_killed(status) ? REASON_CRASHED : REASON_GROUND_TRUTH,
		                      arena_printf(&arena, "the judge ended by %s while it %s this case, twice",
		                                   process_end(status).text, judging ? "judged" : "waited in"));
	arena_free(&arena);
	return 0;
}

/* ---- the clock ---- */

static void on_late(struct yard *yard, struct lane *lane)
{
	struct arena arena = {0};
	double limit = lane->blamed ? BLAME_MS / 1000.0 : yard->timeout_s;

	if (lane->blamed || (lane->loaded && !lane->running && lane->child != NULL)) {
		kill_judge(yard, lane);
		verdict_without_judge(yard, lane, REASON_TIMEOUT,
		                      arena_printf(&arena, "%s within %g s",
		                                   lane->blamed || lane->asked ? "the judge came to no verdict"
		                                                               : "the inputs of the case were not made",
		                                   limit));
	} else {
		blame_child(yard, lane, "timeout",
		            arena_printf(&arena, "the reference did not %s within %g s", lane->loaded ? "answer" : "load", limit));
	}
	arena_free(&arena);
}

static int check_clock(struct yard *yard, struct lane *lane, int64_t now, struct err *err)
{
	if (lane->phase == LANE_WORKING && now >= lane->deadline)
		on_late(yard, lane);
	if (lane->judge.pid != 0 && !lane->up && lane->channel.fd >= 0 && now >= lane->up_deadline)
		return err_set(err, "the judge does not come up on %s", yard->device);
	if (lane->stale > 0 && !lane->blamed && now >= lane->stale_deadline) {
		kill_judge(yard, lane);
		if (lane->phase == LANE_WORKING)
			lane->phase = LANE_WAITING;
	}
	return 0;
}

int64_t lane_deadline(const struct lane *lane)
{
	int64_t deadline = lane->phase == LANE_WORKING ? lane->deadline : lane->alone_by != 0 ? lane->alone_by : INT64_MAX;

	if (lane->judge.pid != 0 && !lane->up && lane->channel.fd >= 0 && lane->up_deadline < deadline)
		deadline = lane->up_deadline;
	return lane->stale > 0 && !lane->blamed && lane->stale_deadline < deadline ? lane->stale_deadline : deadline;
}


/* ---- the face ---- */

void lane_open(struct lane *lane)
{
	*lane = (struct lane){.judge = {0, -1}, .run_fd = -1, .request_fd = -1};
	channel_open(&lane->channel, -1);
}

void lane_give(struct lane *lane, struct work *work)
{
	lane->work = work;
	lane->phase = LANE_WAITING;
}

int lane_dispatch(struct yard *yard, struct lane *lane, int64_t now, struct err *err)
{
	int status;

	if (read_judge(yard, lane, err) != 0)
		return -1;
	if (process_ended(&lane->judge, &status) && on_judge_end(yard, lane, status, err) != 0)
		return -1;
	read_child(yard, lane);
	return check_clock(yard, lane, now, err);
}

int lane_warm(struct yard *yard, struct lane *lane, struct err *err)
{
	return lane->judge.pid == 0 ? lane_judge_start(yard, lane, err) : 0;
}

/* false: spares that crowd a case which is to be alone have been sent away, and are not gone yet. */
static bool has_room(struct yard *yard, struct lane *lane)
{
	int64_t now = clock_ms();

	if (!lane->work->alone || !spares_crowd(yard) || (lane->alone_by != 0 && now >= lane->alone_by)) {
		lane->alone_by = 0;
		return true;
	}
	crew_thin(&yard->crew);
	if (crew_idle(&yard->crew) <= 1) { /* the one that is to serve it */
		lane->alone_by = 0;
		return true;
	}
	if (lane->alone_by == 0)
		lane->alone_by = now + ALONE_MS;
	return false;
}

int lane_advance(struct yard *yard, struct lane *lane, struct err *err)
{
	struct child *child;

	if (lane->phase != LANE_WAITING)
		return 0;
	if (lane->judge.pid == 0)
		return lane_judge_start(yard, lane, err);
	if (!lane->up)
		return 0;
	if (lane->work->failure == NULL && lane->child == NULL) {
		if (!has_room(yard, lane) || (child = crew_take(&yard->crew)) == NULL)
			return 0;
		bind_child(yard, lane, child);
	}
	begin_case(yard, lane);
	return 0;
}

void lane_cancel(struct yard *yard, struct lane *lane)
{
	lane_errand_drop(yard, lane);
	lane_judge_forget(lane);
	finish_work(yard, lane);
}

void lane_close(struct lane *lane, int64_t deadline_ms)
{
	int status;

	while (lane->judge.pid != 0 && !process_ended(&lane->judge, &status) && clock_ms() < deadline_ms) {
		struct pollfd poll_judge = {lane->judge.pidfd, POLLIN, 0};

		poll(&poll_judge, 1, 10);
	}
	if (lane->judge.pidfd >= 0)
		close(lane->judge.pidfd);
	channel_close(&lane->channel);
	drop_run(lane);
	free(lane->request);
	if (lane->request_fd >= 0)
		close(lane->request_fd);
	free(lane->printed);
	if (lane->work != NULL)
		work_free(lane->work);
}
