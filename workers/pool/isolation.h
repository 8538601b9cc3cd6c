/* isolation - decides which tasks may share a runner.
 *
 * A runner serves several definitions only if the source code of their references can leave nothing behind in the
 * runner (python/isolation.py). The reader, a child of the zygote that runs no reference, decides this. The reader gets
 * the source code of one reference at a time, and answers whether the reference needs a separate runner, with the
 * reason. If the reader ends or does not answer, the reference gets a separate runner, and another reader is
 * started. */
#ifndef REFTEST_WORKERS_POOL_ISOLATION_H
#define REFTEST_WORKERS_POOL_ISOLATION_H

#include "workers/pool/task_order.h"
#include "workers/pool/zygote.h"

struct isolation_reader {
	struct child *child;  /* NULL: none */
	int64_t question;     /* number of the question that is unanswered; 0: none */
	int64_t last;         /* number of the last question */
	int64_t deadline_ms;  /* deadline of the answer; INT64_MAX: none */
};

void isolation_open(struct isolation_reader *reader);
/* If `always_own` is true, or if a property of the task requires a separate runner, decides without the reader that the
 * task gets a separate runner. Also decides that the cases of the task must not run in several runners at once, if a
 * property of the task forbids this. */
void isolation_by_task(struct queued *work, bool always_own);
/* Sets whether the task gets a separate runner. `why` is the reason for a separate runner, and is copied; NULL: the
 * runner may be kept for other tasks. */
void isolation_set(struct queued *work, const char *why);

/* Asks about a task whose isolation is unknown, if the reader is free; starts a reader if there is none. Returns -1
 * with a message if no reader can be started. */
int isolation_ask(struct isolation_reader *reader, struct zygote *runners, struct queued *work, struct err *err);

struct isolation_answer {
	int64_t question; /* as in struct queued */
	char *why;        /* the caller frees it; NULL: the runner may be kept */
	bool stateless;   /* no case can see that another case ran before it in the same runner */
};
/* If the reader has answered, sets `out` to the answer and returns true. */
bool isolation_next(struct isolation_reader *reader, struct zygote *runners, int64_t now_ms, struct isolation_answer *out);
/* Applies an answer of the reader to the task about which the reader was asked. If the isolation of the task was
 * decided meanwhile, this decision is not changed. */
void isolation_apply(struct queued *work, const struct isolation_answer *answer);
/* Ends the reader, if there is one. */
void isolation_close(struct isolation_reader *reader, struct zygote *runners);

#endif
