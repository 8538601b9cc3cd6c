/* operands - finds the dataset that contains the files on a command line. */
#ifndef REFTEST_CLI_OPERANDS_H
#define REFTEST_CLI_OPERANDS_H

#include "cli/command.h"

/* Sets program->root according to the files and folders in `names`, as named_files_root does (engine/named_files.h). If
 * named_files_root creates a dataset of symbolic links, prints the path of this dataset on stderr. Returns 0, or -1
 * with a message. */
int operands_root(struct program *program, struct words *names, struct arena *arena, struct err *err);

#endif
