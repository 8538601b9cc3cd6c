#include "workers/work.h"

#include <stdlib.h>
#include <string.h>

struct work *work_new(const struct task *task)
{
	struct work *work = calloc(1, sizeof *work);

	if (work == NULL)
		die_no_memory();
	work->task = *task;
	return work;
}

void work_free(struct work *work)
{
	free(work->failure);
	free(work->reached);
	free(work);
}

int work_left(const struct work *work)
{
	return work->task.job_count - work->job;
}

void queue_push(struct queue *queue, struct work *work)
{
	struct work **end = &queue->first;

	while (*end != NULL)
		end = &(*end)->next;
	*end = work;
	work->next = NULL;
}

void queue_push_first(struct queue *queue, struct work *work)
{
	work->next = queue->first;
	queue->first = work;
}

struct work *queue_pop(struct queue *queue)
{
	struct work *work = queue->first;

	if (work != NULL)
		queue->first = work->next;
	return work;
}

int queue_length(const struct queue *queue)
{
	int length = 0;

	for (const struct work *work = queue->first; work != NULL; work = work->next)
		length++;
	return length;
}

int queue_cancel(struct queue *queue, const void *owner)
{
	struct work **at = &queue->first;
	int dropped = 0;

	while (*at != NULL) {
		struct work *work = *at;

		if (work->task.owner == owner) {
			*at = work->next;
			dropped += work_left(work);
			work_free(work);
		} else {
			at = &work->next;
		}
	}
	return dropped;
}

void results_add(struct results *results, const struct result *result, const char *text, size_t length)
{
	struct result **end = &results->first, *copy = malloc(sizeof *copy);

	if (copy == NULL)
		die_no_memory();
	*copy = *result;
	copy->next = NULL;
	copy->length = length;
	copy->text = malloc(length + 1);
	if (copy->text == NULL)
		die_no_memory();
	memcpy(copy->text, text, length);
	copy->text[length] = '\0';
	copy->reached = result->reached == NULL ? NULL : strdup(result->reached);
	while (*end != NULL)
		end = &(*end)->next;
	*end = copy;
}

struct result *results_pop(struct results *results)
{
	struct result *result = results->first;

	if (result != NULL)
		results->first = result->next;
	return result;
}

int results_cancel(struct results *results, const void *owner)
{
	struct result **at = &results->first;
	int dropped = 0;

	while (*at != NULL) {
		struct result *result = *at;

		if (result->owner == owner) {
			*at = result->next;
			dropped++;
			result_free(result);
		} else {
			at = &result->next;
		}
	}
	return dropped;
}

void result_free(struct result *result)
{
	free(result->text);
	free(result->printed);
	free(result->reached);
	free(result);
}
