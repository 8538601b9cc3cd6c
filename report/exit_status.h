/* exit_status - computes the exit status of the commands that report verdicts: verify, status, explain and watch. */
#ifndef REFTEST_REPORT_EXIT_STATUS_H
#define REFTEST_REPORT_EXIT_STATUS_H

#include <stdbool.h>

#include "engine/run.h"

/* Returns the exit status of a command whose most severe verdict has a status of this group. */
int exit_status_of_group(enum status_group group);

/* Returns what --accept means by this word, NULL if it was not given. */
enum accept accept_read(const char *word);

/* Returns the group of a status for the exit status. With --accept checked, `checked` counts as `passed` does, and with
 * --accept approved, it does if the definition is as `approved` (approval_holds). The exit status is the only place where it
 * does. */
enum status_group exit_group(enum status status, bool approved, enum accept accept);

/* The same for the status of a result, with the options of its run. */
enum status_group exit_group_of_result(const struct result *result);

/* Returns EXIT_VERIFIED if every selected definition is verified, else the exit status for the most severe result. If
 * `strict` is true, a finding counts as a failure. */
int exit_status_of_run(const struct run *run, bool strict);

/* Returns the exit status for the more severe of two runs. `solutions` may be NULL. */
int exit_status_of_runs(const struct run *run, const struct run *solutions, bool strict);

#endif
