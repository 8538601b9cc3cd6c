#include "workers/pool/queues.h"

#include <stdlib.h>
#include <string.h>

struct queued *queues_new(const struct task *task)
{
	struct queued *work = calloc(1, sizeof *work);

	if (work == NULL)
		die_no_memory();
	work->task = *task;
	return work;
}

void queues_free(struct queued *work)
{
	free(work->failure);
	free(work->reached);
	free(work->own_because);
	free(work);
}

int queues_left(const struct queued *work)
{
	return work->task.job_count - work->job;
}

double queues_seconds(const struct queued *work)
{
	double seconds = 0;

	for (int i = work->job; work->task.seconds != NULL && i < work->task.job_count; i++)
		seconds += work->task.seconds[i];
	return seconds;
}

void queue_push(struct queue *queue, struct queued *work)
{
	struct queued **at = &queue->first;
	double seconds = queues_seconds(work);

	while (*at != NULL && ((*at)->task.urgent || queues_seconds(*at) >= seconds))
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
			dropped += queues_left(work);
			queues_free(work);
		} else {
			at = &work->next;
		}
	}
	return dropped;
}

void answers_add(struct answers *answers, const struct answer *answer, const char *text, size_t length)
{
	struct answer **end = &answers->first, *copy = malloc(sizeof *copy);

	if (copy == NULL)
		die_no_memory();
	*copy = *answer;
	copy->next = NULL;
	copy->length = length;
	copy->text = malloc(length + 1);
	if (copy->text == NULL)
		die_no_memory();
	memcpy(copy->text, text, length);
	copy->text[length] = '\0';
	copy->reached = answer->reached == NULL ? NULL : strdup(answer->reached);
	copy->own_because = answer->own_because == NULL ? NULL : strdup(answer->own_because);
	while (*end != NULL)
		end = &(*end)->next;
	*end = copy;
}

struct answer *answers_pop(struct answers *answers)
{
	struct answer *answer = answers->first;

	if (answer != NULL)
		answers->first = answer->next;
	return answer;
}

int answers_cancel(struct answers *answers, const void *owner)
{
	struct answer **at = &answers->first;
	int dropped = 0;

	while (*at != NULL) {
		struct answer *answer = *at;

		if (answer->owner == owner) {
			*at = answer->next;
			dropped++;
			answer_free(answer);
		} else {
			at = &answer->next;
		}
	}
	return dropped;
}

void answer_free(struct answer *answer)
{
	free(answer->text);
	free(answer->printed);
	free(answer->reached);
	free(answer->own_because);
	free(answer);
}
