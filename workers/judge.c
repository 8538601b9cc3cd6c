/* Messages, one JSON object a line on descriptor 3. From the judge, once: {"judge": {"class", "product"}}, or
 * {"refused": sentence}, and it ends. Then from the pool:
 *   {"begin": {"bytes", "staged"}}   a new runner child, and the bytes of the largest case to come: what was shared with
 *                                    the last child is given up. `staged`: this child cannot map device memory. No answer.
 *   {"case": job}                    -> {"run": …}, for the runner, or a verdict
 *   {"ran": …}                       the runner's answer, passed on -> {"run": …}, {"provide": …} for the provider (heads of trial_stage.c
 *                                    and provider.py), or a verdict
 *   {"answer": …}                    what the provider, or the pool in its place, has to say of the last {"provide"}
 *                                    -> {"provide": …} or a verdict
 *   {"blame": {"reason", "message", "line", "loading"}, "job": job}
 *                                    the runner failed at this case, begun or not -> a verdict
 *   {"end": true}                    nothing is to come for a while: memory is given back. No answer.
 * A verdict is the line that verdict_write makes. With the first {"run"} of an arena goes the memfd, if it is one; with every {"provide"}
 * that of the stand.
 *
 * The judge is closed to debuggers of the same user, and with it /proc/PID/mem and /proc/PID/fd, by which a reference
 * could reach what decides. It ends when the pool does. */
#include "workers/judge.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/json.h"
#include "workers/channel.h"
#include "workers/trial.h"

enum { POOL_FD = 3, EXIT_BROKEN = 3, EXIT_PROTOCOL = 2 };

struct judge {
	struct channel channel;
	struct kernels kernels;
	struct court court;
	struct trial *trial; /* NULL: between cases */
	int told_arena;      /* id of the arena whose memfd the pool has */
	bool staged;         /* asked for on the command line */
};

/* The libraries are never unloaded: OpenMP's threads run in them until the process ends. */
static struct device *open_device(struct kernels *kernels, const char *name, struct err *err)
{
	char *end;
	long index;

	if (kernels_open(kernels, err) != 0)
		return NULL;
	if (strcmp(name, "cpu") == 0)
		return kernels->face->open_cpu(err);
	index = strncmp(name, "cuda:", 5) == 0 ? strtol(name + 5, &end, 10) : -1;
	if (index < 0 || index > 1023 || end == name + 5 || *end != '\0') {
		err_set(err, "there is no device \"%s\"; devices are cpu and cuda:N", name);
		return NULL;
	}
	if (kernels_open_cuda(kernels, err) != 0)
		return NULL;
	return kernels->cuda->open((int)index, err);
}

static void say(struct judge *judge, const struct buf *text)
{
	struct shared *shared = &judge->court.shared;
	int fd = shared_fd(shared);

	if (strncmp(text->data, "{\"provide\"", 10) == 0) {
		fd = shared_fd(&judge->court.stand);
		channel_send(&judge->channel, text->data, text->length, &fd, fd >= 0 ? 1 : 0);
	} else if (fd >= 0 && shared->id != judge->told_arena && strncmp(text->data, "{\"run\"", 6) == 0) {
		channel_send(&judge->channel, text->data, text->length, &fd, 1);
		judge->told_arena = shared->id;
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
	trial_close(judge->trial);
	judge->trial = NULL;
}

/* Sends the answer; a verdict ends the trial, a second run leaves time to think. */
static void answer(struct judge *judge, enum trial_answer answer, const struct buf *text)
{
	say(judge, text);
	if (answer == TRIAL_RUN)
		trial_think(judge->trial);
	else if (answer == TRIAL_VERDICT)
		end_trial(judge);
}

static void on_begin(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	struct court *court = &judge->court;
	int64_t bytes = 0;

	(void)message;
	(void)out;
	end_trial(judge);
	court_renew(court);
	json_integer(json_member(value, "bytes"), &bytes);
	court->wish = bytes;
	if (cJSON_IsTrue(json_member(value, "staged")))
		court->shared.kind = SHARED_STAGED;
}

static void on_end(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	(void)message;
	(void)value;
	(void)out;
	end_trial(judge);
	court_renew(&judge->court);
}

static void on_case(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out)
{
	(void)message;
	end_trial(judge);
	judge->trial = trial_open(&judge->court, value);
	answer(judge, trial_begin(judge->trial, out), out);
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
		judge->trial = trial_open(&judge->court, json_member(message, "job"));
	trial_blame(judge->trial, value, out);
	answer(judge, TRIAL_VERDICT, out);
}

static const struct {
	const char *key;
	void (*handle)(struct judge *judge, const cJSON *message, const cJSON *value, struct buf *out);
} messages[] = {
    {"begin", on_begin}, {"case", on_case}, {"ran", on_ran}, {"answer", on_answer}, {"blame", on_blame}, {"end", on_end},
};

/* The pool's messages are well formed; should one not be, something is badly wrong: the judge ends and is replaced. */
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
		fprintf(stderr, "reftest judge: %s\n", err.text);
		return -1;
	}
	cJSON_Delete(message);
	return 0;
}

