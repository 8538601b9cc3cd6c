/* options - a command's words, read by a table.
 *
 * "--name value", "--name=value" and flags; words that are no option are names; "--" ends the options. A table row
 * says where in the command's own struct the value goes, so reading is one loop for all commands. */
#ifndef REFTEST_COMMANDS_OPTIONS_H
#define REFTEST_COMMANDS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum option_kind {
	OPTION_FLAG,   /* bool: true when given */
	OPTION_UNFLAG, /* bool: false when given */
	OPTION_TEXT,   /* const char * */
	OPTION_INT,    /* int, at least 0 */
	OPTION_REAL,   /* double, at least 0 and finite */
	OPTION_SEED,   /* uint64_t */
	OPTION_LIST    /* struct words: may be given several times */
};

struct words {
	const char **items; /* points into argv; the array is the caller's arena's */
	int count;
};

struct option_row {
	const char *name;  /* with its dashes: "--root" */
	enum option_kind kind;
	size_t offset;     /* into the command's struct */
	const char *value; /* what a value is called in the help, NULL for flags */
	const char *help;
};

struct arena;

/* Reads argv[1] … into `into`; what is no option goes to `names`. Returns 0, -1 with a sentence (unknown option with
 * the nearest known one, a missing or bad value), or 1 when -h or --help was given. */
int options_read(const struct option_row *rows, int count, int argc, char **argv, struct arena *arena, void *into,
                 struct words *names, struct err *err);

/* The rows as help lines on stdout. */
void options_help(const struct option_row *rows, int count);

#endif
