/* unstopped - a stretch of work in which Ctrl-Z has to wait, because this process holds something that others wait for
 * without end: the right to write to the store, or its turn to open or close it. (SIGSTOP waits for nothing and
 * nobody.) */
#ifndef REFTEST_CACHE_UNSTOPPED_H
#define REFTEST_CACHE_UNSTOPPED_H

#include <signal.h>

struct unstopped {
	sigset_t before; /* the mask of signals, to be put back */
};

struct unstopped unstopped_begin(void);
void unstopped_end(const struct unstopped *unstopped); /* a Ctrl-Z that came meanwhile stops us here */

#endif
