/* memory_watch - how much memory all processes of a runner use together. The kernel limits the memory of each process;
 * a runner can start many. Where no control group limits them together, the zygote's caller asks again and again, and
 * ends a runner that uses too much. The sum is complete only with the layers that sandbox_with_sum names, because those
 * keep a reference from memory that belongs to no process. */
#ifndef REFTEST_WORKERS_POOL_MEMORY_WATCH_H
#define REFTEST_WORKERS_POOL_MEMORY_WATCH_H

#include <stdbool.h>
#include <stdint.h>

enum { MEMORY_WATCH_MS = 50 }; /* time between two sums */

/* Returns the bytes of memory, page tables and swap space of all processes in the PID namespace whose /proc is the
 * directory `proc`, but for its first process, which is not the reference's. Pages that a process shares with its
 * parent count for both, unless `exact`: then each gets its part of them, which takes about a millisecond for a
 * process. A process that hides its pages gets them whole. -1: the directory cannot be read. */
int64_t memory_watch_sum(int proc, bool exact);

#endif
