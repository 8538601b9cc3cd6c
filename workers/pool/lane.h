/* lane - a judge (the process that compares), its runner (the process that runs the reference), and their current
 * cases. */
#ifndef REFTEST_WORKERS_POOL_LANE_H
#define REFTEST_WORKERS_POOL_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "workers/pool/answers.h"
#include "workers/pool/lane_clock.h"
#include "workers/pool/process.h"
#include "workers/pool/provider.h"
#include "workers/pool/task_order.h"
#include "workers/pool/zygote.h"
#include "workers/protocol/channel.h"
#include "workers/protocol/judge_process.h"

enum phase { LANE_IDLE, LANE_WAITING, LANE_WORKING };

/* The runner of a ground truth that is Python source in the dataset. */
struct lane_truth {
	const struct truth_program *program; /* the program that the runner has loaded; it belongs to the task of the
					      * lane's work */
	struct child *child;                 /* NULL: none */
	bool loaded, running;                /* loaded: the runner has loaded the program; running: it has not answered
					      * a {"run"} yet */
	char *run;                           /* the request, until it is answered; NULL: none */
	int run_fd;                          /* the memfd of the memory shared with the judge; -1: none */
	int64_t deadline;                    /* deadline of the answer in ms; INT64_MAX: none */
};

enum { LANE_PAST = 8 }; /* must be at least the number of arenas that a judge keeps */

struct lane {
	struct process judge;
	struct channel channel; /* socket to the judge */
	bool up;                /* the judge has sent its first message */
	int64_t up_deadline;    /* ms: deadline for the judge to start; 0: no judge is starting */
	int outstanding, stale; /* how many answers the judge still owes, and how many of them will be ignored */
	int64_t stale_deadline; /* ms: if stale answers are still missing at this time, the judge is replaced */

	enum phase phase;
	struct queued *work;      /* NULL: idle */
	struct child *child;    /* the runner; NULL: none */
	int64_t past[LANE_PAST]; /* numbers of the last runners, except those that the judge knows to be gone; 0:
				  * unused */
	bool loaded;            /* the runner has loaded the reference */
	bool used;              /* the runner served another definition before */
	bool running;           /* the runner has not yet answered a {"run"} */
	bool staged;            /* tensors reach this runner through host memory */
	bool asked;             /* the runner was sent a run of this case, so the inputs of the case are ready */
	bool blamed;            /* the judge was sent a {"blame"} and has not answered yet */
	bool accident;          /* the failure is transient */
	char *run;              /* a {"run"} of the judge, kept until the runner has loaded the reference; NULL: none */
	int run_fd;             /* the memfd of the arena, to be sent with `run`; -1: none */
	struct child *maker;    /* the process that runs the definition's code for inputs; NULL: none */
	bool maker_loaded;      /* the maker has loaded the code */
	bool making;            /* a message of the judge to the maker is unanswered */
	char *order;            /* the judge's message to the maker, kept until the maker has loaded the code; NULL:
				 * none */
	int order_fd;           /* the memfd of the memory for inputs, to be sent with `order`; -1: none */
	char *request;          /* a {"provide"} of the judge, kept until the provider is free; NULL: none */
	int request_fd;         /* the memfd of the provider memory, to be sent with `request`; -1: none */
	struct lane_truth truth;
	bool asking;            /* a request for a ground truth is unanswered, so the timeout of the case is paused */
	int64_t left_ms;        /* ms: the rest of the case's timeout while the timeout is paused */
	char *printed;          /* text printed by a runner that has ended; NULL: none */
	double started;         /* start of the case: seconds, monotonic clock */
	int64_t deadline;       /* ms, monotonic clock; valid in phase LANE_WORKING */
	int64_t alone_by;       /* ms: deadline for spare runners to end before a case runs alone; 0: none */
	struct lane_clock clock;
};

/* The state that all lanes of a pool share. A lane is a judge and its runner. */
struct pool_shared {
	char *device;
	double timeout_s;
	int64_t memory;   /* bytes that a reference may use; 0: the default (workers/pool/memory_limit.h) */
	bool staged;      /* the pool's options require copies through host memory */
	bool ipc_refused; /* a runner reported that it cannot map device memory by CUDA IPC */
	int threads;      /* how many CPU threads each judge and each runner has */
	struct judge_program judge;
	int epoll;
	struct zygote runners;
	struct provider provider;
	struct lane *served; /* the lane whose request the provider is answering; NULL: none */
	struct lane *lanes;
	int lane_count;
	struct queue alone; /* cases to be retried while no other lane works */
	struct answers answers;
	int judge_failures; /* how many times in a row a judge failed to start */
	char device_class[64]; /* "": not known yet */
	double seconds[LANE_PARTS]; /* the time that the lanes spent on each kind of work */
};

bool pool_shared_busy(const struct pool_shared *shared, const struct lane *except); /* returns whether a lane other than
										     * `except` is not idle */

void lane_open(struct lane *lane);
/* Assigns work to an idle lane, which then owns `work`. */
void lane_give(struct pool_shared *shared, struct lane *lane, struct queued *work);

/* Handles the provider's messages and sends the next request to the provider. */
void pool_shared_dispatch_provider(struct pool_shared *shared, int64_t now_ms);

/* Handles the messages and the end of judge and runner, and expired deadlines. Returns -1 if no
 * judge can be started. */
int lane_dispatch(struct pool_shared *shared, struct lane *lane, int64_t now_ms, struct err *err);
/* Advances a waiting lane: starts its judge, assigns a runner to the lane, or starts the case. Returns -1 if no judge
 * can be started. */
int lane_advance(struct pool_shared *shared, struct lane *lane, struct err *err);
/* Returns whether the lane waits for a process that makes inputs. */
bool lane_wants_maker(const struct lane *lane);
int lane_warm(struct pool_shared *shared, struct lane *lane,
	      struct err *err);			/* starts a judge before there is work */
int64_t lane_deadline(const struct lane *lane); /* ms: when lane_dispatch must be called next; INT64_MAX: never */

enum lane_part lane_part(const struct lane *lane); /* what the lane does now */

bool lane_truth_waits(const struct lane *lane); /* returns whether a ground truth waits for a spare runner */

void lane_cancel(struct pool_shared *shared, struct lane *lane); /* stops and drops the work of the lane */
/* Waits until `deadline_ms` at most for the end of the killed judge, and frees the lane. */
void lane_close(struct lane *lane, int64_t deadline_ms);

#endif
