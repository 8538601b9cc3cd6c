/* waiting - who waits long for a lock of the store is told for whom, and what to do.
 *
 * LMDB's right to write and the turn to open or close a store (cache/env.c) are waited for without end: whoever holds
 * them needs milliseconds, and one that dies gives them up. One that was stopped (SIGSTOP, a debugger) keeps them. So
 * whoever has waited for WAITING_TOLD_MS says so on standard error, once, and waits on. */
#ifndef REFTEST_CACHE_WAITING_H
#define REFTEST_CACHE_WAITING_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

enum { WAITING_TOLD_MS = 2000 };

struct waiting {
	const char *cache;  /* for the sentence */
	const char *locked; /* a file or folder that processes which use the store hold a lock on */
	pthread_t teller;
	sem_t over;
	bool begun;
};

/* Before something that may block. Both paths live until waiting_end. Where no thread can be had nothing is told. */
void waiting_begin(struct waiting *waiting, const char *cache, const char *locked);
void waiting_end(struct waiting *waiting);

#endif
