/* answers - the list of a pool's verdicts that pool_next has not returned yet. */
#ifndef REFTEST_WORKERS_POOL_ANSWERS_H
#define REFTEST_WORKERS_POOL_ANSWERS_H

#include "workers/pool/task_order.h"

struct answer {
	struct answer *next;
	void *owner;
	const struct job *job;
	char *text;    /* the verdict as JSON; owned */
	size_t length;
	bool accident; /* the failure is transient, so the verdict must not be stored */
	char *printed; /* owned; NULL: nothing */
	char *reached; /* copied; NULL: nothing */
	enum isolation isolation;
	char *own_because; /* copied; NULL: none */
	double seconds;
	int64_t time;
};

struct answers {
	struct answer *first;
};

/* Adds a copy of `answer` with `text` as its verdict. The list then owns the text `answer->printed`. */
void answers_add(struct answers *answers, const struct answer *answer, const char *text, size_t length);
struct answer *answers_pop(struct answers *answers); /* the caller calls answer_free; NULL: the list is empty */
int answers_cancel(struct answers *answers, const void *owner);
void answer_free(struct answer *answer);

#endif
