/* lane_retry - runs a case again if its first result does not count. The first result does not count if a process of
 * the case was killed, if the case ran out of memory while other processes used memory, or if a case of a reference that
 * keeps nothing failed in a runner that had served another definition. */
#include "workers/pool/lane_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "workers/pool/isolation.h"

/* Queues the next `count` cases of the lane, to retry them when no other lane works. If the reference may keep something
 * from one case to the next, queues all remaining cases, and before them the earlier ones, so that the same cases run
 * before each case as in a run without a retry. */
static void queue_alone(struct pool_shared *shared, struct lane *lane, int count, bool attacked)
{
	bool all = lane->work->stateless != STATELESS_YES;
	int repeated = all ? lane->work->job : 0, skipped = lane->work->job - repeated;
	struct task part = lane->work->task;
	struct queued *work;

	if (all)
		count = part.job_count - lane->work->job;
	part.jobs += skipped;
	part.seconds += part.seconds != NULL ? skipped : 0;
	part.job_count = repeated + count;
	work = queued_new(&part);
	work->alone = true;
	work->attacked = attacked;
	work->stateless = lane->work->stateless;
	work->repeated = repeated;
	isolation_set(work, "no other reference may run at the same time as this reference");
	queue_push(&shared->alone, work);
	trace("lane", "%s %s: retry alone (%d cases)", part.name, part.jobs[0]->id, count);
	lane_judge_forget(lane);
	lane->work->job += count - 1;
	lane_next_case(shared, lane);
}

void lane_retry_alone(struct pool_shared *shared, struct lane *lane, bool attacked)
{
	queue_alone(shared, lane, 1, attacked);
}

void lane_retry_rest_alone(struct pool_shared *shared, struct lane *lane)
{
	queue_alone(shared, lane, lane->work->task.job_count - lane->work->job, false);
}

/* Returns whether the spare runners use GPU memory. On a GPU, each spare runner has a CUDA context, whose memory a
 * large case may need. */
bool lane_spares_hold_memory(const struct pool_shared *shared)
{
	return strcmp(shared->device, "cpu") != 0 && zygote_idle(&shared->runners) > 0;
}

static bool lacks_memory(const char *text, size_t length)
{
	struct arena arena = {0};
	const struct verdict *verdict = strstr(text, "memory") == NULL ? NULL : verdict_parse(text, length, &arena, NULL);
	bool lacks = verdict != NULL && verdict->reason == REASON_MEMORY;

	arena_free(&arena);
	return lacks;
}

bool lane_memory_was_shared(const struct pool_shared *shared, const struct lane *lane)
{
	return !lane->work->alone && (lane->beside || pool_shared_busy(shared, lane) || lane_spares_hold_memory(shared));
}

static bool is_failure(const char *text, size_t length)
{
	struct arena arena = {0};
	const struct verdict *verdict = verdict_parse(text, length, &arena, NULL);
	bool failure = verdict == NULL || (verdict->status != STATUS_PASSED && verdict->status != STATUS_CHECKED);

	arena_free(&arena);
	return failure;
}

/* Runs the current case and the cases after it in a new runner, which serves only this definition. */
static void repeat_in_own_runner(struct pool_shared *shared, struct lane *lane)
{
	trace("lane", "%s %s: repeated in a runner of its own", lane->work->task.name, lane_current_job(lane)->id);
	lane_drop_child(shared, lane);
	lane_truth_drop(shared, lane);
	lane_judge_forget(lane);
	free(lane->work->failure);
	lane->work->failure = NULL;
	isolation_set(lane->work, "the reference failed in a runner that other references may have used, so it "
				  "runs again in a new runner");
	lane->used = false;
	lane->phase = LANE_WAITING;
}

bool lane_runs_again(struct pool_shared *shared, struct lane *lane, const char *text, size_t length)
{
	bool failure = lane->work->isolation == ISOLATION_KEPT && is_failure(text, length);

	if (lane_memory_was_shared(shared, lane) && lacks_memory(text, length)) {
		lane_retry_alone(shared, lane, false);
		return true;
	}
	/* If the reference may keep something from one case to the next, it might pass in a new runner, where no case
	 * ran before, although it fails after other cases. */
	if (failure && lane->used && lane->work->stateless == STATELESS_YES) {
		repeat_in_own_runner(shared, lane);
		return true;
	}
	if (failure)
		isolation_set(lane->work, "the reference failed, so no other definition runs in its runner");
	return false;
}
