/* definition_order - the tasks of a pool that wait for a lane (a judge and its runner), in the order in which they
 * run: the longest task first (queue_push). */
#ifndef REFTEST_WORKERS_POOL_DEFINITION_ORDER_H
#define REFTEST_WORKERS_POOL_DEFINITION_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "workers/pool/task.h"

/* Whether the runner of a task may serve other tasks later (workers/pool/isolation.h). */
enum isolation { ISOLATION_UNKNOWN, ISOLATION_OWN, ISOLATION_KEPT };

/* Whether several runners may run cases of a task at the same time (workers/pool/parallel_cases.h). */
enum separable { SEPARABLE_UNKNOWN, SEPARABLE_NO, SEPARABLE_YES };

/* Whether the reference of a task keeps nothing from one case to the next (is_stateless in python/isolation.py). The
 * runner says so before it runs any code of the reference. */
enum stateless { STATELESS_UNKNOWN, STATELESS_NO, STATELESS_YES };

/* An element of a queue: a task, or cases that are retried. */
struct queued {
	struct queued *next;
	struct task task;
	int job;       /* the index of the current case */
	int repeated;  /* the number of cases at the beginning that have results; they run again only because the reference
			* may keep something that a later case uses */
	bool alone;    /* the cases are retried, and must run while no other lane works */
	bool attacked; /* a case is retried because something killed or stopped one of its processes */
	bool loaded;   /* the reference has been loaded at least once */
	char *failure; /* if the reference could not be loaded, the {"blame"} message for every case, allocated for this
		        * struct; else NULL */
	bool accident; /* the failure in `failure` is transient */
	char *reached; /* the file, socket or process that the reference used, allocated for this struct; NULL: none */
	enum isolation isolation;
	char *own_because; /* why the runner may serve only this task, allocated for this struct; NULL: it may serve
			    * others, or this is not known yet */
	enum separable separable;
	enum stateless stateless;
	int64_t question;  /* the number of the question about this task that the reader (isolation.h) has not answered
			    * yet; 0: none */
};

struct queue {
	struct queued *first;
};

struct queued *queued_new(const struct task *task);
void queued_free(struct queued *work);
int queued_left(const struct queued *work); /* returns the number of cases that have no result yet */
double queued_seconds(const struct queued *work); /* returns the expected time of the cases that have not run yet; 0:
						   * unknown */

/* Adds work to a queue, which then owns it. Work that is expected to take longer comes first, so that no lane is left
 * with a long task at the end of a run. Work with equal times keeps its order. Urgent work always comes first. */
void queue_push(struct queue *queue, struct queued *work);
void queue_push_first(struct queue *queue, struct queued *work);
struct queued *queue_pop(struct queue *queue);             /* returns NULL if the queue is empty */
int queue_length(const struct queue *queue);
int queue_cancel(struct queue *queue, const void *owner); /* returns how many cases were dropped */

#endif
