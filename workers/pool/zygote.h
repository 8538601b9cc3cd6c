/* zygote - manages the zygote and the runners. The zygote is a Python process that has imported torch and forks the
 * runners.
 *
 * A spare runner waits until a lane needs a runner. A runner usually serves one definition and is then killed. If the
 * source code of the reference allows the runner to be used again (workers/pool/isolation.h), the runner is released
 * instead. A released runner then serves another definition, if the source code of that reference allows this, too.
 * When the zygote has reported the end of a runner, this process tells the zygote to reap the runner. The runner's slot
 * is then free again. Until the runner is reaped, the kernel cannot reuse its pid. If the zygote dies, the kernel kills
 * all runners, and a new zygote is started when runners are needed. The zygote kills processes that references leave
 * behind. After the death of a zygote, zygote_dispatch kills them, which is possible only if this process is a
 * subreaper. A new zygote is started only when all leftover processes have ended, because they could change the zygote
 * while it starts. */
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
	CHILD_WARMING, /* the runner was forked, but is not ready yet */
	CHILD_SPARE,
	CHILD_TAKEN, /* the runner belongs to a lane */
	CHILD_ENDING /* the runner was killed, but not reaped yet */
};

struct child {
	enum child_state state;
	int64_t number;         /* the runner's number, which is unique in this pool and never 0 */
	pid_t pid;              /* the pid in the zygote's PID namespace, which is useful only in messages; 0: not known
				 * yet */
	int pidfd;              /* a pidfd of the runner; -1: not known yet */
	struct channel channel;
	int pipe;               /* a pipe with the runner's stdout and stderr; -1: closed */
	struct buf printed;     /* the end of the text that the runner printed */
	int64_t printed_bytes;  /* the number of bytes that the runner has printed in total */
	int64_t deadline_ms;    /* the time by which a starting runner must be ready, or by which a runner that closed
				 * its socket must have ended */
	bool ready;		/* the runner has sent {"ready"}, perhaps before the zygote reported its pid */
	int64_t ready_ms;       /* the time at which the runner became ready */
	bool ended;             /* the zygote has reported the runner's end, and `status` is valid */
	bool lost;		/* the runner was killed because the zygote died, so there is no wait status */
	bool shut;              /* the runner closed its socket but kept running, and was killed because of this */
	int status;             /* the wait status */
	bool used;              /* the runner has served a definition and was then released */
	bool reader;            /* the child is the reader: it parses source code, never runs a reference, and belongs
				 * to no lane */
	int64_t group;          /* the number of the runner's control group; 0: it has none */
	bool out_of_memory;     /* the runner was ended because its processes together reached the memory limit */
	int proc;               /* a descriptor of the /proc of the runner's PID namespace, if the memory of its
				 * processes is added up; else -1 */
	int64_t memory_most;    /* the largest allowed sum of the memory of the runner's processes; 0: no reference is
				 * loaded yet */
	int64_t memory_spare;   /* how many bytes of memory must stay available on this machine */
};

enum { ZYGOTE_GONE = 64 }; /* the number of ended runners whose numbers are kept */

enum { RUNNER_POOL_PRINTED = 64 << 10 }; /* the number of bytes of a reference's output that are kept */

struct zygote {
	const char *python, *device; /* strings that belong to the caller */
	const char *root;            /* the root of the dataset, which references must not see; the string belongs to
				      * the caller */
	char script[4096];           /* the path of runner.py */
	char folder[4096];           /* the folder that contains the temporary folders of runners; "": there is none */
	int sandbox;                 /* a descriptor of a sealed copy of libreftest_sandbox.so; -1: none */
	int threads;                 /* the number of CPU threads that torch uses in each runner */
	int epoll;                   /* an epoll that belongs to the caller */
	struct process zygote;
	struct channel channel;
	int pipe; /* a pipe with the zygote's output, which is shown if the zygote does not start */
	struct buf said;
	int64_t deadline_ms; /* the time by which the zygote must have started; 0: it has started, or there is none */
	bool up;
	int failures;                /* how often in a row a zygote or a runner failed to start */
	bool was_ready;              /* a runner has been ready */
	int64_t gpu_free;            /* how many bytes of GPU memory were free when the newest runner became ready; 0: not
				      * known, or the device is the CPU */
	int64_t watch_ms;            /* the time of the next check of the runners' memory */
	int64_t orphans_ms;          /* the time of the next search for orphaned processes; 0: there are none */
	struct child *children;
	int room;                    /* the number of slots */
	int64_t numbers;             /* the number of the newest runner */
	int64_t gone[ZYGOTE_GONE];   /* the numbers of the runners that ended most recently; 0: an unused entry */
	unsigned gone_count;         /* how many numbers were written to `gone` in total */
	struct control_groups groups;
	const char *required;        /* what references must not be able to reach, a string of the caller; NULL: no
				      * requirement */
	bool taken;                  /* a lane has taken a runner, so a reference may have run */
	uint32_t layers;             /* the layers of the sandbox that confine each runner
				      * (workers/sandbox/sandbox.h) */
	char torch[64], cuda[32], python_version[64]; /* the versions that the zygote reported; cuda is "" if torch was
						       * built without CUDA */
};

