#include "workers/pool/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/show.h"
#include "base/trace.h"
#include "workers/pool/machine_resources.h"
#include "workers/pool/visible_device.h"
#include "workers/pool/zygote.h"

extern char **environ;

enum {
	UP_MS = 300000, /* the time in which the process must import torch and create the CUDA context */
	FAILURES_MAX = 2,
	/* If the provider process ends this many times while it works on the same pair of a library and an op family,
	 * the library is not used for this family again. */
	ENDS_MAX = 2,
	ALLOW_MAX_S = 7200, /* the maximum extra time in seconds for one preparation (an import, a compilation) */
	SAID = 16 << 10,    /* how many bytes of the process's output are kept */
	SAID_SHOWN = 1500,
	DOING_SHOWN = 300, /* a message shows at most this many bytes of the name of a preparation */
	PIPE_READS = 32
};

void provider_open(struct provider *provider, const char *python, const char *device, int threads, int epoll,
		   double timeout_s)
{
	*provider = (struct provider){.python = python,
				      .device = device,
				      .threads = threads,
				      .epoll = epoll,
				      .timeout_s = timeout_s,
				      .process = {0, -1},
				      .pipe = -1,
				      .deadline_ms = INT64_MAX};
	channel_open(&provider->channel, -1);
}

static void listen_to(struct provider *provider)
{
	char bytes[8 << 10];
	ssize_t got = 1;

	for (int i = 0; i < PIPE_READS && provider->pipe >= 0 && got > 0; i++) {
		do
			got = read(provider->pipe, bytes, sizeof bytes);
		while (got < 0 && errno == EINTR);
		if (got > 0) {
			buf_add(&provider->said, bytes, (size_t)got);
			if (provider->said.length > 2 * SAID)
				buf_drop(&provider->said, provider->said.length - SAID);
		} else if (got == 0 || errno != EAGAIN) {
			close(provider->pipe);
			provider->pipe = -1;
		}
	}
}

