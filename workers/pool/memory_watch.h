/* memory_watch - measures how much memory all processes of a runner use together. The kernel limits the memory of each
 * process, but a runner can start many processes. If no control group limits the memory of these processes together,
 * workers/pool/zygote.c repeatedly computes the sum of their memory, and ends a runner whose sum is too large. The sum
 * is complete only if the sandbox has the layers that sandbox_with_sum requires. These layers prevent a reference from
 * using memory that belongs to no process. */
#ifndef REFTEST_WORKERS_POOL_MEMORY_WATCH_H
#define REFTEST_WORKERS_POOL_MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { MEMORY_WATCH_MS = 50 }; /* the interval between two sums */

/* Returns how many bytes of memory, page tables and swap space the processes in a PID namespace use. The directory
 * `proc` is the /proc of this namespace. Does not count the first process of the namespace, because this process does
 * not belong to the reference. If `exact` is false, a page that several processes share is counted once for each of
 * these processes. If `exact` is true, each process counts only with its share of such a page, or with the whole page
 * if its share cannot be read. An exact sum takes about a millisecond per process. Returns -1 if the directory cannot
 * be read. */
int64_t memory_watch_sum(int proc, bool exact);

#endif
