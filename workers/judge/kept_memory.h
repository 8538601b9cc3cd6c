/* kept_memory - makes malloc keep the memory that the judge frees. A case allocates and frees tensors of the same sizes
 * several times. By default, malloc returns the memory of a freed tensor to the system, and Linux must clear new pages
 * for each new tensor. */
#ifndef REFTEST_WORKERS_JUDGE_KEPT_MEMORY_H
#define REFTEST_WORKERS_JUDGE_KEPT_MEMORY_H

#include <stdbool.h>

/* Lets malloc keep up to 1 GiB of freed memory. */
void kept_memory_begin(void);

/* Waits until `fd` is readable. If this takes longer than `idle_ms` milliseconds, returns the freed memory to the
 * system, and returns true. */
bool kept_memory_wait(int fd, int idle_ms);

#endif
