/* separation - decides which cases of a task may run on another lane, so that idle lanes help with a slow definition.
 *
 * The cases of a task run one after another in one runner, so a case could see what an earlier case left there. Cases
 * are separated only if the source code of the reference can leave nothing behind (is_stateless in
 * python/isolation.py), and if the judge needs nothing from one case for the next case. The verdicts are then the same
 * on any lane. */
#ifndef REFTEST_WORKERS_POOL_SEPARATION_H
#define REFTEST_WORKERS_POOL_SEPARATION_H

#include "workers/pool/task_order.h"

/* Returns whether the task itself allows its cases to be separated. The task does not allow it if the times of the
 * cases are unknown, if a constant must be recovered, or if a ground truth is Python source in the dataset. Python
 * source could also keep something from case to case. */
bool separation_by_task(const struct task *task);

/* Returns how long the cases after the current one are expected to take, or 0 if they must not be separated. If it is
 * not known yet whether the cases may be separated, returns their time, too. */
double separation_seconds(const struct queued *work);

/* Removes the last cases from `work`, with about half of the time that remains, and returns these cases as separate
 * work. `work` must be separable, and separation_seconds must not be 0. */
struct queued *separation_take(struct queued *work);

#endif
