/* work - what waits to be run, and what has come of it: two lists of the pool. */
#ifndef REFTEST_WORKERS_WORK_H
#define REFTEST_WORKERS_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workers/pool.h"

/* A task, or one case of a task that is tried again. */
struct work {
	struct work *next;
	struct task task;
	int job;       /* the case under way */
	bool alone;    /* a second try, with nobody else at work */
	bool loaded;   /* the reference has loaded at least once */
	char *failure; /* the blame when it does not load: every case is told so; owned; NULL */
	bool accident; /* of `failure` */
	char *reached; /* what the reference did besides computing, as the runner noticed; owned; NULL: nothing */
};

struct queue {
	struct work *first;
};

struct work *work_new(const struct task *task);
void work_free(struct work *work);
int work_left(const struct work *work); /* cases that have no result yet */

void queue_push(struct queue *queue, struct work *work); /* takes it over */
void queue_push_first(struct queue *queue, struct work *work);
struct work *queue_pop(struct queue *queue);             /* NULL: empty */
int queue_length(const struct queue *queue);
int queue_cancel(struct queue *queue, const void *owner); /* returns how many cases it dropped */

struct result {
	struct result *next;
	void *owner;
	const struct job *job;
	char *text;    /* the verdict as JSON; owned */
	size_t length;
	bool accident; /* not to be stored, whatever the verdict says */
	char *printed; /* owned; NULL: nothing */
	char *reached; /* copied; NULL: nothing */
	double seconds;
	int64_t time;
};

struct results {
	struct result *first;
};

/* Copies `result`, with this text for a verdict; takes over `printed`. */
void results_add(struct results *results, const struct result *result, const char *text, size_t length);
struct result *results_pop(struct results *results); /* for result_free; NULL: none */
int results_cancel(struct results *results, const void *owner);
void result_free(struct result *result);

#endif