/* Starts no process. `places` is the largest number of runners that are taken or spare at the same time. */
int zygote_open(struct zygote *runners, const char *python, const char *device, const char *root, int places,
		int threads, int epoll, struct err *err);
/* Kills the zygote and all runners, and waits at most a second to reap them. */
void zygote_close(struct zygote *runners);

/* How many runners are needed. */
struct runner_demand {
	int fresh; /* how many new runners are needed, which have served no definition yet */
	int any;   /* how many further runners are needed, which may be new or may have served a definition */
};

/* Starts runners until enough of them are ready or starting. */
int zygote_want(struct zygote *runners, struct runner_demand demand, struct err *err);
/* Starts a reader and returns it. Returns NULL if no reader can be started now. If no reader can ever be started, also
 * sets `err`. The caller owns the reader, like a runner from zygote_take. The first line that a reader sends is
 * {"ready"}. */
struct child *zygote_reader(struct zygote *runners, struct err *err);
/* Handles the messages of the zygote and of the spare runners, and the end of these processes. Returns -1 with a
 * message if no runner can be started. */
int zygote_dispatch(struct zygote *runners, int64_t now_ms, struct err *err);
int64_t zygote_deadline(
    const struct zygote *runners); /* returns the time in ms at which zygote_dispatch must be called next; INT64_MAX:
				    * never */

/* Takes a spare runner, which then belongs to the caller. If `used` is true, prefers a runner that was used before. If
 * `used` is false, never returns such a runner. Returns NULL if there is no suitable runner. */
struct child *zygote_take(struct zygote *runners, bool used);
/* Takes back a runner whose reference cannot leave anything behind. The runner removes the reference, and compares the
 * state of its process with the state before the reference was loaded. If nothing differs, the runner becomes a spare
 * runner again; otherwise it ends. */
void zygote_release(struct zygote *runners, struct child *child);
void zygote_drop_used(struct zygote *runners);     /* kills the spare runners that were used */
int zygote_spares(const struct zygote *runners);   /* returns the number of spare runners that are ready and were not
						    * used */

/* Returns true if a reference may have run (a lane has taken a runner), and if the sandbox does not prevent references
 * from reaching the memory of processes that reftest starts from now on. */
bool zygote_reaches_processes(const struct zygote *runners);

/* Returns the number of runners that belong to no lane and may use device memory. These are spare, starting and ending
 * runners. */
int zygote_idle(const struct zygote *runners);
/* Kills all spare and starting runners, except one that has run no reference. If there is no such runner, kills all of
 * them. */
void zygote_thin(struct zygote *runners);
int zygote_ending(const struct zygote *runners); /* returns the number of runners that were killed, but have not ended */

enum child_event { CHILD_NOTHING, CHILD_LINE, CHILD_ENDED, CHILD_BABBLES };
/* Returns the next event of a runner. CHILD_LINE means that the runner sent a line, which is valid until the next call.
 * CHILD_BABBLES means that the runner sent a line that is too long. CHILD_ENDED means that the runner has ended. */
enum child_event child_next(struct child *child, int64_t now_ms, char **line, size_t *length);
/* Reads the text that the runner has printed so far into `printed`. */
void child_listen(struct child *child);

/* Kills a runner. Its slot becomes free when the zygote reports the runner's end, or immediately if the runner has
 * already ended. */
void zygote_drop(struct zygote *runners, struct child *child);

/* Returns true if the runner with this number and every process that it started have ended. Returns false for a runner
 * that had no PID namespace. Also returns false if ZYGOTE_GONE other runners have ended since, because only the last
 * ZYGOTE_GONE numbers are kept. */
bool zygote_is_gone(const struct zygote *runners, int64_t number);

/* Limits the memory of all processes of a runner together, before the runner loads a reference. Uses a control group if
 * possible. Otherwise the memory of the processes is added up repeatedly. If neither is possible, does nothing. Returns
 * -1 on error. */
int zygote_limit_memory(struct zygote *runners, struct child *child, int64_t bytes);

int64_t clock_ms(void); /* returns the time of the monotonic clock in ms */

#endif
