/* zygote - manages the zygote and the runners. The zygote is a Python process that has imported torch; it forks the
 * runners.
 *
 * A spare runner waits until a lane needs a runner. A runner serves one definition and is then killed. If the source
 * code of its reference allows it, the runner is released instead, and then serves another definition whose reference
 * allows it, too (workers/pool/isolation.h). A runner's slot is free again after the zygote has reported the runner's
 * end and has been told to reap the runner. Until the runner is reaped, the kernel cannot reuse the runner's pid. If
 * the zygote dies, the kernel kills all runners, and a new zygote is started when runners are needed. The zygote kills
 * processes that references leave behind. If the zygote has died, zygote_dispatch kills these leftover processes, for
 * which this process must be a subreaper. A new zygote is started only when all leftover processes have ended, because
 * they could change the zygote while it starts. */
#ifndef REFTEST_WORKERS_POOL_ZYGOTE_H
#define REFTEST_WORKERS_POOL_ZYGOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "workers/pool/control_groups.h"
#include "workers/pool/process.h"
#include "workers/protocol/channel.h"

enum child_state {
	CHILD_NONE,    /* the slot is free */
	CHILD_FORKING, /* the zygote was asked to fork the runner */
	CHILD_WARMING, /* forked, but not ready yet */
	CHILD_SPARE,
	CHILD_TAKEN, /* used by a lane */
	CHILD_ENDING /* killed, but not reaped yet */
};

struct child {
	enum child_state state;
	int64_t number;         /* a number that no other runner of this pool has; never 0 */
	pid_t pid;              /* the pid in the zygote's PID namespace, which is useful only in messages; 0: not known
				 * yet */
	int pidfd;              /* -1: not known yet */
	struct channel channel;
	int pipe;               /* pipe with the runner's stdout and stderr; -1: closed */
	struct buf printed;     /* the end of the text that the runner printed */
	int64_t printed_bytes;  /* number of bytes that the runner has printed in total */
	int64_t deadline_ms;    /* deadline by which a starting runner must be ready, or a runner without socket must
				 * end */
	bool ready;		/* the runner has sent {"ready"}, perhaps before the zygote reported its pid */
	int64_t ready_ms;       /* when the runner became ready */
	bool ended;             /* the zygote has reported the runner's end; `status` is its wait status */
	bool lost;		/* the runner was killed because the zygote died; there is no wait status */
	bool shut;              /* the runner closed its socket but kept running, and was killed for that */
	int status;             /* wait status */
	bool used;              /* the runner was released after a definition */
	bool reader;            /* the child parses source code and never runs a reference; no lane gets it */
	int64_t group;          /* the runner's control group; 0: none */
	bool out_of_memory;     /* the runner was ended because all its processes together reached the limit of
				 * memory */
	int proc;               /* the directory /proc of the runner's PID namespace, if the memory of its processes is
				 * added up; else -1 */
	int64_t memory_most;    /* the largest sum that the memory of all processes of the runner may have; 0: no
				 * reference is loaded yet */
	int64_t memory_spare;   /* bytes of memory that must stay available on this machine */
};

enum { ZYGOTE_GONE = 64 }; /* how many numbers of runners that are gone are kept */

enum { RUNNER_POOL_PRINTED = 64 << 10 }; /* how many bytes of a reference's output are kept */

struct zygote {
	const char *python, *device; /* not owned */
	const char *root;            /* root of the dataset, which references must not see; not owned */
	char script[4096];           /* runner.py */
	char folder[4096];           /* the folder for temporary folders of runners; "": none */
	int sandbox;                 /* a sealed copy of libreftest_sandbox.so; -1: none */
	int threads;                 /* number of CPU threads that torch uses in each runner */
	int epoll;                   /* not owned */
	struct process zygote;
	struct channel channel;
	int pipe; /* pipe with the zygote's output, which is shown if the zygote does not start */
	struct buf said;
	int64_t deadline_ms; /* deadline for the zygote to start; 0: it has started, or there is none */
	bool up;
	int failures;                /* how many times in a row a zygote or a runner failed to start */
	int64_t watch_ms;            /* when the memory of the runners is checked next */
	int64_t orphans_ms;          /* time of the next search for orphaned processes; 0: there are none */
	struct child *children;
	int room;                    /* slots */
	int64_t numbers;             /* the number of the newest runner */
	int64_t gone[ZYGOTE_GONE];   /* the numbers of the last runners that are gone; 0: unused */
	unsigned gone_count;         /* how many numbers were written to `gone` in total */
	struct control_groups groups;
	const char *required;        /* what references must not reach; NULL: nothing; not owned */
	bool taken;                  /* a runner was taken, so a reference may have run */
	uint32_t layers;             /* the layers of the sandbox that hold for each runner (workers/sandbox/sandbox.h) */
	char torch[64], cuda[32];    /* versions reported by the zygote; cuda "": torch was built without CUDA */
};

