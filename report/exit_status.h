/* exit_status - computes the exit status of the commands that report verdicts: verify, status, explain and watch. */
#ifndef REFTEST_REPORT_EXIT_STATUS_H
#define REFTEST_REPORT_EXIT_STATUS_H

#include <stdbool.h>

#include "engine/run.h"

/* Returns the exit status of a command whose most severe verdict has a status of this group. */
int exit_status_of_group(enum status_group group);

/* Reads the value of --accept. NULL: ACCEPT_NONE. */
enum accepted accepted_read(const char *text);

/* Returns the group of a status for the exit status. With --accept, `checked` may count as `passed` does. The exit
 * status is the only place where it does. */
enum status_group exit_group(enum status status, enum reason reason, enum accepted accepted);

/* Returns EXIT_VERIFIED if every selected definition is verified, else the exit status for the most severe result. If
 * `strict` is true, a finding counts as a failure. */
int exit_status_of_run(const struct run *run, bool strict);

/* Returns the exit status for the more severe of two runs. `solutions` may be NULL. */
int exit_status_of_runs(const struct run *run, const struct run *solutions, bool strict);

#endif
