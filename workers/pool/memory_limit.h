/* memory_limit - computes how much memory a reference may use. */
#ifndef REFTEST_WORKERS_POOL_MEMORY_LIMIT_H
#define REFTEST_WORKERS_POOL_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns how many bytes a reference may use. This number does not include the tensors in shared memory, nor the memory
 * that the process uses before it loads the reference. `given`: the value of --memory; 0: a default for a definition
 * whose largest case has `tensor_bytes` of tensors. The sandbox (workers/sandbox/sandbox.h) lowers the limit further if
 * this machine has less memory available. */
int64_t memory_limit(int64_t given, int64_t tensor_bytes);

/* Returns whether holes in malloc's heap are small in relation to the limit `memory`. This is so for every default. */
bool memory_limit_has_room(int64_t memory);

#endif
