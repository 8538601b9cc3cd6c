/* exit_status - computes the exit status of the commands that report verdicts: verify, status, explain and watch. */
#ifndef REFTEST_REPORT_EXIT_STATUS_H
#define REFTEST_REPORT_EXIT_STATUS_H

#include <stdbool.h>

#include "engine/run.h"

/* Returns the exit status of a command whose most severe verdict has a status in this group. */
int exit_status_of_group(enum status_group group);

/* Returns the group that decides the exit status for a definition with this status. With --accept, `checked` may count
 * as `passed`, but only for the exit status. `kind` matters only for STATUS_CHECKED. */
enum status_group exit_group(enum status status, enum checked_kind kind, unsigned accept);

/* Returns the group for the status of a result, with the options of its run. */
enum status_group exit_group_of_result(const struct result *result);

/* Returns the most severe group among several checked definitions. For each enum checked_kind, `counts` has the number
 * of checked definitions of that kind. Returns GROUP_VERIFIED if all counts are 0. */
enum status_group exit_group_of_checked(const int64_t *counts, unsigned accept);

/* Returns EXIT_VERIFIED if every selected definition is verified, else the exit status for the most severe result. If
 * `strict` is true, a finding counts as a failure. */
int exit_status_of_run(const struct run *run, bool strict);

/* Returns the exit status for the more severe of two runs. `solutions` may be NULL. */
int exit_status_of_runs(const struct run *run, const struct run *solutions, bool strict);

#endif
