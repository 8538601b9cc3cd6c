/* lane_internal - functions shared by the files behind workers/pool/lane.h. */
#ifndef REFTEST_WORKERS_POOL_LANE_INTERNAL_H
#define REFTEST_WORKERS_POOL_LANE_INTERNAL_H

#include "workers/pool/lane.h"

enum { BLAME_MS = 30000 }; /* time limit for a judge to turn a failure into a verdict */

/* ---- lane.c ---- */

/* Kills the judge. After the killed judge has been reaped, another judge is started when it is needed. */
void lane_kill_judge(struct pool_shared *shared, struct lane *lane);
/* Gives the case an error verdict without a judge, because the judge itself has failed. */
void lane_verdict_without_judge(struct pool_shared *shared, struct lane *lane, enum reason reason, const char *message);
/* Kills the runner and asks the judge to turn this failure of the reference into a verdict. */
void lane_blame_child(struct pool_shared *shared, struct lane *lane, const char *reason, const char *message);

/* ---- lane_timeout.c ---- */

/* Kills the judge or the runner if its deadline has passed at time `now`. Returns -1 if no judge can be started. */
int lane_check_timeouts(struct pool_shared *shared, struct lane *lane, int64_t now, struct err *err);

/* ---- lane_judge.c ---- */

/* Starts the judge of a lane. Returns -1 if the judge cannot be started. When the judge's first message arrives,
 * `lane->up` becomes true. */
int lane_judge_start(struct pool_shared *shared, struct lane *lane, struct err *err);
/* Handles the first message of a judge. Returns -1 if no judge can be started. */
int lane_judge_hello(struct pool_shared *shared, struct lane *lane, const char *line, size_t length, struct err *err);
/* lane_judge_tell sends a message to the judge. lane_judge_ask sends a message and expects an answer, which counts as
 * outstanding. */
void lane_judge_tell(struct lane *lane, const char *text, size_t length);
void lane_judge_ask(struct lane *lane, const char *text, size_t length);
/* Marks all outstanding answers of the judge as stale, so that they are ignored. */
void lane_judge_forget(struct lane *lane);

/* ---- lane_provider.c ---- */

/* Keeps a copy of the judge's {"provide"} message until the provider is free. Takes ownership of `fd`, the descriptor
 * that came with the message (-1: none). */
void lane_provider_take(struct pool_shared *shared, struct lane *lane, const char *line, int fd);
/* Cancels the lane's request to the provider. If the provider already works on the request, the provider is killed,
 * because it writes to memory of the judge that is about to be reused. */
void lane_provider_drop(struct pool_shared *shared, struct lane *lane);

#endif
