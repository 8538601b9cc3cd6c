/* reftest - the main function: parses the global options before the command, and calls the command.
 *
 * The usage is `reftest [--root DIR] COMMAND …`. No code runs in a signal handler: commands block signals and read them
 * from a signalfd in their poll loop. */
#include "engine/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/fold_output.h"
#include "base/show.h"
#include "base/show_wrapped.h"
#include "cli/command.h"
#include "cli/help.h"

/* Parses the global options. Returns the index of the command in argv, or argc if there is no command. If the program
 * must exit at once (help, version, an error), returns -1 minus the exit status. */
static int read_global(struct program *program, int argc, char **argv)
{
	struct global_options o = {.root = NULL};
	struct err err = {""};
	int at = options_read_leading(global_rows, global_row_count, argc, argv, &o, &err);

	program->root_given = o.root;
	if (at < 0)
		show_print(stderr, "reftest: %s\n", err.text);
	else if (at == 0)
		fold_output(), help_program(stdout);
	else if (o.version)
		show_print(stdout, "reftest %s\n", REFTEST_VERSION);
	else
		return at;
	return at < 0 ? -EXIT_USAGE - 1 : -EXIT_VERIFIED - 1;
}

/* Flushes standard output and returns the exit status: `code`, or EXIT_INTERNAL if the results could not be written (a
 * full disk). If the reader of a pipe has closed it, ends the process by SIGPIPE, without a message. */
static int flush_output(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	const char *why = strerror(errno);

	if (show_reader_gone(stdout)) {
		signal(SIGPIPE, SIG_DFL);
		raise(SIGPIPE);
	}
	show_print(stderr, "reftest: cannot write the results: %s\n", why);
	return EXIT_INTERNAL;
}

static bool is_set(const char *variable)
{
	return variable != NULL && variable[0] != '\0';
}

/* Returns whether the output has colours. cli/manual_page.c describes the environment variables for this. */
static bool wants_colour(void)
{
	const char *force = getenv("CLICOLOR_FORCE");

	if (is_set(getenv("NO_COLOR")))
		return false;
	return (is_set(force) && strcmp(force, "0") != 0) || show_is_screen(STDOUT_FILENO);
}

int main(int argc, char **argv)
{
	struct program program = {.argv = argv, .signals = -1};

	/* Other processes of this user must not attach a debugger, because they could change the decisions of this
	 * process. Secrets such as passwords are removed from the environment, because no child of this process needs
	 * them. */
	prctl(PR_SET_DUMPABLE, 0);
	secrets_take(&program.secrets);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* so that write() returns an error if a file reaches the size limit of the process */
	program.colour = wants_colour();
	program.progress = show_is_screen(STDERR_FILENO);
	int at = read_global(&program, argc, argv);

	if (at < 0)
		return -at - 1;
	if (at >= argc) {
		help_program(stderr);
		return EXIT_USAGE;
	}
	struct arena arena = {0};
	struct err err = {""};
	const struct command *command = command_named(argv[at], &arena, &err);

	if (command == NULL) {
		const char *message = arena_printf(&arena, "reftest: %s\n", err.text);

		show_wrapped(stderr, message);
		arena_free(&arena);
		return EXIT_USAGE;
	}
	arena_free(&arena);
	int code = command->run(&program, argc - at, argv + at);

	program_close(&program);
	return flush_output(code);
}
