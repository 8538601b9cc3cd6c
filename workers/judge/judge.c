/* judge - the message loop of the judge. Each message is one JSON object on one line, sent through descriptor 3.
 *
 * At its start, the judge sends {"judge": {"class", "product"}}. If it cannot open its device, it sends {"refused":
 * message} and exits. Then the pool sends these messages:
 *
 * - {"begin": {"bytes", "staged", "runner", "gone"}} announces a new runner, whose number is "runner". "bytes" is the
 *   size of the largest case of the runner's definition. "staged" is true if the runner cannot map device memory.
 *   "gone" has the numbers of earlier runners whose processes have all ended. The judge stops using the memory that it
 *   shared with the previous runner. It sends no answer.
 * - {"case": job} begins a case. The judge answers with a {"run": …} for the runner, or with a verdict. If
 *   the definition's own code makes inputs, it first answers with {"make": …} for the process that runs this code.
 * - {"made": …} answers a {"make": …}, and {"stored": true} answers a {"store": …}. Both come from the process that
 *   makes inputs (trial_custom_inputs.c). The judge answers with the next {"make"} or {"store"}. When all inputs are
 *   made and stored, it answers with a {"run": …} for the runner, or with a verdict.
 * - {"ran": …} contains the runner's answer. The judge answers with the next {"run": …}, with a {"provide": …} for the
 *   provider (trial_stage.c and provider.py describe its fields), with a {"truth": name, "run": …} for the runner of a
 *   ground truth that is Python source in the dataset, or with a verdict.
 * - {"answer": …} contains the answer to the last {"provide"} or {"truth"}. If the provider or the runner of the ground
 *   truth failed, the pool itself writes this message, to report the failure. The judge answers with another
 *   {"provide": …} or {"truth": …}, or with a verdict.
 * - {"blame": {"reason", "message", "line", "loading", "raised", "ended", "certain"}, "job": job} reports that the
 *   runner failed in this case. The message contains the job, because the judge may not have received the case yet. If
 *   the process that makes inputs failed, the reason is "inputs". The judge answers with a verdict.
 * - {"end": true} announces that there will be no work for a while. The judge frees memory and sends no answer.
 *
 * The function verdict_write writes a verdict. A file descriptor is sent with some messages. If the shared arena is a
 * memfd, the first {"run"} that uses the arena carries this memfd. Every {"provide"} and {"truth"} carries the memfd of
 * the memory that the judge shares with the process that answers. Every {"store"} carries the memfd of the memory for
 * inputs.
 *
 * A reference must not change the verdict in the judge's memory. Therefore the judge is not dumpable (PR_SET_DUMPABLE
 * in process.c): other processes of the same user cannot attach a debugger to it, and cannot open its /proc/PID/mem and
 * /proc/PID/fd. When the pool closes the socket, the judge exits. */
#include "workers/judge/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/show.h"
#include "workers/judge/kept_memory.h"
#include "workers/judge/trial.h"
#include "workers/protocol/channel.h"

enum { EXIT_BROKEN = 3, EXIT_PROTOCOL = 2, IDLE_MS = 5000 /* after this time without work, freed memory is returned to
							   * the system */ };

struct judge {
	struct channel channel;
	struct kernels kernels;
	struct judge_context context;
	struct trial *trial; /* the current trial; NULL: there is none */
	int sent_arena;      /* the id of the shared arena whose memfd was last sent to the pool */
	bool staged;         /* the command line demands that tensors are copied through host memory */
};

/* Opens the device. Kernels libraries are never unloaded, because the threads of OpenMP run code of these libraries
 * until the process exits. */
static struct device *open_device(struct kernels *kernels, const char *name, struct err *err)
{
	char *end;
	long index;

	if (strcmp(name, "cpu") == 0)
		return kernels->api->open_cpu(err);
	index = strncmp(name, "cuda:", 5) == 0 ? strtol(name + 5, &end, 10) : -1;
	if (index < 0 || index > 1023 || end == name + 5 || *end != '\0') {
		err_set(err, "unknown device \"%s\"; expected cpu or cuda:N", name);
		return NULL;
	}
	if (kernels_open_cuda(kernels, err) != 0)
		return NULL;
	return kernels->cuda->open((int)index, err);
}

