/* lane_truth - runs a ground truth that is Python source in the dataset, in a runner of its own. This runner never sees
 * the reference or its outputs, and shares no memory with the reference's runner. The runner is kept until the lane's
 * work ends or another ground truth is requested. While this runner works, the timeout of the case is paused, and a
 * timeout of the same length applies to the runner. */
#include "workers/pool/lane_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/trace.h"

static void drop_request(struct lane_truth *truth)
{
	free(truth->run);
	truth->run = NULL;
	if (truth->run_fd >= 0)
		close(truth->run_fd);
	truth->run_fd = -1;
	truth->running = false;
	truth->deadline = INT64_MAX;
}

void lane_truth_open(struct lane *lane)
{
	lane->truth = (struct lane_truth){.run_fd = -1, .deadline = INT64_MAX};
}

static void drop_child(struct pool_shared *shared, struct lane *lane)
{
	if (lane->truth.child != NULL)
		zygote_drop(&shared->runners, lane->truth.child);
	lane->truth.child = NULL;
	lane->truth.loaded = false;
}

void lane_truth_drop(struct pool_shared *shared, struct lane *lane)
{
	drop_request(&lane->truth);
	drop_child(shared, lane);
	lane->truth.program = NULL;
}

void lane_truth_close(struct lane *lane)
{
	drop_request(&lane->truth);
}

static bool is_asked(const struct lane *lane)
{
	return lane->truth.run != NULL || lane->truth.running;
}

bool lane_truth_waits(const struct lane *lane)
{
	return lane->truth.run != NULL && lane->truth.child == NULL;
}

/* ---- answers ---- */

static void answer(struct lane *lane, const char *line)
{
	drop_request(&lane->truth);
	lane_answer_judge(lane, line);
}

static void answer_failed(struct lane *lane, const char *message, bool accident)
{
	struct buf text = {0};

	buf_text(&text, "{\"failed\":");
	buf_json_bytes(&text, message, strlen(message));
	buf_printf(&text, ",\"accident\":%s}", accident ? "true" : "false");
	answer(lane, text.data);
	buf_free(&text);
}

/* Reports that the runner of the ground truth failed, and kills it. */
static void fail(struct pool_shared *shared, struct lane *lane, const char *what, bool accident)
{
	struct arena arena = {0};
	const char *path = lane->truth.program->path;

	drop_child(shared, lane);
	answer_failed(lane, arena_printf(&arena, "%s %s", path, what), accident);
	arena_free(&arena);
}

static void forward_run(struct lane *lane)
{
	struct lane_truth *truth = &lane->truth;

	if (truth->run == NULL || !truth->loaded || truth->running)
		return;
	channel_send(&truth->child->channel, truth->run, strlen(truth->run), &truth->run_fd, truth->run_fd >= 0 ? 1 : 0);
	truth->running = true;
}

static void on_error(struct pool_shared *shared, struct lane *lane, const cJSON *error)
{
	const char *message = json_text_of(error, "message");
	bool accident = cJSON_IsTrue(json_member(error, "accident"));

	if (!lane->truth.loaded || cJSON_IsTrue(json_member(error, "fatal")))
		drop_child(shared, lane);
	answer_failed(lane, message == NULL ? "the ground truth failed" : message, accident);
}

static void on_line(struct pool_shared *shared, struct lane *lane, const char *line, size_t length)
{
	const struct json_text text = {"runner", line, length, 1};
	struct lane_truth *truth = &lane->truth;
	struct arena arena = {0};
	cJSON *message = json_parse(&text, NULL);
	const cJSON *error = json_member(message, "error");

	lane_reached(lane, arena_printf(&arena, "its ground truth %s", truth->program->path), message);
	arena_free(&arena);
	if (cJSON_IsObject(error) && (!truth->loaded || truth->running)) {
		on_error(shared, lane, error);
	} else if (!truth->loaded && cJSON_IsTrue(json_member(message, "loaded"))) {
		truth->loaded = true;
		truth->deadline = lane_case_deadline(shared);
		forward_run(lane);
	} else if (truth->running && cJSON_IsArray(json_member(message, "ran"))) {
		answer(lane, line);
	} else if (truth->running && json_text_of(message, "unmapped") != NULL) {
		drop_child(shared, lane);
		answer(lane, line);
	} else {
		fail(shared, lane, "sent an invalid answer", true);
	}
	cJSON_Delete(message);
}

