#include "cache/block_sigtstp.h"

#include <stddef.h>

struct sigtstp_mask sigtstp_block(void)
{
	struct sigtstp_mask mask;
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	pthread_sigmask(SIG_BLOCK, &stop, &mask.before);
	return mask;
}

void sigtstp_unblock(const struct sigtstp_mask *mask)
{
	pthread_sigmask(SIG_SETMASK, &mask->before, NULL);
}