static int watch_fd(const struct provider *provider, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return fd < 0 ? 0 : epoll_ctl(provider->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int launch(struct provider *provider, int socket, int output, struct err *err)
{
	char script[4096], threads[16];
	struct arena arena = {0};
	const char *visible = visible_device(provider->device, getenv("CUDA_VISIBLE_DEVICES"), &arena);
	char *argv[] = {(char *)(uintptr_t)provider->python,
			(char *)(uintptr_t) "-u",
			script,
			(char *)(uintptr_t)(visible != NULL ? VISIBLE_DEVICE_NAME : provider->device),
			threads,
			NULL};
	const int fds[] = {-1, output, output, socket};

	snprintf(threads, sizeof threads, "%d", provider->threads);
	int rc = machine_script("provider.py", "REFTEST_PROVIDER", script, sizeof script, err);

	if (rc == 0)
		rc = process_start(&provider->process, provider->python, argv,
				   visible_device_environment(environ, visible, &arena), fds, 4, err);
	arena_free(&arena);
	if (rc != 0)
		return -1;
	if (watch_fd(provider, provider->process.pidfd) != 0)
		return err_errno(err, "cannot add the provider to epoll");
	return 0;
}

static int start(struct provider *provider, struct err *err)
{
	int ours, theirs, ends[2], rc;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(err, "cannot create a pipe for the provider");
	if (channel_pair(&ours, &theirs, err) != 0) {
		close(ends[0]);
		close(ends[1]);
		return -1;
	}
	buf_clear(&provider->said);
	provider->pipe = ends[0];
	channel_open(&provider->channel, ours);
	rc = fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 || watch_fd(provider, ends[0]) != 0
		 ? err_errno(err, "cannot add the provider's pipe to epoll")
		 : launch(provider, theirs, ends[1], err);
	close(theirs);
	close(ends[1]);
	if (rc == 0)
		rc = channel_watch(&provider->channel, provider->epoll, err);
	provider->up = false;
	provider->deadline_ms = clock_ms() + UP_MS;
	trace("provider", "%d started", (int)provider->process.pid);
	return rc;
}

static void refuse(struct provider *provider, const char *why)
{
	if (provider->refused == NULL && (provider->refused = strdup(why)) == NULL)
		die_no_memory();
}

/* Kills the process and waits for its end. */
static void end_process(struct provider *provider)
{
	int status;

	if (provider->process.pid != 0) {
		process_kill(&provider->process);
		while (waitpid(provider->process.pid, &status, 0) < 0 && errno == EINTR)
			;
		if (provider->process.pidfd >= 0)
			close(provider->process.pidfd);
	}
	provider->process = (struct process){0, -1};
	channel_close(&provider->channel);
	if (provider->pipe >= 0)
		close(provider->pipe);
	provider->pipe = -1;
	provider->up = false;
	provider->deadline_ms = INT64_MAX;
}

void provider_start_no_more(struct provider *provider)
{
	provider->started_last = true;
}

bool provider_ready(struct provider *provider)
{
	struct err err = {""};

	if (provider->busy)
		return false;
	if (provider->process.pid == 0 && provider->started_last)
		refuse(provider, "the provider's process ended; no new process is started in this run, because "
				 "references could change its memory (see process_memory in the output of `reftest "
				 "doctor`)");
	if (provider->refused == NULL && provider->process.pid == 0 && start(provider, &err) != 0) {
		end_process(provider);
		refuse(provider, err.text);
	}
	return provider->up || provider->refused != NULL;
}

static int64_t after(double seconds)
{
	return seconds > 0 && seconds < 1e9 ? clock_ms() + (int64_t)(seconds * 1000) : INT64_MAX;
}

/* Returns the entry for the library and the op family of a request. The first request for this library and op family
 * adds the entry. */
static struct provider_pair *pair_of(struct provider *provider, const char *text, size_t length)
{
	const struct json_text request = {"a request", text, length, 1};
	cJSON *json = json_parse(&request, NULL);
	const cJSON *provide = json_member(json, "provide");
	const char *library = json_text_of(provide, "provider"), *family = json_text_of(provide, "family");
	struct buf name = {0};
	int at = 0;

	buf_printf(&name, "%s with %s", library == NULL ? "?" : library, family == NULL ? "?" : family);
	cJSON_Delete(json);
	while (at < provider->pair_count && strcmp(provider->pairs[at].name, name.data) != 0)
		at++;
	if (at < provider->pair_count) {
		buf_free(&name);
		return &provider->pairs[at];
	}
	provider->pairs = realloc(provider->pairs, (size_t)(at + 1) * sizeof *provider->pairs);
	if (provider->pairs == NULL)
		die_no_memory();
	provider->pairs[at] = (struct provider_pair){name.data, 0};
	provider->pair_count++;
	return &provider->pairs[at];
}

static bool given_up(const struct provider *provider)
{
	return provider->asked != NULL && provider->asked->ends >= ENDS_MAX;
}

bool provider_answers_now(const struct provider *provider)
{
	return provider->busy && (provider->refused != NULL || given_up(provider));
}

void provider_ask(struct provider *provider, const char *text, size_t length, int fd)
{
	provider->busy = true;
	provider->asked = pair_of(provider, text, length);
	buf_clear(&provider->doing);
	if (provider_answers_now(provider))
		return; /* sends nothing, because provider_answer returns {"failed"} with the reason */
	channel_send(&provider->channel, text, length, &fd, fd >= 0 ? 1 : 0);
	provider->deadline_ms = after(provider->timeout_s);
}

/* ---- answers ---- */

/* Builds the answer {"failed", "accident"}, which replaces a missing or invalid answer of the provider. */
static const char *answer_failed(struct provider *provider, const char *message)
{
	buf_clear(&provider->answer);
	buf_text(&provider->answer, "{\"failed\":");
	buf_json_bytes(&provider->answer, message, strlen(message));
	buf_text(&provider->answer, ",\"accident\":true}");
	provider->busy = false;
	return provider->answer.data;
}

/* Returns a text of two parts: `sentence`, which says how the process ended, and the last output that the process
 * printed. */
static const char *with_said(struct provider *provider, const char *sentence, struct arena *arena)
{
	size_t shown = provider->said.length < SAID_SHOWN ? provider->said.length : SAID_SHOWN;

	if (shown == 0)
		return sentence;
	for (size_t i = 0; i < provider->said.length; i++)
		if (provider->said.data[i] == '\0')
			provider->said.data[i] = '?';
	return arena_printf(arena, "%s; it printed last: %.*s", sentence, (int)shown,
			    provider->said.data + provider->said.length - shown);
}

/* Call this when the process has ended or timed out. Kills a process that timed out. If there is an open request,
 * returns the answer {"failed"}, else NULL. */
static const char *on_end(struct provider *provider, const char *sentence)
{
	struct arena arena = {0};
	bool was_up = provider->up, busy = provider->busy;
	const char *answer = NULL;

	listen_to(provider);
	sentence = with_said(provider, sentence, &arena);
	trace("provider", "%s", sentence);
	end_process(provider);
	if (!was_up && ++provider->failures >= FAILURES_MAX)
		refuse(provider, sentence);
	if (was_up && busy && provider->asked != NULL)
		provider->asked->ends++;
	if (was_up && busy)
		answer = answer_failed(provider, sentence);
	arena_free(&arena);
	return answer;
}

/* Handles a message which says that a preparation begins or ends. If the message has "tell", shows the name of the
 * preparation to the user. */
static void on_doing(struct provider *provider, const cJSON *message)
{
	const char *doing = json_text_of(message, "doing");
	const cJSON *allow = json_member(message, "allow");
	double seconds = cJSON_IsNumber(allow) && allow->valuedouble > 0 ? allow->valuedouble : 0;

	if (doing != NULL && cJSON_IsTrue(json_member(message, "tell")))
		show_print(stderr, "reftest: %s\n", doing);
	trace("provider", "%s", doing == NULL ? "prepared" : doing);
	seconds = seconds > ALLOW_MAX_S ? ALLOW_MAX_S : seconds;
	buf_clear(&provider->doing);
	if (doing != NULL)
		buf_printf(&provider->doing, "%.*s", DOING_SHOWN, doing);
	provider->allowed_s = seconds;
	if (provider->busy && provider->timeout_s > 0)
		provider->deadline_ms = after(provider->timeout_s + seconds);
}

/* Appends a text such as "the provider did not answer within 30 s", or "the provider did not answer within 630 s, of
 * which 600 s were allowed for this preparation: flashinfer compiles page". */
static void say_late(const struct provider *provider, struct buf *out)
{
	bool prepares = provider->up && provider->doing.length > 0;

	buf_printf(out, "the provider did not %s within %g s", provider->up ? "answer" : "start",
		   provider->up ? provider->timeout_s + (prepares ? provider->allowed_s : 0) : UP_MS / 1000.0);
	if (prepares)
		buf_printf(out, ", of which %g s were allowed for this preparation: %s", provider->allowed_s,
			   provider->doing.data);
}

/* Handles one line from the provider. If the line is an answer, returns the answer, else NULL. */
static const char *on_line(struct provider *provider, const char *line, size_t length)
{
	const struct json_text text = {"provider", line, length, 1};
	cJSON *message = json_parse(&text, NULL);
	const char *answer = NULL;

	if (json_member(message, "doing") != NULL) {
		on_doing(provider, message);
	} else if (!provider->up && json_member(message, "provider") != NULL) {
		provider->up = true;
		provider->failures = 0;
		provider->deadline_ms = INT64_MAX;
	} else if (!provider->up) {
		const char *why = json_text_of(message, "refused");

		refuse(provider, why == NULL ? "invalid message from the provider" : why);
	} else if (provider->busy && !cJSON_IsObject(message)) { /* the judge accepts only an object as an answer */
		provider->deadline_ms = INT64_MAX;
		answer = answer_failed(provider, "the provider's answer is not a JSON object");
	} else if (provider->busy) {
		buf_clear(&provider->answer);
		buf_add(&provider->answer, line, length);
		provider->busy = false;
		provider->deadline_ms = INT64_MAX;
		answer = provider->answer.data;
		if (cJSON_IsTrue(json_member(message, "fatal"))) { /* ends the process; the next request starts a new
								    * one */
			provider->asked->ends++;
			end_process(provider);
		}
	}
	cJSON_Delete(message);
	return answer;
}

const char *provider_answer(struct provider *provider, int64_t now_ms)
{
	enum channel_answer got = CHANNEL_DATA;
	const char *answer;
	size_t length;
	char *line, sentence[160];
	int status;

	if (provider->busy && provider->refused != NULL)
		return answer_failed(provider, provider->refused);
	if (provider->busy && given_up(provider)) {
		snprintf(sentence, sizeof sentence, "%s caused the provider's process to end %d times in this run, "
						    "so it is not used again",
			 provider->asked->name, ENDS_MAX);
		return answer_failed(provider, sentence);
	}
	listen_to(provider);
	channel_flush(&provider->channel);
	while (provider->channel.fd >= 0 && got == CHANNEL_DATA) {
		while ((line = channel_line(&provider->channel, &length)) != NULL)
			if ((answer = on_line(provider, line, length)) != NULL)
				return answer;
		got = channel_read(&provider->channel);
		if (got == CHANNEL_END || got == CHANNEL_TOO_LONG) {
			channel_close(&provider->channel);
			process_kill(&provider->process);
		}
	}
	if (process_ended(&provider->process, &status)) {
		snprintf(sentence, sizeof sentence, "the provider's process terminated with %s", process_end(status).text);
		return on_end(provider, sentence);
	}
	if (provider->process.pid != 0 && now_ms >= provider->deadline_ms) {
		struct buf late = {0};

		say_late(provider, &late);
		answer = on_end(provider, late.data);
		buf_free(&late);
		return answer;
	}
	return NULL;
}

int64_t provider_deadline(const struct provider *provider)
{
	return provider->deadline_ms;
}

void provider_abandon(struct provider *provider)
{
	if (provider->busy)
		end_process(provider);
	provider->busy = false;
}

void provider_close(struct provider *provider)
{
	end_process(provider);
	buf_free(&provider->said);
	buf_free(&provider->answer);
	buf_free(&provider->doing);
	for (int i = 0; i < provider->pair_count; i++)
		free(provider->pairs[i].name);
	free(provider->pairs);
	provider->pairs = provider->asked = NULL;
	provider->pair_count = 0;
	free(provider->refused);
	provider->refused = NULL;
}