static int serve(struct judge *judge)
{
	struct device *device = judge->court.device;
	size_t length;
	char *line;

	for (;;) {
		while ((line = channel_line(&judge->channel, &length)) != NULL) {
			if (handle(judge, line, length) != 0)
				return EXIT_PROTOCOL;
			if (device->calls->broken(device))
				return EXIT_BROKEN;
		}
		if (channel_read(&judge->channel) != CHANNEL_DATA)
			return 0;
	}
}

/* Bytes of inputs that stay in memory beside a running reference. Tests have fewer. */
static int64_t kept_inputs(void)
{
	const char *given = getenv("REFTEST_KEPT_INPUTS");

	return given != NULL ? strtoll(given, NULL, 10) : (int64_t)1 << 30;
}

static int judge_case_by_case(struct judge *judge, const char *device_name)
{
	struct err err = {""};
	struct buf out = {0};
	int status = 0;

	channel_open(&judge->channel, POOL_FD);
	judge->court.kernels = &judge->kernels;
	judge->court.device_name = device_name;
	judge->court.keep = kept_inputs();
	judge->court.tensors = tensors_new();
	judge->court.device = open_device(&judge->kernels, device_name, &err);
	if (judge->court.device == NULL) {
		write_refused(&out, &err);
		channel_send(&judge->channel, out.data, out.length, NULL, 0);
	} else {
		shared_open(&judge->court.shared, judge->court.device, judge->staged);
		shared_open(&judge->court.stand, judge->court.device, judge->staged);
		buf_text(&out, "{\"judge\":");
		write_device(&out, judge->court.device);
		buf_text(&out, "}");
		channel_send(&judge->channel, out.data, out.length, NULL, 0);
		status = serve(judge);
		end_trial(judge);
		court_renew(&judge->court);
		judge->court.device->calls->close(judge->court.device);
	}
	tensors_free(judge->court.tensors);
	buf_free(&out);
	channel_close(&judge->channel);
	return status;
}

static int probe(struct judge *judge, const char *device_name)
{
	struct err err = {""};
	struct buf out = {0};
	struct device *device = open_device(&judge->kernels, device_name, &err);

	if (device == NULL)
		write_refused(&out, &err);
	else
		write_device(&out, device);
	puts(out.data);
	buf_free(&out);
	if (device != NULL)
		device->calls->close(device);
	return 0;
}

int judge_main(int argc, char **argv)
{
	const char *device = NULL, *probed = NULL;
	struct judge judge = {0};
	int status;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--staged") == 0)
			judge.staged = true;
		else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
			device = argv[++i];
		else if (strcmp(argv[i], "--probe") == 0 && i + 1 < argc)
			probed = argv[++i];
	}
	if (probed != NULL)
		return probe(&judge, probed);
	if (device == NULL) {
		fputs("reftest judge is started by reftest itself: `reftest verify` is the command you want.\n", stderr);
		return EXIT_PROTOCOL;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	status = judge_case_by_case(&judge, device);
	prctl(PR_SET_DUMPABLE, 1); /* nothing is left to be hidden; leak checkers look into their own process */
	return status;
}
