/* free_memory - reads how much memory this process may still allocate. This is the memory that the kernel reports as
 * available, or less if a control group has a lower limit. */
#ifndef REFTEST_BASE_FREE_MEMORY_H
#define REFTEST_BASE_FREE_MEMORY_H

#include <stdint.h>

/* memory_available and the function below return a number of bytes, or 0 if the amount is not known. `root` is a prefix
 * of every path that is read. Tests pass a folder with their own files; all other callers pass "". */
int64_t memory_available(const char *root);
int64_t memory_installed(const char *root);

#endif
