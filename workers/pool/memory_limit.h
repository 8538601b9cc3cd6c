/* memory_limit - computes how much memory a reference may use. */
#ifndef REFTEST_WORKERS_POOL_MEMORY_LIMIT_H
#define REFTEST_WORKERS_POOL_MEMORY_LIMIT_H

#include <stdint.h>

/* Returns the bytes that a reference may use. The memory of its process before it loads the reference is not included,
 * nor are the tensors in shared memory. `given`: the value of --memory; 0: a default for a definition whose largest
 * case has `tensor_bytes` of tensors. The sandbox (workers/sandbox/sandbox.h) lowers the limit further if this machine
 * has less memory available. */
int64_t memory_limit(int64_t given, int64_t tensor_bytes);

#endif
