/* separation - decides which cases of a task may run on another lane, so that idle lanes help with a slow definition.
 *
 * The cases of a task run one after another in one runner, so a case could see what an earlier one left there. Cases
 * are separated only if the text of the reference can leave nothing behind (is_stateless in python/isolation.py), and
 * if the judge learns nothing from one case that it needs for the next. The verdicts are then the same on any lane. */
#ifndef REFTEST_WORKERS_POOL_SEPARATION_H
#define REFTEST_WORKERS_POOL_SEPARATION_H

#include "workers/pool/queues.h"

/* May the cases of the task be separated, as far as the task itself decides? No if nobody knows how long they take, if
 * a constant must be recovered, or if a ground truth is a text of the dataset, which could keep something, too. */
bool separation_by_task(const struct task *task);

/* Returns how long the cases after the current one are expected to take; 0 if they must stay where they are. Work of
 * which it is unknown whether its cases may be separated counts. */
double separation_seconds(const struct queued *work);

/* Takes about half of these cases, the last ones, off the work and returns them as work of its own. `work` must be
 * separable, and separation_seconds must not be 0. */
struct queued *separation_take(struct queued *work);

#endif
