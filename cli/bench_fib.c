#include "cli/bench_fib.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/show.h"

extern char **environ;

/* Runs another program with the same access to files as this program. Unblocks all signals in this other program, so
 * that Ctrl-C ends it. Returns the exit status of the program, or -1. */
static int run_program(const char *const *words)
{
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t child;
	int status;

	fflush(stdout);
	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	int failed = posix_spawn(&child, words[0], NULL, &attributes, (char *const *)words, environ);

	posix_spawnattr_destroy(&attributes);
	if (failed != 0)
		return -1;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_installed(const char *python)
{
	const char *const words[] = {
	    python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('flashinfer_bench') is None)", NULL};

	return run_program(words) == 0;
}

void bench_fib(const struct run *run)
{
	static const char code[] = "import sys; sys.argv[0] = 'flashinfer-bench'; from flashinfer_bench.cli.main import cli; sys.exit(cli())";
	const char *const head[] = {run->machine.python, "-c", code, "run", "--no-save-results", "--local", run->program->root, "--definitions"};
	const size_t fixed = sizeof head / sizeof *head;
	struct arena arena = {0};
	const char **words = arena_array(&arena, fixed + (size_t)run->count + 1, sizeof *words);

	if (run->machine.python == NULL || !is_installed(run->machine.python)) {
		show_print(stderr, "reftest: flashinfer-bench is not installed in %s, so only reftest's figures are shown\n",
			   run->machine.python != NULL ? run->machine.python : "any Python that reftest finds");
	} else if (run->count > 0) {
		memcpy(words, head, sizeof head);
		for (int i = 0; i < run->count; i++)
			words[fixed + (size_t)i] = run->results[i]->file->name;
		show_print(stdout, "\noutput of `flashinfer-bench run` for the solutions of these definitions:\n");
		int status = run_program(words);

		if (status != 0)
			show_print(stderr, "reftest: flashinfer-bench ended with status %d\n", status);
	}
	arena_free(&arena);
}
