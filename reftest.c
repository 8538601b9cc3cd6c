/* reftest - options, the table of commands, and the struct that owns everything.
 *
 * `reftest [--root DIR] COMMAND …`. Signals are blocked at the start and read from a signalfd by whoever polls, so
 * nothing happens inside a handler. */
#include "reftest.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/near.h"
#include "commands/command.h"
#include "commands/options.h"
#include "dataset/dataset.h"
#include "remote/library.h"
#include "workers/judge.h"

#define REFTEST_VERSION "0.1.0"

static const struct {
	const char *name;
	int (*run)(struct reftest *reftest, int argc, char **argv);
	const char *help;
} commands[] = {
    {"verify", command_verify, "verify definitions against ground truth; run only what has no valid verdict"},
    {"status", command_status, "the table of verdicts, at once, from the cache"},
    {"explain", command_explain, "is a definition verified, stale or unknown, and which field changed"},
    {"watch", command_watch, "keep verdicts true while files change: each save is answered at once"},
    {"affected", command_affected, "the definitions and tests that changed files touch"},
    {"generate", command_generate, "write the pytest files of the dataset, tests/references; --check: are they current"},
    {"cache", command_cache, "stored verdicts: stats, export FILE, import FILE…, check, gc, path"},
    {"key", command_key, "make a key for signed records of shared caches (REFTEST_CACHE_KEY)"},
    {"hook", command_hook, "install or uninstall the git hooks that verify what is about to be committed"},
    {"warm", command_warm, "have other libraries import and compile now what verifying the dataset will take"},
    {"doctor", command_doctor, "what this machine has and lacks, and the command that mends it"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

int reftest_root(struct reftest *reftest, struct err *err)
{
	if (reftest->root[0] != '\0')
		return 0;
	return dataset_find_root(reftest->root_given, reftest->root, sizeof reftest->root, err);
}

int reftest_root_by_path(struct reftest *reftest, struct err *err)
{
	char here[PATH_MAX], given[PATH_MAX];

	if (reftest_root(reftest, err) < 0)
		return -1;
	if (reftest->root[0] == '/')
		return 0;
	memcpy(given, reftest->root, strlen(reftest->root) + 1);
	if (getcwd(here, sizeof here) == NULL)
		return err_errno(err, "cannot find out the working directory; name the dataset by --root DIR, from / on");
	bool is_here = strcmp(given, ".") == 0;

	if (snprintf(reftest->root, sizeof reftest->root, "%s%s%s", here, is_here ? "" : "/", is_here ? "" : given) >=
	    (int)sizeof reftest->root)
		return err_set(err, "%s/%s is longer than the system can open", here, given);
	return 0;
}

int reftest_kernels_library(struct reftest *reftest, struct err *err)
{
	return reftest->kernels.face != NULL ? 0 : kernels_open(&reftest->kernels, err);
}

void reftest_store(struct reftest *reftest, bool read_only, struct err *note)
{
	struct store_options options = {.read_only = read_only};
	struct err err = {""};

	note->text[0] = '\0';
	if (reftest->store != NULL)
		return;
	reftest->store = store_open(reftest->root, &options, note, &err);
	if (reftest->store == NULL && err.text[0] != '\0')
		err_set(note, "%s", err.text);
}

int reftest_signals(struct reftest *reftest, struct err *err)
{
	sigset_t set;

	if (reftest->signals >= 0)
		return 0;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_errno(err, "cannot block signals");
	reftest->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return reftest->signals < 0 ? err_errno(err, "cannot make a signalfd") : 0;
}

static void reftest_close(struct reftest *reftest)
{
	if (reftest->store != NULL)
		store_close(reftest->store);
	if (reftest->kernels.face != NULL)
		kernels_close(&reftest->kernels);
	if (reftest->signals >= 0)
		close(reftest->signals);
}

static void print_help(FILE *out)
{
	fprintf(out, "usage: reftest [--root DIR] COMMAND [options] [NAME…]\n\n");
	for (int i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	fprintf(out, "\n--root DIR: the dataset; else $REFTEST_ROOT, $FIB_DATASET_PATH, the nearest parent with definitions/.\n"
	             "`reftest COMMAND --help` lists a command's options.\n"
	             "Exit: 0 verified, 1 failed, 2 usage or invalid input, 3 not verifiable here, 4 internal, 130 interrupted.\n");
}

static int unknown_command(const char *word)
{
	const char *names[COMMANDS];

	for (int i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	const char *near = near_word(word, names, COMMANDS);

	fprintf(stderr, "reftest: there is no command '%s'%s%s%s\n", word, near != NULL ? "; did you mean '" : "",
	        near != NULL ? near : "; `reftest --help` lists them", near != NULL ? "'?" : "");
	return EXIT_USAGE;
}

/* Reads what stands before the command. Returns the command's index in argv, argc when there is none, or the negated
 * exit code minus 1 when the word was final (help, version, an error). */
static int read_global(struct reftest *reftest, int argc, char **argv)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--root") == 0 && i + 1 < argc) {
			reftest->root_given = argv[++i];
		} else if (strncmp(argv[i], "--root=", 7) == 0) {
			reftest->root_given = argv[i] + 7;
		} else if (strcmp(argv[i], "--version") == 0) {
			puts("reftest " REFTEST_VERSION);
			return -EXIT_VERIFIED - 1;
		} else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_help(stdout);
			return -EXIT_VERIFIED - 1;
		} else {
			fprintf(stderr, "reftest: %s is no option before a command; `reftest --help` lists what there is\n",
			        argv[i]);
			return -EXIT_USAGE - 1;
		}
	}
	return i;
}

/* 1, or the code to exit with when output went nowhere (a full disk, a closed pipe): a result nobody could read is
 * no result. */
static int flush_output(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	fprintf(stderr, "reftest: cannot write the results: %s\n", strerror(errno));
	return EXIT_INTERNAL;
}

int main(int argc, char **argv)
{
	struct reftest reftest = {.argv = argv, .signals = -1};
	const char *no_colour = getenv("NO_COLOR");

	if (argc > 1 && strcmp(argv[1], "judge") == 0)
		return judge_main(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "courier") == 0)
		return courier_main();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error like a full disk, told as one */
	reftest.colour = isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0');
	reftest.progress = isatty(STDERR_FILENO);
	int at = read_global(&reftest, argc, argv);

	if (at < 0)
		return -at - 1;
	if (at >= argc) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(argv[at], commands[i].name) == 0) {
			int code = commands[i].run(&reftest, argc - at, argv + at);

			reftest_close(&reftest);
			return flush_output(code);
		}
	return unknown_command(argv[at]);
}