static void on_end(struct pool_shared *shared, struct lane *lane)
{
	const struct child *child = lane->truth.child;
	bool killed = child->lost || child->out_of_memory || (!child->shut && process_was_killed(child->status));
	struct arena arena = {0};
	const char *end = child->shut || child->lost ? "was killed" : process_end(child->status).text;

	if (is_asked(lane))
		fail(shared, lane, arena_printf(&arena, "did not answer: its process %s%s", child->lost || child->shut ? "" :
						"terminated with ", end), killed);
	else
		drop_child(shared, lane);
	arena_free(&arena);
}

void lane_truth_dispatch(struct pool_shared *shared, struct lane *lane, int64_t now_ms)
{
	enum child_event event = CHILD_LINE;
	struct arena arena = {0};
	size_t length;
	char *line;

	while (lane->truth.child != NULL && event == CHILD_LINE) {
		event = child_next(lane->truth.child, now_ms, &line, &length);
		if (event == CHILD_LINE && is_asked(lane))
			on_line(shared, lane, line, length);
		else if (event == CHILD_LINE || (event == CHILD_BABBLES && !is_asked(lane)))
			drop_child(shared, lane); /* kills the runner, because it sent a message without a request */
		else if (event == CHILD_BABBLES)
			fail(shared, lane, "sent an unterminated line instead of an answer", true);
		else if (event == CHILD_ENDED)
			on_end(shared, lane);
	}
	if (is_asked(lane) && now_ms >= lane->truth.deadline)
		fail(shared, lane, arena_printf(&arena, "did not answer within %g s", shared->timeout_s), true);
	arena_free(&arena);
}

/* ---- requests ---- */

static const struct truth_program *program_named(const struct task *task, const char *name)
{
	for (int i = 0; i < task->program_count; i++)
		if (name != NULL && strcmp(task->programs[i].name, name) == 0)
			return &task->programs[i];
	return NULL;
}

void lane_truth_take(struct pool_shared *shared, struct lane *lane, const char *line, int fd)
{
	static const char run[] = ",\"run\":{";
	const struct json_text text = {"judge", line, strlen(line), 1};
	const char *from = strstr(line, run); /* finds the member "run": the name before this member cannot contain the
					       * text of `run`, because quotes in a name are escaped */
	cJSON *message = json_parse(&text, NULL);
	const struct truth_program *program = program_named(&lane->work->task, json_text_of(message, "truth"));
	struct buf copy = {0};

	cJSON_Delete(message);
	lane_pause_timeout(lane);
	drop_request(&lane->truth);
	lane->truth.run_fd = fd;
	if (program == NULL || from == NULL) {
		answer_failed(lane, "the pool does not have the source code of this ground truth", true);
		return;
	}
	if (program != lane->truth.program)
		drop_child(shared, lane);
	buf_printf(&copy, "{%s", from + 1); /* copies the JSON text as it is, because parsing would lose digits of the
					     * seed */
	lane->truth.program = program;
	lane->truth.run = copy.data;
	if (lane->truth.child != NULL) {
		lane->truth.deadline = lane_case_deadline(shared);
		forward_run(lane);
	}
}

/* Returns the time by which a ground truth must be loaded. A ground truth that must be compiled may take longer than a
 * case. */
static int64_t load_deadline(const struct pool_shared *shared, const struct truth_program *program)
{
	enum { COMPILE_MS = 600000 };
	int64_t deadline = lane_case_deadline(shared), compiled = clock_ms() + COMPILE_MS;

	return program->build != BUILD_NONE && deadline < compiled ? compiled : deadline;
}

int lane_truth_advance(struct pool_shared *shared, struct lane *lane, struct err *err)
{
	struct lane_truth *truth = &lane->truth;
	struct child *child = lane_truth_waits(lane) ? zygote_take(&shared->runners, false) : NULL;

	if (child == NULL)
		return 0;
	trace("lane", "%s: %s runs", lane->work->task.name, truth->program->path);
	truth->child = child;
	truth->deadline = load_deadline(shared, truth->program);
	return lane_load_truth(shared, lane, child, truth->program, err);
}