static void say(struct judge *judge, const struct buf *text)
{
	struct shared_memory *shared = &judge->context.shared;
	int fd = shared_memory_fd(shared);

	if (strncmp(text->data, "{\"provide\"", 10) == 0 || strncmp(text->data, "{\"truth\"", 8) == 0) {
		fd = shared_memory_fd(trial_stage_memory(judge->trial));
		channel_send(&judge->channel, text->data, text->length, &fd, fd >= 0 ? 1 : 0);
	} else if (strncmp(text->data, "{\"store\"", 8) == 0) {
		fd = shared_memory_fd(&judge->context.custom_memory);
		channel_send(&judge->channel, text->data, text->length, &fd, fd >= 0 ? 1 : 0);
	} else if (fd >= 0 && shared->id != judge->sent_arena && strncmp(text->data, "{\"run\"", 6) == 0) {
		channel_send(&judge->channel, text->data, text->length, &fd, 1);
		judge->sent_arena = shared->id;
	} else {
		channel_send(&judge->channel, text->data, text->length, NULL, 0);
	}
}

static void write_device(struct buf *out, const struct device *device)
{
	buf_text(out, "{\"class\":");
	buf_json_string(out, device->calls->class_name(device));
	buf_text(out, ",\"product\":");
	buf_json_string(out, device->calls->product(device));
	buf_text(out, "}");
}

static void write_refused(struct buf *out, const struct err *err)
{
	buf_text(out, "{\"refused\":");
	buf_json_string(out, err->text);
	buf_text(out, "}");
}

static void end_trial(struct judge *judge)
{
	if (judge->trial == NULL)
		return;
	trial_close(judge->trial);
	judge->trial = NULL;
	judge_seconds_end_runs(&judge->context.clock);
	judge_seconds_trace(&judge->context.clock);
}

/* Sends the answer of a trial to the pool. If the answer is a verdict, ends the trial. If the answer requests a run,
 * computes the ground truth while the runner works. */
static void answer(struct judge *judge, enum trial_answer answer, const struct buf *text)
{
	say(judge, text);
	if (answer == TRIAL_RUN)
		trial_think(judge->trial);
	else if (answer == TRIAL_VERDICT)
		end_trial(judge);
}

static void share_through_host(struct judge_context *context)
{
	context->shared.kind = SHARED_STAGED;
	for (int i = 0; i < GROUND_TRUTHS_MAX; i++)
		context->truth_memory[i].kind = SHARED_STAGED;
}

static void release_gone(struct judge_context *context, const cJSON *gone)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, gone) {
		int64_t runner;

		if (json_integer(item, &runner))
			shared_memory_release(&context->shared, runner);
	}
}

static void on_begin(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	struct judge_context *context = &judge->context;
	int64_t bytes = 0;

	(void)message;
	(void)out;
	end_trial(judge);
	judge_context_renew(context);
	json_integer(json_member(value, "bytes"), &bytes);
	context->wish = bytes;
	context->runner = 0;
	json_integer(json_member(value, "runner"), &context->runner);
	release_gone(context, json_member(value, "gone"));
	if (cJSON_IsTrue(json_member(value, "staged")))
		share_through_host(context);
}

static void on_end(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	(void)message;
	(void)value;
	(void)out;
	end_trial(judge);
	judge_context_renew(&judge->context);
}

static void on_case(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	(void)message;
	end_trial(judge);
	judge->trial = trial_open(&judge->context, value);
	answer(judge, trial_begin(judge->trial, out), out);
}

static void on_made(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	(void)value;
	if (judge->trial != NULL)
		answer(judge, trial_made(judge->trial, message, out), out);
}

static void on_stored(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	(void)message;
	(void)value;
	if (judge->trial != NULL)
		answer(judge, trial_stored(judge->trial, out), out);
}

static void on_ran(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	(void)value;
	if (judge->trial != NULL)
		answer(judge, trial_ran(judge->trial, message, out), out);
}

static void on_answer(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	(void)message;
	if (judge->trial != NULL)
		answer(judge, trial_provided(judge->trial, value, out), out);
}

static void on_blame(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	if (judge->trial == NULL)
		judge->trial = trial_open(&judge->context, json_member(message, "job"));
	trial_blame(judge->trial, value, out);
	answer(judge, TRIAL_VERDICT, out);
}

static const struct {
	const char *key;
	void (*handle)(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out);
} messages[] = {
    {"begin", on_begin}, {"case", on_case}, {"made", on_made}, {"stored", on_stored}, {"ran", on_ran}, {"answer", on_answer}, {"blame", on_blame}, {"end", on_end},
};

