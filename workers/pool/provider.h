/* provider - the process that computes ground truths with external libraries: python/provider.py.
 *
 * One provider process serves all lanes of a device (a lane is a judge and its runner). The process is started for the
 * first case that needs it and keeps running. Because the process keeps running, libraries are imported and kernels are
 * compiled only once. A provider answers one request at a time. If the process has ended twice while a library computed
 * one op family, that library is not used for this family again. Therefore a kernel that hangs costs two timeouts, and
 * not one per case. Every request gets exactly one answer. If the process dies, hangs or does not start, the answer is
 * {"failed"} with a message.
 *
 * A process that was just exec'd is not protected yet: all processes of the same user can change its memory. Therefore
 * the pool calls provider_start_no_more as soon as a reference that could change the memory of a new provider may have
 * run. */
#ifndef REFTEST_WORKERS_POOL_PROVIDER_H
#define REFTEST_WORKERS_POOL_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "workers/pool/process.h"
#include "workers/protocol/channel.h"

/* A pair of a library and an op family, with the number of times that this pair has ended the provider process. */
struct provider_pair {
	char *name; /* "flashinfer with gqa_paged", owned */
	int ends;   /* number of times that the process ended while this library computed this op family */
};

struct provider {
	const char *python, *device; /* not owned */
	int threads, epoll;	     /* epoll not owned */
	double timeout_s;	     /* limit for an answer, not counting preparations such as compiling a kernel */
	struct process process;	     /* pid 0: none */
	struct channel channel;
	int pipe;	   /* pipe with the process's stdout and stderr; -1: closed */
	struct buf said;   /* the end of the text that the process printed */
	struct buf answer; /* the answer that provider_answer returned last */
	struct buf doing;  /* name of the current preparation (an import, a compilation); empty: there is none */
	double allowed_s;  /* extra time for the current preparation */
	bool up;	   /* the process has started and accepts requests */
	bool busy;	     /* a request has not been answered yet */
	int64_t deadline_ms; /* deadline for the process to start or to answer; INT64_MAX: none */
	int failures;	     /* number of consecutive failed starts */
	bool started_last;   /* provider_start_no_more was called */
	char *refused;	     /* the reason why no provider can be started, owned; NULL: one can be started */
	struct provider_pair *pairs; /* all pairs requested so far, owned */
	struct provider_pair *asked; /* the pair that was requested last */
	int pair_count;
};

void provider_open(struct provider *provider, const char *python, const char *device, int threads, int epoll,
		   double timeout_s);

/* Makes sure that no further process is started. A running process is used until it ends; after that, every request
 * gets the answer {"failed"}. */
void provider_start_no_more(struct provider *provider);

/* Returns whether a request can be sent now. Starts the provider process if necessary, and returns false until it has
 * started. */
bool provider_ready(struct provider *provider);
/* Sends a {"provide"} with the descriptor `fd` (-1: none). Call it only if provider_ready is true. */
void provider_ask(struct provider *provider, const char *text, size_t length, int fd);

/* Returns the answer to the request, valid until the next call. Returns NULL if there is no answer yet. */
const char *provider_answer(struct provider *provider, int64_t now_ms);
/* Returns whether provider_answer would return an answer now. The poll loop needs this function: if an answer is
 * available already, no event wakes the loop. */
bool provider_answers_now(const struct provider *provider);
/* Returns the time in ms at which provider_answer must be called next; INT64_MAX: never. */
int64_t provider_deadline(const struct provider *provider);

/* Cancels the current request by killing the process, because the memory that judge and provider share is about to
 * be reused. */
void provider_abandon(struct provider *provider);
void provider_close(struct provider *provider);

#endif
