/* isolation - decides which tasks may share a runner.
 *
 * A runner serves several definitions only if the source code of their references can leave nothing behind in the
 * runner (python/isolation.py). The reader decides this. The reader is a child process of the zygote and runs no
 * reference. It receives the source code of one reference at a time, and answers whether the reference needs a runner
 * of its own, with the reason. If the reader ends or does not answer, the reference gets a runner of its own, and
 * another reader is started. */
#ifndef REFTEST_WORKERS_POOL_ISOLATION_H
#define REFTEST_WORKERS_POOL_ISOLATION_H

#include "workers/pool/definition_order.h"
#include "workers/pool/zygote.h"

struct isolation_reader {
	struct child *child;  /* the reader's process; NULL: there is none */
	int64_t question;     /* the number of the unanswered question; 0: none */
	int64_t last;         /* the number of the last question */
	int64_t deadline_ms;  /* the time by which the reader must answer; INT64_MAX: no question is unanswered */
};

void isolation_open(struct isolation_reader *reader);
/* Sets the isolation of a task as far as it follows from properties of the task, without asking the reader. If
 * `always_own` is true, or if a property demands a runner of its own, the task gets one. If a property of the task
 * forbids that several runners run its cases at the same time (parallel_cases.h), also sets work->separable to
 * SEPARABLE_NO. Sets work->stateless to STATELESS_NO if the reader cannot examine all source code of the task: a
 * solution, or a ground truth of the dataset. */
void isolation_by_task(struct queued *work, bool always_own);
/* Sets whether the task gets a runner of its own. `why` is the reason, which is copied. If `why` is NULL, the runner
 * may be kept for other tasks. */
void isolation_set(struct queued *work, const char *why);

/* If the reader is free, asks it about a task whose `isolation` or `separable` is unknown. Starts a reader if there is
 * none. Returns -1 with a message if no reader can be started. */
int isolation_ask(struct isolation_reader *reader, struct zygote *runners, struct queued *work, struct err *err);

struct isolation_answer {
	int64_t question; /* the number of the question that the reader answered (queued.question) */
	char *why;        /* why the task needs a runner of its own; the caller frees the text; NULL: the runner may be
			   * kept */
	bool stateless;   /* no case can see that another case ran before it in the same runner */
};
/* If the reader has answered, sets `out` to the answer and returns true. */
bool isolation_next(struct isolation_reader *reader, struct zygote *runners, int64_t now_ms, struct isolation_answer *out);
/* Applies an answer of the reader to the task that the question was about. Changes `isolation`, `separable` and
 * `stateless` only if they are still unknown. */
void isolation_apply(struct queued *work, const struct isolation_answer *answer);
/* Ends the reader, if there is one. */
void isolation_close(struct isolation_reader *reader, struct zygote *runners);

#endif
