/* command_line - parses the arguments of a command (options, names, subcommand) and prints its help or a usage
 * error. */
#ifndef REFTEST_CLI_COMMAND_LINE_H
#define REFTEST_CLI_COMMAND_LINE_H

#include "cli/command.h"

/* The parsed arguments of a command. The arguments are valid between command_line_begin and command_line_end. */
struct command_line {
	const struct command *command;
	struct words names;
	struct arena arena; /* command_line_end frees this memory */
	struct err err;	    /* command_line_end prints this error if it is not empty */
	int code;	    /* the exit status; EXIT_USAGE by default */
};

/* Parses a command's arguments into the command's struct `into`. Returns true if the caller must run the command.
 * Returns false after an error. After -h or --help, prints the help text and returns false. The caller must always call
 * command_line_end afterwards, which prints the error if there is one, frees memory, and returns the exit status. */
bool command_line_begin(struct command_line *line, const struct command *command, int argc, char **argv, void *into);
int command_line_end(struct command_line *line);

/* The first of the names is the subcommand, and the others are its operands. Reads the subcommand, and checks the
 * number of operands. On error, returns NULL and sets `err`. */
const struct subcommand *command_line_subcommand(struct command_line *line);

#endif
