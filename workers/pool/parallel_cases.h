/* parallel_cases - decides which cases of a task may run on another lane (a judge and its runner), so that idle lanes
 * help with a slow definition.
 *
 * The cases of a task run one after another in one runner, so a case could see data that an earlier case left there.
 * Cases run on another lane only if the source code of the reference can leave no data behind in the runner
 * (is_stateless in python/isolation.py), and if the judge uses no data of one case for another. The verdicts are then
 * the same on any lane. */
#ifndef REFTEST_WORKERS_POOL_PARALLEL_CASES_H
#define REFTEST_WORKERS_POOL_PARALLEL_CASES_H

#include "workers/pool/definition_order.h"

/* Returns whether the task itself allows some of its cases to run on another lane. The task does not allow this if the
 * times of the cases are unknown, if a constant must be recovered, or if a ground truth is Python source in the
 * dataset, because this source code may keep data from one case to the next. */
bool parallel_cases_by_task(const struct task *task);

/* Returns the expected time in seconds of the cases after the current one, or 0 if these cases must not run on another
 * lane. Returns the time, and not 0, as long as it is unknown whether they may (work->separable is
 * SEPARABLE_UNKNOWN). */
double parallel_cases_seconds(const struct queued *work);

/* Removes the last cases from `work` and returns them as separate work. The removed cases take about half of the
 * remaining time. Call this only if work->separable is SEPARABLE_YES and parallel_cases_seconds does not return 0. */
struct queued *parallel_cases_take(struct queued *work);

#endif