/* Starts no process. `places` is the maximum number of runners, used and spare ones together. */
int zygote_open(struct zygote *runners, const char *python, const char *device, const char *root, int places,
		int threads, int epoll, struct err *err);
/* Kills the zygote and all runners, and reaps them for at most a second. */
void zygote_close(struct zygote *runners);

/* The numbers of runners that are needed. */
struct runner_demand {
	int fresh; /* runners that have not served a definition */
	int any;   /* further runners, which may have served a definition */
};

/* Starts runners until enough runners are ready or starting to meet the demand. */
int zygote_want(struct zygote *runners, struct runner_demand demand, struct err *err);
/* Starts a reader and returns it. Returns NULL if no reader can be started now; if none can ever be started, also sets
 * `err`. The caller owns the reader, as it owns a runner from zygote_take. The first line of a reader is {"ready"}. */
struct child *zygote_reader(struct zygote *runners, struct err *err);
/* Handles what the zygote and the spare runners send, and the end of these processes. Returns -1 with a message if no
 * runner can be started. */
int zygote_dispatch(struct zygote *runners, int64_t now_ms, struct err *err);
int64_t zygote_deadline(
    const struct zygote *runners); /* ms: when zygote_dispatch must be called next; INT64_MAX: never */

/* Takes a spare runner, which then belongs to the caller. If `used` is true, prefers a runner that was used before;
 * otherwise never returns such a runner. Returns NULL if none is ready. */
struct child *zygote_take(struct zygote *runners, bool used);
/* Takes back a runner whose reference cannot leave anything behind. The runner removes the reference and compares the
 * state of its process with the state before the reference. If nothing differs, the runner is spare again; otherwise
 * the runner ends. */
void zygote_release(struct zygote *runners, struct child *child);
void zygote_drop_used(struct zygote *runners);     /* kills the spare runners that were used */
int zygote_spares(const struct zygote *runners);   /* number of spare runners that are ready and were not used */

/* Returns whether a runner was taken, so that a reference may have run, and whether such a reference could reach the
 * memory of processes that reftest starts from now on. */
bool zygote_reaches_processes(const struct zygote *runners);

/* Returns how many runners without a lane may use device memory: spare, starting and ending ones. */
int zygote_idle(const struct zygote *runners);
/* Kills all spare and starting runners except one. */
void zygote_thin(struct zygote *runners);

enum child_event { CHILD_NOTHING, CHILD_LINE, CHILD_ENDED, CHILD_BABBLES };
/* Returns the next event of a runner. CHILD_LINE means that the runner sent a line, which is valid until the next call.
 * CHILD_BABBLES means that the runner sent a line that is too long. CHILD_ENDED means that the runner has ended. */
enum child_event child_next(struct child *child, int64_t now_ms, char **line, size_t *length);
/* Reads the text that the runner has printed so far into `printed`. */
void child_listen(struct child *child);

/* Kills a runner. The runner's slot is freed when the zygote reports the runner's end. If the runner has already
 * ended, the slot is freed immediately. */
void zygote_drop(struct zygote *runners, struct child *child);

/* Returns whether the runner with this number, and every process that it started, has ended. Returns false for a runner
 * that had no PID namespace, and for a runner that ended before the last ZYGOTE_GONE runners. */
bool zygote_is_gone(const struct zygote *runners, int64_t number);

/* Limits the memory of all processes of a runner together, before it loads a reference. If possible, uses a control
 * group. Otherwise the memory of the processes is added up repeatedly. If this is not possible either, does nothing.
 * Returns -1 on error. */
int zygote_limit_memory(struct zygote *runners, struct child *child, int64_t bytes);

int64_t clock_ms(void); /* monotonic */

#endif
