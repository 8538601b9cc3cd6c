/* command - what `reftest NAME …` runs. One file a command; the table of them is in reftest.c. A command gets its own
 * words (argv[0] is its name), prints results to stdout and everything else to stderr, and returns an exit code. */
#ifndef REFTEST_COMMANDS_COMMAND_H
#define REFTEST_COMMANDS_COMMAND_H

#include "reftest.h"

int command_verify(struct reftest *reftest, int argc, char **argv);
int command_status(struct reftest *reftest, int argc, char **argv);
int command_explain(struct reftest *reftest, int argc, char **argv);
int command_generate(struct reftest *reftest, int argc, char **argv);
int command_watch(struct reftest *reftest, int argc, char **argv);
int command_cache(struct reftest *reftest, int argc, char **argv);
int command_key(struct reftest *reftest, int argc, char **argv);
int command_warm(struct reftest *reftest, int argc, char **argv);
int command_doctor(struct reftest *reftest, int argc, char **argv);
int command_affected(struct reftest *reftest, int argc, char **argv);
int command_hook(struct reftest *reftest, int argc, char **argv);

#endif
