/* pool - judges and runners, kept warm, and the cases that pass through them.
 *
 * A lane is a judge and the runner it watches. The runner of a lane is a child forked by the template: a python process
 * that has imported torch and never run a reference. Every definition gets a fresh child (a spare is kept ready), so
 * nothing one reference does to torch reaches the next, and import is paid once. The judge holds the arena and makes
 * the verdict; the runner answers "done", shapes and dtypes, or a traceback; this file moves JSON lines between
 * them and keeps the clock. It lives in the program's one poll loop behind a single descriptor. */
#ifndef REFTEST_WORKERS_POOL_H
#define REFTEST_WORKERS_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "dataset/verdict.h"
#include "workers/job.h"

struct pool; /* opaque */

struct pool_options {
	const char *device;      /* "cpu", "cuda:0" */
	const char *python;      /* absolute path of the interpreter */
	const char *root;        /* of the dataset: working directory of nobody, path of blobs */
	int lanes;               /* at least 1 */
	double timeout_s;        /* a case's, both runs and the comparison together */
	bool staged;             /* copy through the host even where CUDA IPC works (a switch for tests) */
	int spares;              /* kept ready by a warm pool, each for one definition; 0: as suit the device */
};

/* Spares of a warm pool on a GPU: there a child takes 0.2 s to make its CUDA context, in which somebody may save again, and
 * each waiting context costs about 0.6 GB of the GPU's memory. On the CPU a child is ready in milliseconds. With fewer than
 * SPARES_LOW left on a GPU, new ones are begun even beside a run. */
enum { SPARES_CPU = 1, SPARES_GPU = 4, SPARES_LOW = 2, SPARES_MOST = 16 };

/* Starts nothing yet: processes are made when the first task needs them. From here to pool_close this process is a
 * subreaper, and closed to debuggers of the same user: a verdict is made and kept where no reference can write. */
struct pool *pool_open(const struct pool_options *options, struct err *err);

/* Starts a judge and the spare runners now, so that the first tasks find them warm (watch). */
void pool_warm(struct pool *pool);

/* One definition's cases that must run. `reference` and `jobs` must live until the task's last result was taken. */
struct task {
	const char *name;      /* op_type/name, for messages */
	const char *reference;
	const struct job *const *jobs;
	int job_count;
	void *owner;           /* handed back with each result */
	bool urgent;           /* goes before what waits already: somebody is looking */
};
void pool_submit(struct pool *pool, const struct task *task);

/* Gives up what has not been told yet of this owner's tasks: a running case is cut short, no result of it comes. */
void pool_cancel(struct pool *pool, const void *owner);

/* Readable whenever pool_dispatch has something to do. */
int pool_fd(const struct pool *pool);
/* Does what can be done without waiting. -1: the pool cannot go on (no interpreter, no judge); the sentence says why. */
int pool_dispatch(struct pool *pool, struct err *err);

struct pool_result {
	void *owner;
	const struct job *job;
	const struct verdict *verdict; /* in the arena given to pool_next */
	bool keep;                     /* false: an accident (crash, timeout, no memory): not to be stored */
	const char *reached;           /* what it did besides computing ("it opens /etc/hostname"): not to be stored; NULL: nothing */
	const char *printed;           /* what the reference wrote to stdout and stderr (the end of it), NULL: nothing */
};
bool pool_next(struct pool *pool, struct arena *arena, struct pool_result *out);
void *pool_next_owner(const struct pool *pool); /* whose result pool_next gives next; NULL: there is none */
int pool_pending(const struct pool *pool); /* cases submitted and not yet told */
int pool_spares(const struct pool *pool);  /* runners that are ready and wait for a definition */

/* What the judge and the template said of themselves, once they run; NULL before. */
const char *pool_device_class(const struct pool *pool);
const char *pool_torch(const struct pool *pool);

/* Ends and reaps every process within a second, whatever they are doing. */
void pool_close(struct pool *pool);

/* Starts a judge only to learn the device's class ("sm_90") and product. -1: it cannot be used, and why. */
int pool_probe_device(const char *device, char *class_name, size_t size, char *product, size_t product_size,
                      struct err *err);

#endif
