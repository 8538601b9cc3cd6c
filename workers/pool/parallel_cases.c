#include "workers/pool/parallel_cases.h"

#include <math.h>
#include <string.h>

bool parallel_cases_by_task(const struct task *task)
{
	if (task->seconds == NULL || task->program_count > 0)
		return false;
	for (int i = 0; i < task->job_count; i++)
		for (int k = 0; k < task->jobs[i]->constant_count; k++)
			if (isnan(task->jobs[i]->constants[k].value))
				return false;
	return true;
}

double parallel_cases_seconds(const struct queued *work)
{
	double seconds = 0;

	if (work->separable == SEPARABLE_NO || work->alone || work->failure != NULL || work->reached != NULL ||
	    work->isolation == ISOLATION_UNKNOWN)
		return 0;
	for (int i = work->job + 1; i < work->task.job_count; i++)
		seconds += work->task.seconds[i];
	return seconds;
}

struct queued *parallel_cases_take(struct queued *work)
{
	double all = parallel_cases_seconds(work), taken = 0;
	int first = work->task.job_count;
	struct task task = work->task;

	do
		taken += task.seconds[--first];
	while (taken < all / 2);
	task.jobs += first;
	task.seconds += first;
	task.job_count -= first;
	work->task.job_count = first;

	struct queued *other = queued_new(&task);

	other->isolation = work->isolation;
	other->separable = SEPARABLE_YES;
	other->stateless = work->stateless;
	other->own_because = work->own_because == NULL ? NULL : strdup(work->own_because);
	if (work->own_because != NULL && other->own_because == NULL)
		die_no_memory();
	return other;
}
