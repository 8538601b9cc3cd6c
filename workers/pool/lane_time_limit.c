/* lane_time_limit - kills the runner or the judge of a lane when its time limit has passed. */
#include "workers/pool/lane_internal.h"

#include <stdint.h>

#include "workers/sandbox/sandbox.h"

/* Returns whether a reference may have stopped the judge or the runner of this lane. This is possible only if
 * references can send signals to other processes of the pool. */
static bool may_be_stopped(const struct pool_shared *shared)
{
	return sandbox_gap_is_open(sandbox_gap_named("signals"), shared->runners.layers);
}

/* Handles a judge that is late. Another process may have stopped the judge or used its processor time. Therefore the
 * case gets another judge, and is tried again while no other reference runs. */
static void on_late_judge(struct pool_shared *shared, struct lane *lane, double limit)
{
	struct arena arena = {0};
	const char *what = lane->blamed || lane->asked ? "the judge gave no verdict" : "the inputs of the case were not ready";

	lane_kill_judge(shared, lane);
	if (!lane->work->alone)
		lane_retry_alone(shared, lane, true);
	else
		lane_verdict_without_judge(shared, lane, REASON_TIMEOUT,
					   arena_printf(&arena, "in the second attempt, %s within %g s", what, limit));
	arena_free(&arena);
}

static void on_late(struct pool_shared *shared, struct lane *lane)
{
	struct arena arena = {0};
	double limit = lane->blamed ? BLAME_MS / 1000.0 : shared->timeout_s;

	if (lane->blamed || (!lane->making && lane->loaded && !lane->running && lane->child != NULL)) {
		on_late_judge(shared, lane, limit);
	} else if (may_be_stopped(shared) && shared->lane_count > 1 && !lane->work->alone) {
		lane_drop_child(shared, lane);
		lane_retry_alone(shared, lane, true);
	} else if (lane->making) {
		lane_maker_late(shared, lane, limit);
	} else {
		lane_blame_child(shared, lane, "timeout",
			    arena_printf(&arena, "the reference did not %s within %g s",
					 lane->loaded ? "answer" : "load", limit));
	}
	arena_free(&arena);
}

int lane_check_timeouts(struct pool_shared *shared, struct lane *lane, int64_t now, struct err *err)
{
	if (lane->phase == LANE_WORKING && now >= lane->deadline)
		on_late(shared, lane);
	if (lane->judge.pid != 0 && !lane->up && lane->channel.fd >= 0 && now >= lane->up_deadline)
		return err_set(err, "the judge does not start on %s", shared->device);
	if (lane->stale > 0 && !lane->blamed && now >= lane->stale_deadline) {
		lane_kill_judge(shared, lane);
		if (lane->phase == LANE_WORKING)
			lane->phase = LANE_WAITING;
	}
	return 0;
}

int64_t lane_deadline(const struct lane *lane)
{
	int64_t deadline = lane->phase == LANE_WORKING ? lane->deadline : lane->alone_by != 0 ? lane->alone_by : INT64_MAX;

	deadline = lane->truth.deadline < deadline ? lane->truth.deadline : deadline;
	if (lane->judge.pid != 0 && !lane->up && lane->channel.fd >= 0 && lane->up_deadline < deadline)
		deadline = lane->up_deadline;
	return lane->stale > 0 && !lane->blamed && lane->stale_deadline < deadline ? lane->stale_deadline : deadline;
}
