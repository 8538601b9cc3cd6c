/* operands - finds the dataset of files that a command line names. */
#ifndef REFTEST_CLI_OPERANDS_H
#define REFTEST_CLI_OPERANDS_H

#include "cli/command.h"

/* Does what named_files_root does (engine/named_files.h). If it made a dataset of links, prints on stderr where it is.
 * Returns 0, or -1 with a message. */
int operands_root(struct program *program, struct words *names, struct arena *arena, struct err *err);

#endif
