/* lock_wait - reports a long wait for a lock of the store. The report tells the user which process holds the lock, and
 * what the user can do.
 *
 * A process waits without a time limit for three locks: the lock for opening or closing a store (cache/lmdb_env.c), the
 * lock for writing, and the lock for becoming a reader (cache/lmdb_locks.h). A running process holds these locks only
 * for milliseconds, and a process that dies releases its locks. But a stopped process (SIGSTOP, a debugger) keeps its
 * locks. A process that has waited for LOCK_WAIT_REPORT_MS milliseconds therefore reports the wait once on standard
 * error, and then continues to wait. */
#ifndef REFTEST_CACHE_LOCK_WAIT_H
#define REFTEST_CACHE_LOCK_WAIT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

enum { LOCK_WAIT_REPORT_MS = 2000 };

struct lock_wait {
	const char *cache;  /* path of the cache, which the report contains */
	const char *locked; /* the file or folder that each process locks while it uses the store */
	pthread_t reporter;
	sem_t over;
	bool begun;
};

/* Call lock_wait_begin before an operation that may block. `cache` and `locked` must stay valid until lock_wait_end. If
 * no thread can be created, nothing is reported. */
void lock_wait_begin(struct lock_wait *waiting, const char *cache, const char *locked);
void lock_wait_end(struct lock_wait *waiting);

#endif
