/* pool - runs cases on warm judges and runners.
 *
 * A lane is a judge (the process that compares) and its runner (the process that runs the reference). Each runner is a
 * child of the zygote, a Python process that has imported torch and never runs a reference. Each definition gets a new
 * runner, so one reference cannot change torch for the next reference. Because runners are forked from the zygote,
 * torch is imported only once. Definitions whose references can leave nothing behind share runners
 * (workers/pool/isolation.h). A definition may have several runners: idle lanes take some of its cases
 * (workers/pool/separation.h). The judge owns the arena (the memory that it shares with the runner) and gives the
 * verdict. The runner answers with shapes and dtypes, or with a traceback. The pool passes JSON lines between judge and
 * runner and enforces timeouts. The caller polls a single descriptor (pool_fd). */
#ifndef REFTEST_WORKERS_POOL_POOL_H
#define REFTEST_WORKERS_POOL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "dataset/verdict.h"
#include "workers/pool/task.h"
#include "workers/protocol/judge_process.h"

struct pool; /* opaque */

struct pool_options {
	const char *device;      /* "cpu", "cuda:0" */
	const char *python;      /* absolute path of the interpreter */
	const char *root;        /* root of the dataset, to which blob paths are relative */
	struct judge_program judge;
	bool libraries;          /* if some case may need the provider: pool_open then starts the provider, before any
				  * reference runs */
	int lanes;               /* at least 1 */
	int cores;               /* number of cores that the pool may keep busy; 0: all that this process may use */
	bool guarded;            /* the caller called pool_guard_open, because it opens several pools */
	double timeout_s;        /* time limit for a case, including all runs and the comparisons */
	int64_t memory;          /* bytes that a reference may use (workers/pool/memory_limit.h); 0: the default */
	bool staged;             /* copy tensors through host memory even where CUDA IPC works (for tests) */
	const char *required;    /* what references must not reach (workers/sandbox/containment.h); NULL: nothing */
	bool own;                /* no runner serves several definitions (workers/pool/isolation.h) */
	int spares;              /* number of spare runners that a warm pool keeps ready; 0: SPARES_CPU or SPARES_GPU */
};

/* Number of spare runners that a warm pool keeps ready. On the CPU one spare runner is enough, because a new runner is
 * ready in milliseconds. On a GPU a runner takes 0.2 s to create its CUDA context, and the user may save another file
 * in that time. More spare runners would waste memory, because each context takes about 0.6 GB of GPU memory. If fewer
 * than SPARES_LOW spare runners are left on a GPU, new ones start even during a run. */
enum { SPARES_CPU = 1, SPARES_GPU = 4, SPARES_LOW = 2, SPARES_MOST = 16 };

/* Makes this process a subreaper and closes its memory to debuggers, until pool_guard_close. pool_open does the same
 * unless pool_options.guarded is set. */
struct pool_guard {
	int subreaper, dumpable; /* the values before pool_guard_open */
};
struct pool_guard pool_guard_open(void);
void pool_guard_close(const struct pool_guard *guard);

/* Starts no process except the provider; judges and runners start with the first task. Until pool_close this process is
 * a subreaper. Other processes of the same user cannot attach a debugger to this process, because a reference could
 * otherwise change a verdict in the memory of this process. Judges are forked from this process, which must therefore
 * have a single thread and no CUDA context. */
struct pool *pool_open(const struct pool_options *options, struct err *err);

/* Starts a judge and the spare runners now, so that the first tasks need not wait for them. `watch` calls it. */
void pool_warm(struct pool *pool);

void pool_submit(struct pool *pool, const struct task *task);

/* Cancels all tasks of `owner` and stops their running cases. pool_next then returns no further result of these
 * tasks. */
void pool_cancel(struct pool *pool, const void *owner);

/* Becomes readable whenever pool_dispatch has work to do. */
int pool_fd(const struct pool *pool);
/* Does all work that does not block. Returns -1 with a message if no runner or no judge can be started. */
int pool_dispatch(struct pool *pool, struct err *err);

struct pool_result {
	void *owner;
	const struct job *job;
	const struct verdict *verdict; /* allocated in the arena that was passed to pool_next */
	bool keep;                     /* false: do not store the verdict (transient failure, or `reached` is set) */
	const char *reached;           /* what the reference used outside itself ("it opens /etc/hostname"), or NULL */
	const char *printed;           /* the end of the reference's text on stdout and stderr, or NULL */
};
bool pool_next(struct pool *pool, struct arena *arena, struct pool_result *out);
void *pool_next_owner(const struct pool *pool); /* the owner of the result that pool_next returns next, or NULL */

/* What a lane does now. */
struct pool_running {
	int lane; /* from 0 */
	const void *owner;
	const struct job *job;
	double started;		/* when the case started: seconds of the monotonic clock; 0: its runner is not ready yet */
	const char *preparing;	/* what the ground truth of the case waits for ("flashinfer compiles page"); NULL: nothing */
};
/* Writes an entry for each lane that has a case, and returns their number, at most `most`. The entries are valid until
 * the next call of pool_dispatch. */
int pool_running(const struct pool *pool, struct pool_running *out, int most);
int pool_pending(const struct pool *pool); /* number of submitted cases whose results pool_next has not returned yet */
int pool_spares(const struct pool *pool);  /* number of runners that are ready and assigned to no lane */

/* Returns the version of torch that the zygote reported, or NULL if no zygote has started yet. */
const char *pool_torch(const struct pool *pool);
/* Sets `out` to the layers of the sandbox that hold for references (workers/sandbox/sandbox.h). Returns false if they
 * are not known yet. */
bool pool_layers(const struct pool *pool, uint32_t *out);

/* Kills all processes of the pool, reaps them for at most a second, and frees the pool. */
void pool_close(struct pool *pool);

/* Starts a judge only to find out the class ("sm_90") and the product name of a device. Returns -1 with a message if
 * the device cannot be used. */
int pool_probe_device(const struct judge_program *judge, const char *device, char *class_name, size_t size,
		      char *product, size_t product_size, struct err *err);

#endif
