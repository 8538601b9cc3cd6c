/* lane - a judge, the runner child it watches, and the work that passes through them. */
#ifndef REFTEST_WORKERS_LANE_H
#define REFTEST_WORKERS_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "workers/channel.h"
#include "workers/crew.h"
#include "workers/process.h"
#include "workers/provider.h"
#include "workers/work.h"

enum phase { LANE_IDLE, LANE_WAITING, LANE_WORKING };

struct lane {
	struct process judge;
	struct channel channel; /* to the judge */
	bool up;                /* the judge has said hello */
	int64_t up_deadline;    /* ms; 0: it is not being started */
	int owed, stale;        /* answers the judge owes, and how many of them (the first) nobody wants any more */
	int64_t stale_deadline;

	enum phase phase;
	struct work *work;      /* NULL: idle */
	struct child *child;    /* NULL: none */
	bool loaded, running;   /* the child has loaded the reference; it owes the answer to a run */
	bool staged;            /* this child is given tensors through the host */
	bool asked;             /* the child has been asked for a run of this case: its inputs are made */
	bool blamed;            /* the judge is making a verdict of a failure */
	bool accident;          /* of that failure */
	char *run;              /* the judge's {"run"} that waits for the child to have loaded; NULL */
	int run_fd;             /* the arena's memfd that goes with it; -1 */
	char *request;          /* the judge's {"provide"} that waits for the provider; NULL */
	int request_fd;         /* the stand's memfd that goes with it; -1 */
	bool asking;            /* the provider is at work for this lane, or will be: the case's clock stands still */
	int64_t left_ms;        /* of the case's time when it was stopped */
	char *printed;          /* by a child that is gone; NULL */
	double started;         /* seconds, monotonic */
	int64_t deadline;       /* ms, monotonic; WORKING */
	int64_t alone_by;       /* ms: a case that is to be alone waits no longer for spares to go; 0: it does not wait */
};

/* What all lanes of a pool share. */
struct yard {
	char *device;
	double timeout_s;
	bool staged;      /* asked for */
	bool ipc_refused; /* found out */
	int threads;      /* of a judge, and of a runner */
	int epoll;
	struct crew crew;
	struct provider provider;
	struct lane *served; /* whose request the provider has; NULL: nobody's */
	struct lane *lanes;
	int lane_count;
	struct queue alone; /* cases to be tried again when nobody is at work */
	struct results results;
	int judge_failures; /* starts in a row that came to nothing */
	char device_class[64]; /* "": no judge has said it yet */
};

bool yard_busy(const struct yard *yard, const struct lane *except); /* is any other lane not idle? */

void lane_open(struct lane *lane);
/* Gives an idle lane something to do; takes the work over. */
void lane_give(struct lane *lane, struct work *work);

/* Takes in what the provider has said, and hands it the next request. */
void yard_dispatch_provider(struct yard *yard, int64_t now_ms);

/* Takes in what judge and child have said, their ends, and what is late. -1: no judge can be had. */
int lane_dispatch(struct yard *yard, struct lane *lane, int64_t now_ms, struct err *err);
/* Starts what a waiting lane lacks, or the case. -1: it cannot be started. */
int lane_advance(struct yard *yard, struct lane *lane, struct err *err);
int lane_warm(struct yard *yard, struct lane *lane, struct err *err); /* a judge, though there is nothing to do */
int64_t lane_deadline(const struct lane *lane); /* when to dispatch at the latest; INT64_MAX */

void lane_cancel(struct yard *yard, struct lane *lane); /* drops its work */
/* Reaps the judge, which has been killed, waiting until the deadline at most, and frees. */
void lane_close(struct lane *lane, int64_t deadline_ms);

#endif
