/* help - prints the texts of --help, generated from the tables of cli/command.h. */
#ifndef REFTEST_CLI_HELP_H
#define REFTEST_CLI_HELP_H

#include <stdio.h>

#include "base/arena.h"
#include "cli/command.h"

void help_command(const struct command *command, FILE *out);
void help_program(FILE *out);

/* Returns the description of an option: its help text and, if it has choices, its choices. Allocated in the arena. */
const char *help_of_row(const struct option_row *row, struct arena *arena);

#endif
