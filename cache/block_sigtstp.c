#include "cache/block_sigtstp.h"

#include <stddef.h>

struct unstopped sigtstp_block(void)
{
	struct unstopped unstopped;
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	pthread_sigmask(SIG_BLOCK, &stop, &unstopped.before);
	return unstopped;
}

void sigtstp_unblock(const struct unstopped *unstopped)
{
	pthread_sigmask(SIG_SETMASK, &unstopped->before, NULL);
}
