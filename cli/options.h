/* options - parses a command's arguments according to the table of its options.
 *
 * The parser accepts "--name value", "--name=value", flags, and letters ("-q", "-qx"). Other arguments are names; "--"
 * ends the options. Each row of the table describes one option: the member of the command's struct that gets the value,
 * and the values that are allowed. The help texts, the manual page and the shell completions are also generated from
 * the rows (cli/command.h). */
#ifndef REFTEST_CLI_OPTIONS_H
#define REFTEST_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

enum option_kind {
	OPTION_FLAG,	/* bool: true when given */
	OPTION_UNFLAG,	/* bool: false when given */
	OPTION_TEXT,	/* const char *; any value is allowed, and `choices` are only completions */
	OPTION_CHOICE,	/* const char *, one of `choices` */
	OPTION_CHOICES, /* const char *, a list of `choices` separated by commas */
	OPTION_FILE,	/* const char *, a path */
	OPTION_FOLDER,	/* const char *, a path of a folder */
	OPTION_INT,	/* int, at least 0 */
	OPTION_REAL,	/* double, at least 0 and finite */
	OPTION_SEED,	/* uint64_t */
	OPTION_SIZE,	/* int64_t, a number of bytes above 0: "512M" */
	OPTION_LIST,	/* struct words; the option may be repeated */
	OPTION_OP_TYPES /* struct words, op_types of the dataset; the option may be repeated */
};

struct words {
	const char **items; /* pointers into argv; the array is allocated in the caller's arena */
	int count;
};

struct option_row {
	const char *name;  /* as the help text shows it: "--root"; with a letter "-q, --quiet" */
	enum option_kind kind;
	size_t offset;	     /* offset of the option's member in the command's struct */
	const char *value;   /* placeholder of the value in the help text: "DIR"; NULL for flags */
	const char *choices; /* the allowed values: "text|json"; N in "cuda:N" is any number; NULL: any value */
	const char *help;
};

/* Returns the long name of an option, including the dashes: "--quiet". */
const char *option_word(const struct option_row *row);

/* The table row of the option --help, which every command accepts. */
extern const struct option_row options_help;

/* Parses the arguments from argv[1] on. Options are stored in `into`, and all other arguments in `names`. Returns 0 on
 * success and 1 for --help. Returns -1 and sets `err` for a missing or invalid value, and for an unknown option. For an
 * unknown option, `err` suggests the most similar known option. */
int options_read(const struct option_row *rows, int count, int argc, char **argv, struct arena *arena, void *into,
                 struct words *names, struct err *err);

/* Parses the options before the first argument that is not an option. Returns the index of that argument in argv, or
 * argc if there is none. Returns 0 for --help. Returns -1 and sets `err` on error. */
int options_read_leading(const struct option_row *rows, int count, int argc, char **argv, void *into, struct err *err);

/* Converts "text|json|github" to "text, json or github", where `last` is "or". The result is allocated in `arena`. */
const char *options_choices(const char *choices, const char *last, struct arena *arena);

#endif
