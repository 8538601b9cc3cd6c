/* crew - the template, a python process that has imported torch, and the runner children that it forks.
 *
 * Children wait as warm spares until a lane takes one; a child serves one definition and is killed. Its slot is free
 * again when the template has told its end and been told to reap it: until then its pid means nobody else. When the
 * template dies all children are lost (the kernel kills them), and a new one is started when spares are wanted. What
 * references leave behind is ended by the template, or, when that is gone, here (this process is a subreaper). */
#ifndef REFTEST_WORKERS_CREW_H
#define REFTEST_WORKERS_CREW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "workers/channel.h"
#include "workers/process.h"

enum child_state {
	CHILD_NONE,    /* the slot is free */
	CHILD_FORKING, /* asked of the template */
	CHILD_WARMING, /* forked, not ready yet */
	CHILD_SPARE,
	CHILD_TAKEN,   /* a lane's */
	CHILD_ENDING   /* killed or given back; nobody looks at it any more */
};

struct child {
	enum child_state state;
	pid_t pid;              /* 0: not known yet */
	struct channel channel;
	int pipe;               /* what it prints; -1: closed */
	struct buf printed;     /* the end of that */
	int64_t printed_bytes;  /* all of that */
	int64_t deadline_ms;    /* FORKING, WARMING: to be ready by then; TAKEN: to end by then, its socket is closed already */
	bool ready;             /* it has said so, perhaps before the template told its pid */
	int64_t ready_ms;       /* when; the longer ago, the warmer */
	bool ended;             /* its end has been told: `status` */
	bool lost;              /* the template died and took it along; there is no status */
	bool shut;              /* it closed its socket and lived on, until it was killed for that */
	int status;             /* wait status */
};

enum { CREW_PRINTED = 64 << 10 }; /* bytes kept of what a reference prints */

struct crew {
	const char *python, *device; /* not owned */
	char script[4096];           /* runner.py */
	int threads;                 /* torch's, in each child */
	int epoll;                   /* not owned */
	struct process template;
	struct channel channel;
	int pipe;                    /* the template's own words; they matter when it does not come up */
	struct buf said;
	int64_t deadline_ms;         /* for the template to come up; 0: it is up, or there is none */
	bool up;
	int failures;                /* starts of templates or children in a row that came to nothing */
	int64_t orphans_ms;          /* when to look for orphans (again); 0: there are none */
	struct child *children;
	int room;                    /* slots */
	char torch[64], cuda[32];    /* what the template said; cuda "": built without */
};

/* Starts nothing. `places`: children that may be taken, or wait as spares, at the same time. */
int crew_open(struct crew *crew, const char *python, const char *device, int places, int threads, int epoll,
              struct err *err);
/* Kills and reaps everything; waits for at most a second. */
void crew_close(struct crew *crew);

/* Sees to it that this many spares are there or on their way. */
int crew_want(struct crew *crew, int spares, struct err *err);
/* Reads what template and spares have said, and notices ends. -1: no child can be had, and why. */
int crew_dispatch(struct crew *crew, int64_t now_ms, struct err *err);
int64_t crew_deadline(const struct crew *crew); /* when to call crew_dispatch at the latest; INT64_MAX */

struct child *crew_take(struct crew *crew); /* a spare; NULL: none is ready */
int crew_spares(const struct crew *crew);   /* how many are ready */

/* Whoever holds memory of the device and is not a lane's: spares, those on their way and those still ending. */
int crew_idle(const struct crew *crew);
/* Ends all spares, and those on their way, but one. */
void crew_thin(struct crew *crew);

enum child_event { CHILD_NOTHING, CHILD_LINE, CHILD_ENDED, CHILD_BABBLES };
/* What a taken child has to say: one line at a time (valid until the next call); BABBLES: a line without end. */
enum child_event child_next(struct child *child, int64_t now_ms, char **line, size_t *length);
/* Reads what it printed so far. */
void child_listen(struct child *child);

/* Kills a taken child, or gives back the slot of one that has ended. */
void crew_drop(struct crew *crew, struct child *child);

int64_t clock_ms(void); /* monotonic */

#endif
