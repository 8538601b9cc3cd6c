#include "cache/unstopped.h"

#include <stddef.h>

struct unstopped unstopped_begin(void)
{
	struct unstopped unstopped;
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	pthread_sigmask(SIG_BLOCK, &stop, &unstopped.before);
	return unstopped;
}

void unstopped_end(const struct unstopped *unstopped)
{
	pthread_sigmask(SIG_SETMASK, &unstopped->before, NULL);
}
