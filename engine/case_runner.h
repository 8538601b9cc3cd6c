/* case_runner - the interface through which a run executes its cases. One implementation is the pool of worker
 * processes (engine/pool_case_runner.h). The other is a fake for unit tests that records its calls. Do not confuse
 * struct runner, which is this interface, with the worker process "runner" (python/runner.py), which runs
 * references. */
#ifndef REFTEST_ENGINE_CASE_RUNNER_H
#define REFTEST_ENGINE_CASE_RUNNER_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "workers/pool/pool.h"

/* Each member has the contract of a function in workers/pool/pool.h: for example, `submit` has the contract of
 * pool_submit. The first argument of every call is runner.self. */
struct runner_calls {
	void (*submit)(void *self, const struct task *task);
	void (*cancel)(void *self, const void *owner);
	int (*fd)(const void *self);
	int (*dispatch)(void *self, struct err *err);
	void *(*next_owner)(const void *self);
	bool (*next)(void *self, struct arena *arena, struct pool_result *out);
	int (*pending)(const void *self);
	int (*running)(const void *self, struct pool_running *out, int most);
	struct pool_versions (*versions)(const void *self);
	bool (*layers)(const void *self, uint32_t *out);
	void (*close)(void *self);
};

struct runner {
	const struct runner_calls *calls; /* NULL if no case can be executed; `self` is then unused */
	void *self;
};

#endif
