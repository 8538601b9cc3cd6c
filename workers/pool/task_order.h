/* task_order - the tasks of a pool that wait for a lane (a judge and its runner), in the order in which they run: the
 * longest first (queue_push). */
#ifndef REFTEST_WORKERS_POOL_TASK_ORDER_H
#define REFTEST_WORKERS_POOL_TASK_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workers/pool/task.h"

/* Whether a task's runner may serve other tasks afterwards (workers/pool/isolation.h). */
enum isolation { ISOLATION_UNKNOWN, ISOLATION_OWN, ISOLATION_KEPT };

/* Whether the cases of a task may be divided among several runners that run at the same time
 * (workers/pool/separation.h). */
enum separable { SEPARABLE_UNKNOWN, SEPARABLE_NO, SEPARABLE_YES };

/* An element of a queue: a task, or a single case that is retried. */
struct queued {
	struct queued *next;
	struct task task;
	int job;       /* index of the current case */
	bool alone;    /* a retried case, which runs while no other lane works */
	bool attacked; /* the case is retried because something killed or stopped one of its processes */
	bool loaded;   /* the reference has been loaded at least once */
	char *failure; /* the {"blame"} message for every case if the reference could not be loaded, else NULL; owned */
	bool accident; /* `failure` is transient */
	char *reached; /* the file, socket or process that the reference used; owned; NULL: none */
	enum isolation isolation;
	char *own_because; /* why the runner serves only this task; owned; NULL: it may serve others, or this is not
			    * known yet */
	enum separable separable;
	int64_t question;  /* number of the question to the reader about the task; 0: none */
};

struct queue {
	struct queued *first;
};

struct queued *queued_new(const struct task *task);
void queued_free(struct queued *work);
int queued_left(const struct queued *work); /* number of cases that have no result yet */
double queued_seconds(const struct queued *work); /* how long these cases are expected to take; 0: unknown */

/* Adds work to a queue, which then owns it. Work that is expected to take longer comes first, so that no lane is left
 * with a long task at the end of a run. Work with equal times keeps its order. Urgent work always comes first. */
void queue_push(struct queue *queue, struct queued *work);
void queue_push_first(struct queue *queue, struct queued *work);
struct queued *queue_pop(struct queue *queue);             /* NULL: empty */
int queue_length(const struct queue *queue);
int queue_cancel(struct queue *queue, const void *owner); /* returns how many cases were dropped */

#endif
