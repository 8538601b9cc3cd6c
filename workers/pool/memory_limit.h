/* memory_limit - computes how much memory a reference may use. */
#ifndef REFTEST_WORKERS_POOL_MEMORY_LIMIT_H
#define REFTEST_WORKERS_POOL_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns how many bytes a reference may use, in addition to the tensors in shared memory and to the memory that the
 * process used before it loaded the reference. `given` is the value of --memory. If it is 0, the result is the default
 * for a definition whose largest case has tensors of `tensor_bytes` bytes. The sandbox (workers/sandbox/sandbox.h)
 * lowers the limit further if this machine has less memory available. */
int64_t memory_limit(int64_t given, int64_t tensor_bytes);

/* Returns whether the limit `memory` is so large that holes in malloc's heap need only a small part of it. The default
 * limit is always large enough. */
bool memory_limit_has_room(int64_t memory);

#endif
