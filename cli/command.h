/* command - lists the commands of reftest, each with its name, options, help texts and function.
 *
 * A new command needs its own file in cli/, which defines one `struct command`. The struct must be declared below and
 * listed in `commands` of cli/command.c. The command also needs a row in docs/getting-started.md. The option parser,
 * the help texts, the manual page and the shell completions use the structs of the commands. The function `run` gets
 * the arguments of the command (argv[0] is the command's name), prints results to stdout and all other messages to
 * stderr, and returns an exit status.
 *
 * In a description, each paragraph is one line, and an empty line separates paragraphs. Text in `backquotes` is text
 * that the user types. */
#ifndef REFTEST_CLI_COMMAND_H
#define REFTEST_CLI_COMMAND_H

#include "cli/options.h"
#include "engine/program.h"

#define REFTEST_VERSION "0.1.0"
#define REFTEST_DATE "2026-11-23" /* date of this version */

enum operands {
	OPERANDS_NONE,	      /* names are rejected */
	OPERANDS_DEFINITIONS, /* names of definitions */
	OPERANDS_FILES,
	OPERANDS_COMMANDS
};

struct subcommand {
	const char *name;
	const char *operands; /* "FILE…", "" */
	const char *summary;
	int least, most; /* the least and the largest number of operands */
	int (*run)(struct program *program, const void *options, const struct words *names, struct err *err);
};

struct command {
	const char *name;
	const char *summary;	 /* one line */
	const char *synopsis;	 /* the arguments in the usage line: "[options] [NAME…]" */
	const char *description; /* paragraphs */
	bool hidden;		 /* only the Makefile and shell scripts run this command, so --help does not list it */
	enum operands operands;	 /* the kind of the operands; unused if the command has subcommands */
	const struct option_row *rows;
	int row_count;
	const struct subcommand *subcommands;
	int subcommand_count;
	int (*run)(struct program *program, int argc, char **argv);
};

extern const struct command command_verify, command_list, command_help, command_status, command_explain,
    command_tolerance, command_coverage, command_report, command_drift, command_watch, command_check, command_diff,
    command_approve, command_extract, command_web, command_affected, command_generate, command_bench, command_clone,
    command_cache, command_key, command_hook, command_work,
    command_warm, command_serve, command_doctor, command_document, command_complete;

/* All commands in the order in which --help lists them; hidden commands are last. */
extern const struct command *const commands[];
extern const int command_count;
/* Returns the command with the name `name`. If there is no such command, returns NULL and sets `err` to a message that
 * suggests the most similar name. */
const struct command *command_named(const char *name, struct arena *arena, struct err *err);
int command_shown(void); /* returns the number of commands that are not hidden */

/* Options before the command. */
struct global_options {
	const char *root;
	bool version;
};

extern const struct option_row global_rows[];
extern const int global_row_count;
extern const char global_synopsis[], global_summary[];

/* A row in the list of exit statuses in the help text and the manual page. */
struct exit_row {
	int code;
	const char *word, *meaning;
};

extern const struct exit_row exit_rows[];
extern const int exit_row_count;

#endif
