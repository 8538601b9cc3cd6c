/* pool_case_runner - implements struct runner (engine/case_runner.h) with the pool of worker processes
 * (workers/pool/pool.h). */
#ifndef REFTEST_ENGINE_POOL_CASE_RUNNER_H
#define REFTEST_ENGINE_POOL_CASE_RUNNER_H

#include "engine/case_runner.h"

/* If `pool` is NULL, returns an empty runner. Closing the runner closes the pool. */
struct runner pool_runner(struct pool *pool);

#endif
