/* lane_maker - the maker of a lane: a process that runs the definition's code for inputs.
 *
 * The code is untrusted, so it runs in a child of the zygote, in the same sandbox as a reference. This child never runs
 * the reference, and it is killed before the reference gets the inputs. Therefore the reference cannot find anything
 * that the code leaves behind in a module or in a file. Each maker is used for only one case. While the maker works,
 * the timeout of the case applies to the maker. */
#include "workers/pool/lane_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "workers/pool/memory_limit.h"

static void drop_order(struct lane *lane)
{
	free(lane->order);
	lane->order = NULL;
	if (lane->order_fd >= 0)
		close(lane->order_fd);
	lane->order_fd = -1;
}

void lane_maker_drop(struct pool_shared *shared, struct lane *lane)
{
	drop_order(lane);
	lane->making = lane->maker_loaded = false;
	if (lane->maker != NULL)
		zygote_drop(&shared->runners, lane->maker);
	lane->maker = NULL;
}

static void forward(struct lane *lane)
{
	if (lane->order == NULL || !lane->maker_loaded)
		return;
	channel_send(&lane->maker->channel, lane->order, strlen(lane->order), &lane->order_fd,
		     lane->order_fd >= 0 ? 1 : 0);
	drop_order(lane);
}

void lane_maker_take(struct pool_shared *shared, struct lane *lane, const char *line, int fd)
{
	drop_order(lane);
	lane->order = strdup(line);
	if (lane->order == NULL)
		die_no_memory();
	lane->order_fd = fd;
	lane->making = true;
	lane->deadline = lane_case_deadline(shared);
	forward(lane);
}

bool lane_wants_maker(const struct lane *lane)
{
	return lane->phase == LANE_WORKING && lane->order != NULL && lane->maker == NULL;
}

static void write_load(const struct pool_shared *shared, const struct task *task, int64_t memory, struct buf *out)
{
	const struct definition *d = task->definition;
	const struct input_code *code = &d->input_code;

	buf_text(out, "{\"load\":");
	buf_json_string(out, code->kind == INPUT_CODE_INIT ? d->init : task->reference);
	buf_text(out, ",\"name\":");
	buf_json_string(out, task->name);
	buf_text(out, ",\"entry_point\":");
	buf_json_string(out, code->function);
	lane_write_fitting(d, out);
	lane_write_attributes(code->kind == INPUT_CODE_INIT ? task->init_attributes : task->attributes, out);
	lane_write_limits(shared, task, memory, out);
	buf_printf(out, ",\"makes_inputs\":\"%s\"}", code->kind == INPUT_CODE_INIT ? "init" : "reference");
}

int lane_maker_advance(struct pool_shared *shared, struct lane *lane, struct err *err)
{
	int64_t memory;
	struct child *child;
	struct err changed = {""};
	struct buf text = {0};

	if (!lane_wants_maker(lane) || (child = zygote_take(&shared->runners, false)) == NULL)
		return 0;
	lane->maker = child;
	memory = memory_limit(shared->memory, lane_largest_case(&lane->work->task));
	if (zygote_limit_memory(&shared->runners, child, memory) != 0)
		return err_errno(err, "the memory of a definition's code cannot be limited by its control group");
	if (lane_send_reads(&lane->work->task, child, &changed) != 0) {
		lane_blame_inputs(shared, lane, changed.text, 0, true, false);
		return 0;
	}
	write_load(shared, &lane->work->task, memory, &text);
	channel_send(&child->channel, text.data, text.length, NULL, 0);
	buf_free(&text);
	lane->deadline = lane_case_deadline(shared);
	return 0;
}

/* Reports the failure of the code, and keeps the text that the code printed for the verdict. */
static void fail(struct pool_shared *shared, struct lane *lane, const char *message, int64_t line, bool accident,
		 bool raised)
{
	free(lane->printed);
	lane->printed = lane_printed(lane->maker);
	lane_blame_inputs(shared, lane, message, line, accident, raised);
}

static void on_error(struct pool_shared *shared, struct lane *lane, const cJSON *error)
{
	const char *message = json_text_of(error, "message");
	int64_t line = 0;

	json_integer(json_member(error, "line"), &line);
	fail(shared, lane, message == NULL ? "it failed" : message, line, cJSON_IsTrue(json_member(error, "accident")),
	     lane->maker_loaded && cJSON_IsTrue(json_member(error, "raised")));
}

static void on_line(struct pool_shared *shared, struct lane *lane, const char *line, size_t length)
{
	const struct json_text text = {"process that makes inputs", line, length, 1};
	cJSON *message = json_parse(&text, NULL);
	const cJSON *error = json_member(message, "error");

	lane_reached(lane, "the code that makes inputs", message);
	if (cJSON_IsObject(error)) {
		on_error(shared, lane, error);
	} else if (!lane->maker_loaded && cJSON_IsTrue(json_member(message, "loaded"))) {
		lane->maker_loaded = true;
		forward(lane);
	} else if (lane->making && lane->maker_loaded && lane->order == NULL &&
		   (cJSON_IsArray(json_member(message, "made")) || cJSON_IsTrue(json_member(message, "stored")))) {
		lane->making = false;
		lane->deadline = lane_case_deadline(shared);
		lane_judge_ask(lane, line, length);
	} else {
		fail(shared, lane, "the function's process sent an invalid answer", 0, true, false);
	}
	cJSON_Delete(message);
}

static void on_end(struct pool_shared *shared, struct lane *lane)
{
	struct child *maker = lane->maker;
	struct arena arena = {0};

	if ((maker->lost || (!maker->shut && process_was_killed(maker->status) && !maker->out_of_memory)) &&
	    !lane->work->alone)
		lane_retry_alone(shared, lane, true); /* another process killed the maker */
	else if (maker->out_of_memory)
		fail(shared, lane, "all processes of the function together ran out of memory; --memory SIZE changes "
				   "how much memory they may use", 0, true, false);
	else
		fail(shared, lane,
		     maker->shut || maker->lost ? "the function's process ended without an answer"
						: arena_printf(&arena, "the function's process terminated with %s",
							       process_end(maker->status).text),
		     0, true, false);
	arena_free(&arena);
}

void lane_maker_read(struct pool_shared *shared, struct lane *lane)
{
	int64_t now = clock_ms();
	enum child_event event = CHILD_LINE;
	size_t length;
	char *line;

	while (lane->maker != NULL && event == CHILD_LINE) {
		event = child_next(lane->maker, now, &line, &length);
		if (event == CHILD_LINE)
			on_line(shared, lane, line, length);
		else if (event == CHILD_BABBLES)
			fail(shared, lane, "the function's process sent an unterminated line instead of an answer", 0,
			     true, false);
		else if (event == CHILD_ENDED && lane->making)
			on_end(shared, lane);
	}
}

void lane_maker_late(struct pool_shared *shared, struct lane *lane, double limit)
{
	struct arena arena = {0};
	const char *message = arena_printf(&arena, "the function's process did not %s within %g s",
					   lane->maker_loaded || lane->maker == NULL ? "answer" : "load", limit);

	if (lane->maker != NULL)
		fail(shared, lane, message, 0, true, false);
	else
		lane_blame_inputs(shared, lane, "no process for this code was ready in time", 0, true, false);
	arena_free(&arena);
}
