/* options - a command's words, read by a table.
 *
 * "--name value", "--name=value" and flags; words that are no option are names; "--" ends the options. A table row
 * says where in the command's own struct the value goes, so reading is one loop for all commands. */
#ifndef REFTEST_COMMANDS_OPTIONS_H
#define REFTEST_COMMANDS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
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

/* What a command was told, from options_begin to options_end. */
struct told {
	struct words names;
	struct arena arena; /* what lives as long as the command */
	struct err err;	    /* said at its end, unless it is empty */
	int code;	    /* the exit code; EXIT_USAGE until somebody knows better */
};

/* Reads argv[1] … into `into`; what is no option goes to `names`. Returns 0, -1 with a sentence (unknown option with
 * the nearest known one, a missing or bad value), or 1 when -h or --help was given. */
int options_read(const struct option_row *rows, int count, int argc, char **argv, struct arena *arena, void *into,
                 struct words *names, struct err *err);

/* Reads a command's words and says whether it is to run. It is not after -h or --help, when `usage` ("verify [options]
 * [NAME…]", with whatever lines are to follow) and the rows were printed, nor when the words are wrong. Either way
 * options_end says what there is to say, frees, and returns the exit code. */
bool options_begin(struct told *told, const char *usage, const struct option_row *rows, int count, int argc,
		   char **argv, void *into);
int options_end(struct told *told);

/* What --format asks for, of a command that has two forms: 0 text, 1 json, else -1 with a sentence. */
int options_json(const char *format, struct err *err);

#endif