/* Handles a message from the pool. Returns -1 if the message is malformed. This would be a bug in reftest; the judge
 * then exits, and the pool starts another one. */
static int handle(struct judge *judge, const char *line, size_t length)
{
	const struct json_text text = {"message", line, length, 1};
	struct err err = {""};
	struct buf out = {0};
	cJSON *message = json_parse(&text, &err);

	for (size_t i = 0; message != NULL && i < sizeof messages / sizeof messages[0]; i++) {
		const cJSON *value = json_member(message, messages[i].key);

		if (value != NULL) {
			messages[i].handle(judge, message, value, &out);
			break;
		}
	}
	buf_free(&out);
	if (message == NULL) {
		show_print(stderr, "reftest judge: %s\n", err.text);
		return -1;
	}
	cJSON_Delete(message);
	return 0;
}

static int serve(struct judge *judge)
{
	struct device *device = judge->context.device;
	size_t length;
	char *line;

	for (;;) {
		while ((line = channel_line(&judge->channel, &length)) != NULL) {
			judge_seconds_turn(&judge->context.clock, JUDGE_OTHER);
			if (handle(judge, line, length) != 0)
				return EXIT_PROTOCOL;
			if (device->calls->broken(device))
				return EXIT_BROKEN;
		}
		judge_seconds_turn(&judge->context.clock, JUDGE_WAITS);
		if (kept_memory_wait(JUDGE_SOCKET, IDLE_MS))
			shared_memory_forget(&judge->context.shared);
		if (channel_read(&judge->channel) != CHANNEL_DATA)
			return 0;
	}
}

/* Returns the size in bytes above which inputs are freed while a reference runs. Tests set a smaller size. */
static int64_t kept_inputs(void)
{
	const char *given = getenv("REFTEST_KEPT_INPUTS");

	return given != NULL ? strtoll(given, NULL, 10) : (int64_t)1 << 30;
}

static int judge_case_by_case(struct judge *judge, const struct judge_order *order)
{
	const char *device_name = order->device, *name_here = order->visible != NULL ? order->visible_name : device_name;
	struct err err = {""};
	struct buf out = {0};
	int status = 0;

	channel_open(&judge->channel, JUDGE_SOCKET);
	judge->context.kernels = &judge->kernels;
	judge->context.device_name = device_name;
	judge->context.keep = kept_inputs();
	judge->context.tensors = tensors_new();
	judge->context.device = open_device(&judge->kernels, name_here, &err);
	if (judge->context.device == NULL) {
		write_refused(&out, &err);
		channel_send(&judge->channel, out.data, out.length, NULL, 0);
	} else {
		shared_memory_open(&judge->context.shared, judge->context.device, judge->staged);
		shared_memory_open(&judge->context.provider_memory, judge->context.device, judge->staged);
		shared_memory_open(&judge->context.custom_memory, judge->context.device,
				   strcmp(device_name, "cpu") != 0); /* on a GPU, this memory is always a memfd, and
								      * tensors are copied through it */
		for (int i = 0; i < GROUND_TRUTHS_MAX; i++)
			shared_memory_open(&judge->context.truth_memory[i], judge->context.device, judge->staged);
		buf_text(&out, "{\"judge\":");
		write_device(&out, judge->context.device);
		buf_text(&out, "}");
		channel_send(&judge->channel, out.data, out.length, NULL, 0);
		status = serve(judge);
		end_trial(judge);
		judge_context_renew(&judge->context);
		shared_memory_forget(&judge->context.shared);
		judge->context.device->calls->close(judge->context.device);
	}
	tensors_free(judge->context.tensors);
	buf_free(&out);
	channel_close(&judge->channel);
	return status;
}

int judge_serve(const struct judge_program *program, const struct judge_order *order)
{
	struct judge judge = {.staged = order->staged, .kernels = *program->kernels};

	kept_memory_begin();
	judge.kernels.cuda_library = program->cuda_library < 0 ? -1 : JUDGE_CUDA_LIBRARY;
	if (order->threads > 0)
		judge.kernels.api->use_threads(order->threads);
	if (order->visible != NULL)
		setenv("CUDA_VISIBLE_DEVICES", order->visible, 1); /* must be set before CUDA is loaded */
	return judge_case_by_case(&judge, order);
}

struct judge_program judge_program(const struct kernels *kernels)
{
	return (struct judge_program){judge_serve, kernels, kernels->cuda_library};
}
