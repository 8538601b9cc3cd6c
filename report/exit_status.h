/* exit_status - computes the exit status of the commands that report verdicts: verify, status, explain and watch. */
#ifndef REFTEST_REPORT_EXIT_STATUS_H
#define REFTEST_REPORT_EXIT_STATUS_H

#include <stdbool.h>

#include "engine/run.h"

/* Returns the exit status of a command whose most severe verdict is in this group. */
int exit_status_of_group(enum status_group group);

/* Returns the group of a status. exit_status_of_group computes the exit status from the group. With --accept,
 * STATUS_CHECKED may have the same group as STATUS_PASSED. `kind` is used only for STATUS_CHECKED. */
enum status_group exit_group(enum status status, enum checked_kind kind, unsigned accept);

/* Returns the group of a result's status, according to the option --accept of the result's run. */
enum status_group exit_group_of_result(const struct result *result);

/* Returns the most severe group among several definitions with STATUS_CHECKED. `counts` has the number of definitions
 * for each enum checked_kind. Returns GROUP_VERIFIED if all counts are 0. */
enum status_group exit_group_of_checked(const int64_t *counts, unsigned accept);

/* Returns EXIT_VERIFIED if every selected definition is verified. Otherwise returns the exit status for the most severe
 * result. If `strict` is true, a finding counts as a failure. */
int exit_status_of_run(const struct run *run, bool strict);

/* Returns the exit status for two runs together: the more severe one of their two exit statuses. `solutions` may be
 * NULL. */
int exit_status_of_runs(const struct run *run, const struct run *solutions, bool strict);

#endif
