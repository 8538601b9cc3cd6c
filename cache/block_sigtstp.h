/* block_sigtstp - blocks Ctrl-Z (SIGTSTP) while this process holds one of two locks: the write lock of the store, or
 * the lock for opening and closing the store. If a process stopped while it held one of these locks, it would block all
 * other processes, because they wait for the lock without a time limit. SIGSTOP cannot be blocked. */
#ifndef REFTEST_CACHE_BLOCK_SIGTSTP_H
#define REFTEST_CACHE_BLOCK_SIGTSTP_H

#include <signal.h>

struct sigtstp_mask {
	sigset_t before; /* the signal mask to restore */
};

struct sigtstp_mask sigtstp_block(void);
/* if Ctrl-Z was pressed while the signal was blocked, this call stops the process */
void sigtstp_unblock(const struct sigtstp_mask *mask);

#endif
