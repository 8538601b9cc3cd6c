/* isolation - decides which tasks may share a runner.
 *
 * A runner is kept for further definitions only if the text of each of its references can leave nothing behind
 * (python/isolation.py). A child of the zygote that runs no reference, the reader, decides this: it gets the text, and
 * answers with a reason why the reference needs a separate runner, or with no reason. The reader gets one text at a
 * time. If it ends or does not answer, the reference of that text gets a separate runner, and another reader is
 * started. */
#ifndef REFTEST_WORKERS_POOL_ISOLATION_H
#define REFTEST_WORKERS_POOL_ISOLATION_H

#include "workers/pool/queues.h"
#include "workers/pool/zygote.h"

struct isolation_reader {
	struct child *child;  /* NULL: none */
	int64_t question;     /* number of the question that is unanswered; 0: none */
	int64_t last;         /* number of the last question */
	int64_t deadline_ms;  /* deadline of the answer; INT64_MAX: none */
};

void isolation_open(struct isolation_reader *reader);
/* Decides without a reader, if `always_own` or a property of the task decides already. A property of the task may also
 * decide whether its cases may be separated. */
void isolation_by_task(struct queued *work, bool always_own);
/* Sets the decision. `why` is the reason for a separate runner, and is copied; NULL: the runner may be kept. */
void isolation_set(struct queued *work, const char *why);

/* Asks about a task whose isolation is unknown, if the reader is free; starts a reader if there is none. Returns -1
 * with a message if none can be started. */
int isolation_ask(struct isolation_reader *reader, struct zygote *runners, struct queued *work, struct err *err);

struct isolation_answer {
	int64_t question; /* as in struct queued */
	char *why;        /* the caller frees it; NULL: the runner may be kept */
	bool stateless;   /* no case can see that another case ran before it in the same runner */
};
/* Returns true with the next answer of the reader. */
bool isolation_next(struct isolation_reader *reader, struct zygote *runners, int64_t now_ms, struct isolation_answer *out);
/* Applies an answer to the work that was asked about. An earlier decision about its isolation is not changed. */
void isolation_apply(struct queued *work, const struct isolation_answer *answer);
/* Ends the reader, if there is one. */
void isolation_close(struct isolation_reader *reader, struct zygote *runners);

#endif
