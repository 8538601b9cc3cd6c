#include "workers/pool/definition_order.h"

#include <stdlib.h>
#include <string.h>

struct queued *queued_new(const struct task *task)
{
	struct queued *work = calloc(1, sizeof *work);

	if (work == NULL)
		die_no_memory();
	work->task = *task;
	return work;
}

void queued_free(struct queued *work)
{
	free(work->failure);
	free(work->reached);
	free(work->own_because);
	free(work);
}

int queued_left(const struct queued *work)
{
	return work->task.job_count - (work->job > work->repeated ? work->job : work->repeated);
}

double queued_seconds(const struct queued *work)
{
	double seconds = 0;

	for (int i = work->job; work->task.seconds != NULL && i < work->task.job_count; i++)
		seconds += work->task.seconds[i];
	return seconds;
}

void queue_push(struct queue *queue, struct queued *work)
{
	struct queued **at = &queue->first;
	double seconds = queued_seconds(work);

	while (*at != NULL && ((*at)->task.urgent || queued_seconds(*at) >= seconds))
		at = &(*at)->next;
	work->next = *at;
	*at = work;
}

void queue_push_first(struct queue *queue, struct queued *work)
{
	work->next = queue->first;
	queue->first = work;
}

struct queued *queue_pop(struct queue *queue)
{
	struct queued *work = queue->first;

	if (work != NULL)
		queue->first = work->next;
	return work;
}

int queue_length(const struct queue *queue)
{
	int length = 0;

	for (const struct queued *work = queue->first; work != NULL; work = work->next)
		length++;
	return length;
}

int queue_cancel(struct queue *queue, const void *owner)
{
	struct queued **at = &queue->first;
	int dropped = 0;

	while (*at != NULL) {
		struct queued *work = *at;

		if (work->task.owner == owner) {
			*at = work->next;
			dropped += queued_left(work);
			queued_free(work);
		} else {
			at = &work->next;
		}
	}
	return dropped;
}
