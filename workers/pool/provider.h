/* provider - the process that computes ground truths with external libraries: python/provider.py.
 *
 * One provider process serves all lanes of a device (a lane is a judge and its runner). The process is started for the
 * first case that needs it, and keeps running, so that libraries are imported and kernels are compiled only once. It
 * answers one request at a time. If the process ends twice while the same library computes the same op family, the
 * library is not used for this family again. Therefore a kernel that hangs costs two timeouts, and not one timeout per
 * case. Every request gets exactly one answer. If the process dies, hangs or does not start, the answer is {"failed"}
 * with a message.
 *
 * A process is not protected right after exec: all processes of the same user can change its memory. Therefore no
 * provider may start while a running reference can reach the memory of other processes. If references can do this, the
 * pool calls provider_start_no_more as soon as the first reference may have run. */
#ifndef REFTEST_WORKERS_POOL_PROVIDER_H
#define REFTEST_WORKERS_POOL_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "workers/pool/process.h"
#include "workers/protocol/channel.h"

/* A pair of a library and an op family, and how often the provider process ended while it worked on this pair. */
struct provider_pair {
	char *name; /* a name such as "flashinfer with gqa_paged", allocated for this entry */
	int ends;   /* how often the process ended while this library computed this op family */
};

struct provider {
	const char *python, *device; /* strings that belong to the caller */
	int threads, epoll;	     /* the number of CPU threads, and an epoll that belongs to the caller */
	double timeout_s;	     /* the time limit for an answer, without preparations such as compiling a kernel */
	struct process process;	     /* the provider process; pid 0: there is none */
	struct channel channel;
	int pipe;	   /* a pipe with the stdout and stderr of the process; -1: closed */
	struct buf said;   /* the end of the text that the process printed */
	struct buf answer; /* the text of the last answer that provider_answer returned */
	struct buf doing;  /* the name of the current preparation (an import, a compilation); empty: there is none */
	double allowed_s;  /* the extra time for the current preparation */
	bool up;	   /* the process has started and accepts requests */
	bool busy;	     /* a request has not been answered yet */
	int64_t deadline_ms; /* the time by which the process must have started or answered; INT64_MAX: no limit */
	int failures;	     /* how often in a row the process failed to start */
	bool started_last;   /* provider_start_no_more was called */
	char *refused;	     /* the reason why no provider can be started, allocated for this struct; NULL: one can be
			      * started */
	struct provider_pair *pairs; /* all pairs that were requested so far, allocated for this struct */
	struct provider_pair *asked; /* the pair of the last request */
	int pair_count;
};

void provider_open(struct provider *provider, const char *python, const char *device, int threads, int epoll,
		   double timeout_s);

/* After this call, no further provider process is started. If a process is running, it is used until it ends. When no
 * process is running, every request gets the answer {"failed"}. */
void provider_start_no_more(struct provider *provider);

/* Returns whether a request can be sent now. If there is no provider process, starts one; the function returns false
 * until this process is ready. */
bool provider_ready(struct provider *provider);
/* Sends a {"provide"} with the descriptor `fd` (-1: none). Call this only if provider_ready returns true. */
void provider_ask(struct provider *provider, const char *text, size_t length, int fd);

/* Returns the answer to the request, or NULL if there is no answer yet. The text is valid until the next call. */
const char *provider_answer(struct provider *provider, int64_t now_ms);
/* Returns whether provider_answer would return an answer now. The poll loop needs this function, because no event wakes
 * the loop if the answer is already available. */
bool provider_answers_now(const struct provider *provider);
/* Returns the time in ms at which provider_answer must be called next; INT64_MAX: never. */
int64_t provider_deadline(const struct provider *provider);

/* Cancels the current request. Kills the process, because it could otherwise still write to the memory that it shares
 * with the judge, although the judge is about to use this memory again. */
void provider_abandon(struct provider *provider);
void provider_close(struct provider *provider);

#endif
