/* answers - a pool's list of those verdicts that pool_next has not returned yet. */
#ifndef REFTEST_WORKERS_POOL_ANSWERS_H
#define REFTEST_WORKERS_POOL_ANSWERS_H

#include "workers/pool/definition_order.h"

struct answer {
	struct answer *next;
	void *owner;
	const struct job *job;
	char *text;    /* the verdict as JSON; the answer owns the text */
	size_t length;
	bool accident; /* the failure is transient, so the verdict must not be stored */
	char *printed; /* the text that the reference printed, which the answer owns; NULL: it printed nothing */
	char *reached; /* what the reference used outside its process; answers_add copies the text; NULL: nothing */
	enum isolation isolation;
	enum stateless stateless;
	bool follows; /* see struct pool_result */
	char *own_because; /* why the task gets a runner of its own; answers_add copies the text; NULL: no reason */
	double seconds;
	int64_t time;
};

struct answers {
	struct answer *first;
};

/* Adds a copy of `answer` with `text` as its verdict. The list then owns the text `answer->printed`. */
void answers_add(struct answers *answers, const struct answer *answer, const char *text, size_t length);
struct answer *answers_pop(struct answers *answers); /* the caller must call answer_free; NULL: the list is empty */
int answers_cancel(struct answers *answers, const void *owner);
void answer_free(struct answer *answer);

#endif
