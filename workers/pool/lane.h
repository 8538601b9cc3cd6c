/* lane - a judge (the process that compares), its runner (the process that runs the reference), and their current
 * cases. */
#ifndef REFTEST_WORKERS_POOL_LANE_H
#define REFTEST_WORKERS_POOL_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "workers/pool/answers.h"
#include "workers/pool/lane_seconds.h"
#include "workers/pool/process.h"
#include "workers/pool/provider.h"
#include "workers/pool/definition_order.h"
#include "workers/pool/zygote.h"
#include "workers/protocol/channel.h"
#include "workers/protocol/judge_process.h"

enum phase { LANE_IDLE, LANE_WAITING, LANE_WORKING };

/* The state of a ground truth that is Python source in the dataset. */
struct lane_truth {
	const struct truth_program *program; /* the program that the runner has loaded; the lane's task owns it */
	struct child *child;                 /* the runner of the ground truth; NULL: there is none */
	bool loaded, running;                /* loaded: the runner has loaded the program; running: the runner has not
					      * answered the {"run"} yet */
	char *run;                           /* the request, which is kept until it is answered; NULL: none */
	int run_fd;                          /* the memfd of the memory shared with the judge; -1: none */
	int64_t deadline;                    /* the time in ms by which the runner must answer; INT64_MAX: no limit */
};

enum { LANE_PAST = 8 }; /* the number of entries of `past`; a judge keeps at most this many arenas */

struct lane {
	struct process judge;
	struct channel channel; /* the socket to the judge */
	bool up;                /* the judge has sent its first message */
	int64_t up_deadline;    /* the time in ms by which the judge must have started; 0: no judge is starting */
	int outstanding, stale; /* outstanding: how many answers of the judge are still to come; stale: how many of
				 * these will be ignored */
	int64_t stale_deadline; /* if stale answers are still missing at this time (ms), the judge is replaced */

	enum phase phase;
	struct queued *work;      /* NULL: the lane is idle */
	struct child *child;    /* the runner; NULL: there is none */
	int64_t past[LANE_PAST]; /* the numbers of earlier runners whose end was not reported to the judge; 0: an unused
				  * entry */
	bool loaded;            /* the runner has loaded the reference */
	int first_job;          /* the index of the first case that the runner runs */
	bool used;              /* the runner served another definition before */
	bool beside;            /* another lane worked, or an earlier runner was ending, while the runner had the lane's
				 * reference */
	bool running;           /* the runner has not yet answered a {"run"} */
	bool staged;            /* tensors for this runner are copied through host memory */
	bool asked;             /* a run of this case was sent to the runner, so the inputs of the case are ready */
	bool blamed;            /* a {"blame"} was sent to the judge, which has not answered yet */
	bool accident;          /* the failure is transient, so the verdict must not be stored */
	char *run;              /* the judge's {"run"}, which is kept until the runner has loaded the reference; NULL:
				 * none */
	int run_fd;             /* the memfd of the arena, which must be sent with `run`; -1: none */
	struct child *maker;    /* the process that runs the definition's code for inputs; NULL: none */
	bool maker_loaded;      /* the maker has loaded the code */
	bool making;            /* the maker has not answered the judge's message yet */
	char *order;            /* the judge's message to the maker, which is kept until the maker has loaded the code;
				 * NULL: none */
	int order_fd;           /* the memfd of the memory for inputs, which must be sent with `order`; -1: none */
	char *request;          /* the judge's {"provide"}, which is kept until the provider is free; NULL: none */
	int request_fd;         /* the memfd of the memory that judge and provider share, which must be sent with
				 * `request`; -1: none */
	struct lane_truth truth;
	bool asking;            /* a request for a ground truth has no answer yet, so the timeout of the case is
				 * paused */
	int64_t left_ms;        /* while the timeout of the case is paused, the rest of the timeout in ms */
	char *printed;          /* text printed by a runner that has ended; NULL: none */
	double started;         /* the time at which the case started, in seconds of the monotonic clock */
	int64_t deadline;       /* the time at which the case times out, in ms of the monotonic clock; valid in phase
				 * LANE_WORKING */
	int64_t alone_by;       /* the time in ms after which a case that must run alone no longer waits for the end of
				 * spare runners; 0: no limit is set */
	struct lane_seconds clock;
};

/* The state that all lanes of a pool share. A lane is a judge and its runner. */
struct pool_shared {
	char *device;
	double timeout_s;
	int64_t memory;   /* how many bytes a reference may use; 0: the default (workers/pool/memory_limit.h) */
	bool staged;      /* the pool's options demand copies through host memory */
	bool ipc_refused; /* a runner reported that it cannot map device memory by CUDA IPC */
	int threads;      /* the number of CPU threads of each judge and of each runner */
	struct judge_program judge;
	int epoll;
	struct zygote runners;
	struct provider provider;
	struct lane *served; /* the lane whose request the provider is answering; NULL: none */
	struct lane *lanes;
	int lane_count;
	struct queue alone; /* cases that must be retried while no other lane works */
	struct answers answers;
	int judge_failures; /* how often in a row a judge failed to start */
	char device_class[64]; /* the class of the device; "": not known yet */
	double seconds[LANE_PARTS]; /* the time that the lanes spent on each kind of work, in seconds */
};

bool pool_shared_busy(const struct pool_shared *shared, const struct lane *except); /* returns whether any lane besides
										     * `except` is busy */

void lane_open(struct lane *lane);
/* Assigns work to an idle lane, which then owns `work`. */
void lane_give(struct pool_shared *shared, struct lane *lane, struct queued *work);

/* Handles the provider's messages and sends the next request to the provider. */
void pool_shared_dispatch_provider(struct pool_shared *shared, int64_t now_ms);

/* Handles the messages of judge and runner, the end of either, and expired deadlines. Returns -1 if no judge can be
 * started. */
int lane_dispatch(struct pool_shared *shared, struct lane *lane, int64_t now_ms, struct err *err);
/* Advances a lane that waits: starts its judge, gives it a runner, or starts the case. Returns -1 if no judge can be
 * started. */
int lane_advance(struct pool_shared *shared, struct lane *lane, struct err *err);
/* Returns whether the lane waits for a process that makes inputs. */
bool lane_wants_maker(const struct lane *lane);
int lane_warm(struct pool_shared *shared, struct lane *lane,
	      struct err *err);			/* starts a judge before there is work */
int64_t lane_deadline(const struct lane *lane); /* returns the time in ms at which lane_dispatch must be called next;
						 * INT64_MAX: never */

enum lane_part lane_part(const struct lane *lane); /* returns what the lane does now */

bool lane_truth_waits(const struct lane *lane); /* returns whether a ground truth waits for a spare runner */

void lane_cancel(struct pool_shared *shared, struct lane *lane); /* stops the work of the lane and drops it */
/* Waits for the end of the killed judge, but at most until `deadline_ms`. Then frees the lane. */
void lane_close(struct lane *lane, int64_t deadline_ms);

#endif
