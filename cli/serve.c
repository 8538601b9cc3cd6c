/* serve - answers requests of editors and agents with JSON-RPC 2.0 on standard input and output. The command offers the
 * tools of the Model Context Protocol (docs/serve.md).
 *
 * This process reads messages and writes answers; it runs nothing itself. If a tool runs a command, this process forks
 * a child, and the child's output is the answer. One separate process does all verification, one request after the
 * other. Between requests, the processes that run references stay alive (cli/serve_verifier.h). If a request is
 * cancelled, the process that handles the request is ended. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/show.h"
#include "cli/serve_verifier.h"
#include "cli/shared_options.h"
#include "engine/settings.h"
#include "serve/rpc.h"
#include "serve/tools.h"
#include "workers/pool/process.h"

enum {
	CALLS_MOST = 64,	   /* the most calls that run or wait at the same time */
	COMMANDS_MOST = 4,	   /* the most commands that run at the same time */
	ANSWER_BYTES = 64 << 20,   /* the longest answer of a command, in bytes */
	ERRORS_BYTES = 64 << 10,
	READ_BYTES = 64 << 10
};

static const struct option_row rows[] = {
    ROW_ROOT, ROW_REPOS, ROW_DEVICE, ROW_REQUIRE_CONTAINMENT, ROW_TIMEOUT, ROW_MEMORY, ROW_ISOLATION, ROW_JOBS, ROW_PYTHON,
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* One tools/call that has no answer yet. */
struct call {
	char id[RPC_ID_BYTES];
	const struct tool *tool;
	struct arena arena; /* of the words */
	char **argv;
	int argc;
	bool running;
	bool dead; /* the call gets no answer, because it was cancelled or because its client is gone */
	struct process process; /* of TOOL_COMMAND */
	int output, errors;	/* pipes from the process; -1: closed */
	struct buf out, err;
	struct call *next;
};

struct server {
	struct program *program;
	const struct shared_options *options;
	struct buf input;
	bool skipping; /* the current message was too long; the rest of this message is skipped */
	bool ended;    /* the client has closed the pipe to standard input */
	bool broken;   /* nobody reads answers */
	struct call *calls; /* in the order of their arrival */
	int call_count;
	struct process verifier;
	int requests, answers; /* pipes to the verifier; -1: no verifier runs. If only `requests` is -1, the verifier is
			        * about to exit */
	struct buf answer;     /* the part of the running call's answer that the verifier has written so far */
};

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static void send_text(struct server *server, struct buf *text)
{
	server->broken = server->broken || !file_write_all(STDOUT_FILENO, text->data, text->length);
	buf_free(text);
}

static void send_error(struct server *server, const char *id, enum rpc_code code, const char *message)
{
	struct buf out = {0};

	rpc_error(&out, id, code, message);
	send_text(server, &out);
}

static void send_result(struct server *server, const char *id, const char *result)
{
	struct buf out = {0};

	rpc_result(&out, id, result);
	send_text(server, &out);
}

/* Answers a call with a text. `is_error` is true if the text is an error message. */
static void send_answer(struct server *server, const struct call *call, const char *text, size_t length, bool is_error)
{
	struct buf result = {0};

	if (call->dead)
		return;
	buf_text(&result, "{\"content\": [{\"type\": \"text\", \"text\": ");
	buf_json_bytes(&result, text, length);
	buf_printf(&result, "}], \"isError\": %s}", is_error ? "true" : "false");
	send_result(server, call->id, result.data);
	buf_free(&result);
}

static void send_failure(struct server *server, const struct call *call, const char *message)
{
	send_answer(server, call, message, strlen(message), true);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void free_call(struct call *call)
{
	close_fd(&call->output);
	close_fd(&call->errors);
	buf_free(&call->out);
	buf_free(&call->err);
	arena_free(&call->arena);
	free(call);
}

static void remove_call(struct server *server, struct call *call)
{
	struct call **at = &server->calls;

	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	server->call_count--;
	free_call(call);
}

static struct call *find_call(const struct server *server, const char *id)
{
	struct call *call = server->calls;

	while (call != NULL && (call->dead || strcmp(call->id, id) != 0))
		call = call->next;
	return call;
}

/* Returns the call that the verifier handles now. If the verifier is idle, returns its next call. Returns NULL if no
 * call is for the verifier. */
static struct call *verifier_call(const struct server *server)
{
	struct call *call = server->calls;

	while (call != NULL && call->tool->runner != TOOL_VERIFIER)
		call = call->next;
	return call;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

struct command_start {
	const struct server *server;
	const struct call *call;
};

/* Adds an option of the server to a command line if the command has this option. */
static int add_option(const struct command *command, const char *option, const char *value, char **argv, int argc,
		      struct arena *arena)
{
	for (int i = 0; value != NULL && i < command->row_count; i++)
		if (strcmp(option_word(&command->rows[i]), option) == 0)
			argv[argc++] = arena_printf(arena, "%s=%s", option, value);
	return argc;
}

/* Makes the command line of a command: first the options that the server got for all requests, then the words of the
 * call. */
static int command_line_of(const struct command_start *start, const struct command *command, struct arena *arena,
			   char ***argv)
{
	const struct shared_options *o = start->server->options;
	const struct call *call = start->call;
	char **words = arena_array(arena, (size_t)call->argc + 7, sizeof *words);
	int argc = 1;

	words[0] = call->argv[0];
	argc = add_option(command, "--device", o->device, words, argc, arena);
	argc = add_option(command, "--python", o->python, words, argc, arena);
	argc = add_option(command, "--require-containment", o->required, words, argc, arena);
	argc = add_option(command, "--jobs", o->jobs > 0 ? arena_printf(arena, "%d", o->jobs) : NULL, words, argc, arena);
	argc = add_option(command, "--timeout", arena_printf(arena, "%.17g", o->timeout), words, argc, arena);
	argc = add_option(command, "--memory", o->memory > 0 ? arena_printf(arena, "%" PRId64, o->memory) : NULL, words, argc,
			  arena);
	memcpy(words + argc, call->argv + 1, (size_t)(call->argc - 1) * sizeof *words);
	*argv = words;
	return argc + call->argc - 1;
}

/* The main function of a process that runs a command. */
static int command_main(void *context)
{
	const struct command_start *start = context;
	const struct program *from = start->server->program;
	struct program program = {.argv = start->call->argv, .root_given = from->root, .repos = start->server->options->repos,
				  .secrets = from->secrets, .signals = -1};
	struct arena arena = {0};
	struct err err = {""};
	const struct command *command = command_named(start->call->argv[0], &arena, &err);
	int code = EXIT_INTERNAL, argc;
	char **argv;

	if (command != NULL) {
		argc = command_line_of(start, command, &arena, &argv);
		code = command->run(&program, argc, argv);
	}

	arena_free(&arena);
	fflush(stdout);
	program_close(&program);
	return code;
}

static int open_pipe(int ends[2], struct err *err)
{
	return pipe2(ends, O_CLOEXEC) < 0 ? err_errno(err, "cannot make a pipe") : 0;
}

static int start_command(struct server *server, struct call *call, struct err *err)
{
	struct command_start start = {server, call};
	int out[2] = {-1, -1}, errors[2] = {-1, -1}, rc = -1;

	if (open_pipe(out, err) == 0 && open_pipe(errors, err) == 0) {
		const int fds[] = {-1, out[1], errors[1]};

		rc = process_fork(&call->process, "reftest-command", command_main, &start, fds, 3, err);
	}
	close_fd(&out[1]);
	close_fd(&errors[1]);
	if (rc < 0) {
		close_fd(&out[0]);
		close_fd(&errors[0]);
		return -1;
	}
	call->output = out[0];
	call->errors = errors[0];
	call->running = true;
	return 0;
}

static void end_command(struct server *server, struct call *call)
{
	int status = 0;

	if (call->process.pid == 0 || call->output >= 0 || call->errors >= 0)
		return;
	/* the process has closed both pipes, so it ends soon */
	while (!process_ended(&call->process, &status))
		usleep(500);
	if (call->out.length > 0 && WIFEXITED(status) && WEXITSTATUS(status) != EXIT_INTERNAL)
		send_answer(server, call, call->out.data, call->out.length, false);
	else if (call->err.length > 0)
		send_answer(server, call, call->err.data, call->err.length, true);
	else
		send_failure(server, call, "the command ended without an answer");
	remove_call(server, call);
}

/* Reads what a process has written. At the end of the input, closes the descriptor. Kills the process if its answer is
 * too long. Of the process's standard error, keeps only the beginning. */
static void read_pipe(struct call *call, int *fd, struct buf *into, size_t limit)
{
	buf_reserve(into, READ_BYTES);
	ssize_t got = read(*fd, into->data + into->length, READ_BYTES);

	if (got > 0)
		into->length += (size_t)got;
	if (got <= 0)
		close_fd(fd);
	if (into->length > limit && into == &call->err) {
		into->length = limit;
	} else if (into->length > limit) {
		process_kill(&call->process);
		buf_clear(&call->out);
		buf_clear(&call->err);
		buf_text(&call->err, "the answer is too long; name fewer definitions");
		close_fd(&call->output);
		close_fd(&call->errors);
	}
}

/* ---- the verifier ------------------------------------------------------------------------------------------------ */

static int start_verifier(struct server *server, struct err *err)
{
	struct verifier_start start = {server->program, server->options};
	int requests[2] = {-1, -1}, answers[2] = {-1, -1}, rc = -1;

	if (open_pipe(requests, err) == 0 && open_pipe(answers, err) == 0) {
		const int fds[VERIFIER_FDS] = {requests[0], answers[1], STDERR_FILENO};

		rc = process_fork(&server->verifier, "reftest-verify", verifier_main, &start, fds, VERIFIER_FDS, err);
	}
	close_fd(&requests[0]);
	close_fd(&answers[1]);
	server->requests = requests[1];
	server->answers = answers[0];
	if (rc < 0) {
		close_fd(&server->requests);
		close_fd(&server->answers);
	}
	buf_clear(&server->answer);
	return rc;
}

/* Closes the pipes to the verifier, and waits until the verifier has ended. Kills the verifier if it has not ended
 * after two seconds. */
static void end_verifier(struct server *server)
{
	int status;

	close_fd(&server->requests);
	close_fd(&server->answers);
	for (int i = 0; i < 4000 && server->verifier.pid != 0 && !process_ended(&server->verifier, &status); i++)
		usleep(500);
	if (server->verifier.pid != 0) {
		process_kill(&server->verifier);
		while (!process_ended(&server->verifier, &status))
			usleep(500);
	}
	buf_clear(&server->answer);
}

static int ask_verifier(struct server *server, struct call *call, struct err *err)
{
	struct buf words = {0};

	if (server->verifier.pid == 0 && start_verifier(server, err) < 0)
		return -1;
	for (int i = 0; i < call->argc; i++)
		buf_add(&words, call->argv[i], strlen(call->argv[i]) + 1);
	uint32_t length = (uint32_t)words.length;
	bool wrote = file_write_all(server->requests, &length, sizeof length) &&
		     file_write_all(server->requests, words.data, length);

	buf_free(&words);
	call->running = wrote;
	if (!wrote)
		end_verifier(server);
	return wrote ? 0 : err_set(err, "the process that verifies definitions has ended");
}

/* Reads what the verifier has written: an answer, a NUL, and a byte that is 1 if the answer is an error message. */
static void read_verifier(struct server *server)
{
	struct call *call = verifier_call(server);

	buf_reserve(&server->answer, READ_BYTES);
	ssize_t got = read(server->answers, server->answer.data + server->answer.length, READ_BYTES);

	server->answer.length += got > 0 ? (size_t)got : 0;
	const size_t length = server->answer.length;
	const bool whole = length >= 2 && server->answer.data[length - 2] == '\0';

	if (got > 0 && !whole)
		return;
	if (call != NULL && call->running) {
		if (whole)
			send_answer(server, call, server->answer.data, length - 2, server->answer.data[length - 1] != 0);
		else
			send_failure(server, call, "the process that verifies definitions has ended");
		remove_call(server, call);
	}
	buf_clear(&server->answer);
	if (got <= 0)
		end_verifier(server);
}

/* ---- what runs --------------------------------------------------------------------------------------------------- */

static int running_commands(const struct server *server)
{
	int count = 0;

	for (const struct call *call = server->calls; call != NULL; call = call->next)
		count += call->running && call->tool->runner == TOOL_COMMAND;
	return count;
}

static bool may_start(const struct server *server, const struct call *call)
{
	const bool ending = server->verifier.pid != 0 && server->requests < 0;

	if (call->running)
		return false;
	return call->tool->runner == TOOL_VERIFIER ? !ending && call == verifier_call(server)
						   : running_commands(server) < COMMANDS_MOST;
}

/* Starts the calls that may run now. If a call cannot be started, the answer says why. */
static void start_calls(struct server *server)
{
	for (struct call *call = server->calls, *next; call != NULL; call = next) {
		struct err err = {""};

		next = call->next;
		if (!may_start(server, call))
			continue;
		if ((call->tool->runner == TOOL_COMMAND ? start_command : ask_verifier)(server, call, &err) < 0) {
			send_failure(server, call, err.text);
			remove_call(server, call);
		}
	}
}

/* Ends a call without an answer. If the verifier handles the call, sends SIGTERM to the verifier, which then stores the
 * verdicts of finished cases and ends. */
static void cancel_call(struct server *server, struct call *call)
{
	call->dead = true;
	if (!call->running) {
		remove_call(server, call);
	} else if (call->tool->runner == TOOL_COMMAND) {
		process_kill(&call->process);
	} else if (server->verifier.pid != 0) {
		kill(server->verifier.pid, SIGTERM);
		/* The verifier must get no other request, because a late SIGTERM could interrupt that request instead
		 * of this one. */
		close_fd(&server->requests);
	}
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void answer_initialize(struct server *server, const struct rpc_message *message)
{
	static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
	const char *asked = json_text_of(message->params, "protocolVersion"), *version = versions[0];
	struct buf result = {0};

	for (size_t i = 0; asked != NULL && i < sizeof versions / sizeof *versions; i++)
		if (strcmp(asked, versions[i]) == 0)
			version = versions[i];
	buf_printf(&result,
		   "{\"protocolVersion\": \"%s\", \"capabilities\": {\"tools\": {}}, "
		   "\"serverInfo\": {\"name\": \"reftest\", \"version\": \"%s\"}}",
		   version, REFTEST_VERSION);
	send_result(server, message->id, result.data);
	buf_free(&result);
}

static void answer_ping(struct server *server, const struct rpc_message *message)
{
	send_result(server, message->id, "{}");
}

static void answer_list(struct server *server, const struct rpc_message *message)
{
	struct buf result = {0};

	tools_write_list(&result);
	send_result(server, message->id, result.data);
	buf_free(&result);
}

static void add_call(struct server *server, struct call *call)
{
	struct call **at = &server->calls;

	while (*at != NULL)
		at = &(*at)->next;
	*at = call;
	server->call_count++;
}

static void answer_call(struct server *server, const struct rpc_message *message)
{
	const char *name = json_text_of(message->params, "name");
	const struct tool *tool = name != NULL ? tools_find(name) : NULL;
	struct err err = {""};

	if (tool == NULL) {
		err_set(&err, "unknown tool \"%s\"; tools/list lists the tools", err_show(name != NULL ? name : "").text);
		send_error(server, message->id, RPC_INVALID_PARAMS, err.text);
		return;
	}
	if (server->call_count >= CALLS_MOST) {
		send_error(server, message->id, RPC_BUSY, "64 requests have no answer yet; wait for an answer before you send "
							  "another request");
		return;
	}
	if (find_call(server, message->id) != NULL) {
		send_error(server, message->id, RPC_INVALID_REQUEST, "a request with this id has no answer yet");
		return;
	}
	struct call *call = calloc(1, sizeof *call);

	if (call == NULL)
		die_no_memory();
	call->tool = tool;
	call->output = call->errors = -1;
	call->process.pidfd = -1;
	memcpy(call->id, message->id, sizeof call->id);
	call->argc = tools_command_line(tool, json_member(message->params, "arguments"), &call->arena, &call->argv, &err);
	if (call->argc < 0) {
		send_error(server, message->id, RPC_INVALID_PARAMS, err.text);
		free_call(call);
		return;
	}
	add_call(server, call);
}

static void take_cancelled(struct server *server, const struct rpc_message *message)
{
	char id[RPC_ID_BYTES];
	struct call *call =
	    rpc_id_text(json_member(message->params, "requestId"), id) ? find_call(server, id) : NULL;

	if (call != NULL)
		cancel_call(server, call);
}

static const struct method {
	const char *name;
	enum rpc_kind kind;
	void (*take)(struct server *server, const struct rpc_message *message);
} methods[] = {
    {"initialize", RPC_REQUEST, answer_initialize},
    {"ping", RPC_REQUEST, answer_ping},
    {"tools/list", RPC_REQUEST, answer_list},
    {"tools/call", RPC_REQUEST, answer_call},
    {"notifications/cancelled", RPC_NOTIFICATION, take_cancelled},
};

/* Handles one message from the client. A notification never gets an answer, not even an error. */
static void take_message(struct server *server, const char *line, size_t length)
{
	struct rpc_message message;
	struct err err = {""};
	enum rpc_code code = rpc_read(line, length, &message, &err);
	const struct method *method = methods, *end = methods + sizeof methods / sizeof *methods;

	if (code != RPC_OK) {
		send_error(server, message.id, code, err.text);
	} else if (message.kind != RPC_RESPONSE) {
		while (method < end && (method->kind != message.kind || strcmp(method->name, message.method) != 0))
			method++;
		if (method < end) {
			method->take(server, &message);
		} else if (message.kind == RPC_REQUEST) {
			err_set(&err, "unknown method \"%s\"", err_show(message.method).text);
			send_error(server, message.id, RPC_UNKNOWN_METHOD, err.text);
		}
	}
	rpc_free(&message);
}

static bool is_blank(const char *line, size_t length)
{
	return strspn(line, " \t\r\n") >= length;
}

/* Handles all messages that have arrived completely. */
static void take_lines(struct server *server)
{
	size_t at = 0;
	char *end;

	while (at < server->input.length &&
	       (end = memchr(server->input.data + at, '\n', server->input.length - at)) != NULL) {
		size_t length = (size_t)(end - (server->input.data + at));

		*end = '\0';
		if (!server->skipping && !is_blank(server->input.data + at, length))
			take_message(server, server->input.data + at, length);
		server->skipping = false;
		at += length + 1;
	}
	buf_drop(&server->input, at);
	if (server->input.length > RPC_LINE_BYTES) {
		if (!server->skipping)
			send_error(server, "null", RPC_INVALID_REQUEST, "the message has more than 4 MiB");
		server->skipping = true;
		buf_clear(&server->input);
	}
}

static void read_input(struct server *server)
{
	buf_reserve(&server->input, READ_BYTES + 1);
	ssize_t got = read(STDIN_FILENO, server->input.data + server->input.length, READ_BYTES);

	if (got > 0)
		server->input.length += (size_t)got;
	else if (got == 0 || errno != EINTR)
		server->ended = true;
	if (server->ended && server->input.length > 0)
		server->input.data[server->input.length++] = '\n'; /* the last line has no line end of its own */
	take_lines(server);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

enum { FD_SIGNALS, FD_INPUT, FD_VERIFIER, FD_CALLS, FDS = FD_CALLS + 2 * CALLS_MOST };

/* Waits until something can be read. Returns false if a signal ends the server. */
static bool wait_and_take(struct server *server)
{
	struct pollfd fds[FDS] = {[FD_SIGNALS] = {server->program->signals, POLLIN, 0},
				  [FD_INPUT] = {server->ended ? -1 : STDIN_FILENO, POLLIN, 0},
				  [FD_VERIFIER] = {server->answers, POLLIN, 0}};
	nfds_t count = FD_CALLS;

	for (struct call *call = server->calls; call != NULL; call = call->next) {
		fds[count++] = (struct pollfd){call->output, POLLIN, 0};
		fds[count++] = (struct pollfd){call->errors, POLLIN, 0};
	}
	if (poll(fds, count, -1) < 0)
		return true; /* the error is EINTR, because no other error can occur */
	if ((fds[FD_SIGNALS].revents & POLLIN) != 0)
		return false;
	nfds_t at = FD_CALLS;

	for (struct call *call = server->calls, *next; call != NULL; call = next, at += 2) {
		next = call->next;
		if (fds[at].revents != 0)
			read_pipe(call, &call->output, &call->out, ANSWER_BYTES);
		if (fds[at + 1].revents != 0 && call->errors >= 0)
			read_pipe(call, &call->errors, &call->err, ERRORS_BYTES);
		end_command(server, call);
	}
	if (fds[FD_VERIFIER].revents != 0)
		read_verifier(server);
	if (fds[FD_INPUT].revents != 0)
		read_input(server);
	return true;
}

static int loop(struct server *server)
{
	bool goes_on = true;

	while (goes_on && !server->broken && (!server->ended || server->calls != NULL)) {
		goes_on = wait_and_take(server);
		start_calls(server);
	}
	return goes_on ? EXIT_VERIFIED : EXIT_INTERRUPTED;
}

static void close_server(struct server *server)
{
	int status;

	while (server->calls != NULL) {
		struct call *call = server->calls;

		if (call->process.pid != 0) {
			process_kill(&call->process);
			while (!process_ended(&call->process, &status))
				usleep(500);
		} else if (call->running && server->verifier.pid != 0) {
			kill(server->verifier.pid, SIGTERM);
		}
		remove_call(server, call);
	}
	end_verifier(server);
	buf_free(&server->input);
	buf_free(&server->answer);
}

static int serve(struct program *program, const struct shared_options *o, struct err *err)
{
	struct server server = {.program = program, .options = o, .requests = -1, .answers = -1, .verifier = {0, -1}};

	struct run_options unused;

	if (shared_options_read(o, program, &unused, err) < 0)
		return EXIT_USAGE;
	if (program_root_by_path(program, err) < 0 || program_settings(program, err) < 0)
		return EXIT_USAGE;
	if (program_signals(program, err) < 0 || start_verifier(&server, err) < 0)
		return EXIT_INTERNAL;
	int code = loop(&server);

	close_server(&server);
	return code;
}

static int start(struct program *program, int argc, char **argv)
{
	struct shared_options o = shared_options_default();
	struct command_line line;

	if (command_line_begin(&line, &command_serve, argc, argv, &o))
		line.code = serve(program, &o, &line.err);
	return command_line_end(&line);
}

const struct command command_serve = {
    .name = "serve",
    .summary = "answer requests of editors and agents on standard input and output (JSON-RPC, MCP)",
    .synopsis = "[options]",
    .description =
	"Reads JSON-RPC 2.0 messages from standard input, one on each line, and writes the answers to standard output. The "
	"methods are those of the Model Context Protocol: `initialize`, `ping`, `tools/list` and `tools/call`. The tools are "
	"`verify`, `verify_text`, `explain`, `diff`, `list` and `status`.\n\n"
	"References run in processes that have already loaded torch, as in `reftest watch`, so that a small definition is "
	"verified in milliseconds. The command ends when standard input ends and every request is answered.",
    .operands = OPERANDS_NONE,
    .rows = rows,
    .row_count = ROWS,
    .run = start,
};
