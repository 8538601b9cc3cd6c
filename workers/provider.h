/* provider - the process that computes ground truths with other people's libraries: workers/provider.py.
 *
 * One for all lanes of a device, started when the first case wants it and kept: imports and compiled kernels are paid
 * once. It answers one request at a time. A library that has ended the process twice over one op family is not asked for that
 * family any more: a kernel that hangs then costs two deadlines, and not one a case. Whatever becomes of it (it dies, hangs, refuses to start), each request gets
 * exactly one answer: its own, or one in its place that says what happened. */
#ifndef REFTEST_WORKERS_PROVIDER_H
#define REFTEST_WORKERS_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "workers/channel.h"
#include "workers/process.h"

/* A library with an op family. */
struct provider_pair {
	char *name; /* "flashinfer with gqa_paged", owned */
	int ends;   /* of the process, while it was asked for this */
};

struct provider {
	const char *python, *device; /* not owned */
	int threads, epoll;	     /* epoll not owned */
	double timeout_s;	     /* of a request, what it prepares aside */
	struct process process;	     /* pid 0: there is none */
	struct channel channel;
	int pipe;	   /* what it prints; -1 */
	struct buf said;   /* the end of that */
	struct buf answer; /* the last one given out */
	struct buf doing;  /* what it prepares, in its words; empty: nothing, the case's own time runs */
	double allowed_s;  /* beyond a request's, for that */
	bool up;
	bool busy;	     /* it owes an answer */
	int64_t deadline_ms; /* to come up, or to answer; INT64_MAX: none */
	int failures;	     /* starts in a row that came to nothing */
	char *refused;	     /* why there will be none, owned; NULL */
	struct provider_pair *pairs, *asked; /* those asked for, owned; the one asked for last, of them */
	int pair_count;
};

void provider_open(struct provider *provider, const char *python, const char *device, int threads, int epoll,
		   double timeout_s);

/* Can a request be sent now? Starts the process if need be; while it comes up the answer is no. */
bool provider_ready(struct provider *provider);
/* Sends a {"provide"}; `fd` (-1: none) goes along. Only when it is ready. */
void provider_ask(struct provider *provider, const char *text, size_t length, int fd);

/* The answer to what was asked, valid until the next call; NULL: not yet. */
const char *provider_answer(struct provider *provider, int64_t now_ms);
/* Is its answer known without waiting? Then nothing else would wake who waits for it. */
bool provider_answers_now(const struct provider *provider);
int64_t provider_deadline(const struct provider *provider); /* when to ask for the answer at the latest; INT64_MAX */

/* Its present request is nobody's any more: what it shares memory with is about to go. Ends it. */
void provider_abandon(struct provider *provider);
void provider_close(struct provider *provider);

#endif
