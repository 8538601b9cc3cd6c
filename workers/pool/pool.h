/* pool - runs cases with judges and runners that are already started.
 *
 * A lane is a judge (the process that compares) and its runner (the process that runs the reference). Each runner is a
 * child of the zygote, a Python process that has imported torch and never runs a reference. Each definition gets a new
 * runner, so one reference cannot change torch for the next reference. Because runners are forked from the zygote,
 * torch is imported only once. One runner may serve several definitions if their references can leave nothing behind in
 * the runner (workers/pool/isolation.h). A definition may also have several runners, because idle lanes can take some
 * of its cases (workers/pool/parallel_cases.h). The judge owns the arena (the memory that it shares with the runner) and
 * gives the verdict. The runner answers with shapes and dtypes, or with a traceback. The pool passes JSON lines between
 * judge and runner and enforces timeouts. The caller polls a single descriptor (pool_fd). */
#ifndef REFTEST_WORKERS_POOL_POOL_H
#define REFTEST_WORKERS_POOL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "dataset/verdict.h"
#include "workers/pool/task.h"
#include "workers/protocol/judge_process.h"

struct pool; /* an opaque type */

struct pool_options {
	const char *device;      /* a name such as "cpu" or "cuda:0" */
	const char *python;      /* the absolute path of the interpreter */
	const char *root;        /* the root of the dataset; the paths of blobs are relative to it */
	struct judge_program judge;
	bool libraries;          /* some case may need the provider, so pool_open must start it before any reference
				  * runs */
	int lanes;               /* the number of lanes, at least 1 */
	int cores;               /* the number of cores that the pool may keep busy; 0: all cores that this process may
				  * use */
	bool guarded;            /* the caller has called pool_guard_open, because it opens several pools */
	double timeout_s;        /* the time limit for a case in seconds, including all its runs and comparisons */
	int64_t memory;          /* how many bytes a reference may use (workers/pool/memory_limit.h); 0: the default */
	bool staged;             /* copy tensors through host memory even where CUDA IPC works (for tests) */
	const char *required;    /* what references must not be able to reach (workers/sandbox/containment.h); NULL: no
				  * requirement */
	bool own;                /* no runner may serve several definitions (workers/pool/isolation.h) */
	int spares;              /* the number of spare runners that a warm pool keeps ready; 0: SPARES_CPU or
				  * SPARES_GPU */
};

/* The number of spare runners that a warm pool keeps ready. On the CPU, one spare runner is enough, because a new
 * runner is ready in milliseconds. On a GPU, a runner takes 0.2 s to create its CUDA context, and the user may save
 * another file during this time. More spare runners would waste memory, because each context takes about 0.6 GB of GPU
 * memory. If fewer than SPARES_LOW spare runners are left on a GPU, new ones start even during a run. */
enum { SPARES_CPU = 1, SPARES_GPU = 4, SPARES_LOW = 2, SPARES_MOST = 16 };

/* Makes this process a subreaper, and protects its memory from debuggers, until pool_guard_close is called. pool_open
 * does the same, unless pool_options.guarded is set. */
struct pool_guard {
	int subreaper, dumpable; /* the settings of this process before pool_guard_open */
};
struct pool_guard pool_guard_open(void);
void pool_guard_close(const struct pool_guard *guard);

/* Starts no process except the provider; judges and runners start with the first task. Until pool_close, this process
 * is a subreaper. Other processes of the same user cannot attach a debugger to it. This prevents a reference from
 * changing a verdict in the memory of this process. This process must have a single thread and no CUDA context, because
 * judges are forked from it. */
struct pool *pool_open(const struct pool_options *options, struct err *err);

/* Starts a judge and the spare runners now, so that the first tasks need not wait for them. `watch` calls this
 * function. */
void pool_warm(struct pool *pool);

void pool_submit(struct pool *pool, const struct task *task);

/* Cancels all tasks of `owner` and stops their running cases. pool_next then returns no further result of these
 * tasks. */
void pool_cancel(struct pool *pool, const void *owner);

/* Returns a descriptor that is readable whenever pool_dispatch has work to do. */
int pool_fd(const struct pool *pool);
/* Does all work that does not block. Returns -1 with a message if a runner or a judge cannot be started. */
int pool_dispatch(struct pool *pool, struct err *err);

struct pool_result {
	void *owner;
	const struct job *job;
	const struct verdict *verdict; /* the verdict, allocated in the arena that was passed to pool_next */
	bool keep;                     /* whether the verdict may be stored; false after a transient failure, or if
				        * `reached` is set */
	bool stateless;                /* the reference is known to keep nothing from one case to the next */
	bool follows;                  /* all earlier cases of the task ran in the same process before */
	const char *reached;           /* what the reference used outside its process, such as "it opens
				        * /etc/hostname", or NULL */
	const char *printed;           /* the end of the text that the reference printed on stdout and stderr, or
				        * NULL */
};
bool pool_next(struct pool *pool, struct arena *arena, struct pool_result *out);
void *pool_next_owner(const struct pool *pool); /* the owner of the result that pool_next returns next, or NULL */

/* What a lane does now. */
struct pool_running {
	int lane; /* the index of the lane */
	const void *owner;
	const struct job *job;
	double started;		/* the time at which the case started, in seconds of the monotonic clock; 0: its runner
				 * is not ready yet */
	const char *preparing;	/* the preparation for which the case's ground truth waits, such as "flashinfer compiles
				 * page"; NULL: none */
};
/* Writes an entry for each lane that has a case, but at most `most` entries. Returns their number. The entries are
 * valid until the next call of pool_dispatch. */
int pool_running(const struct pool *pool, struct pool_running *out, int most);
int pool_pending(const struct pool *pool); /* returns the number of submitted cases whose results pool_next has not
					    * returned yet */
int pool_spares(const struct pool *pool);  /* returns the number of runners that are ready and belong to no lane */

/* Returns the versions that the zygote reported. The members are NULL if no zygote has started yet. */
struct pool_versions {
	const char *torch, *python;
};
struct pool_versions pool_versions(const struct pool *pool);
/* Sets `out` to the layers of the sandbox that confine references (workers/sandbox/sandbox.h). Returns false if they
 * are not known yet. */
bool pool_layers(const struct pool *pool, uint32_t *out);

/* Kills all processes of the pool, waits at most a second to reap them, and frees the pool. */
void pool_close(struct pool *pool);

/* Finds the class (such as "sm_90") and the product name of a device. For this purpose, starts a judge and ends it
 * again. Returns -1 with a message if the device cannot be used. */
int pool_probe_device(const struct judge_program *judge, const char *device, char *class_name, size_t size,
		      char *product, size_t product_size, struct err *err);

#endif
