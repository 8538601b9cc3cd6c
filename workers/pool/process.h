/* process - starts, watches, kills and reaps child processes, and describes how they ended. */
#ifndef REFTEST_WORKERS_POOL_PROCESS_H
#define REFTEST_WORKERS_POOL_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct process {
	pid_t pid; /* 0: there is no process */
	int pidfd; /* a descriptor that becomes readable when the process ends; the struct owns it; -1: none */
};

/* Starts the program `path`. The new process has a process group of its own, so the terminal's Ctrl-C does not reach
 * it. No signal is blocked or ignored in the new process. The new process gets fds[i] as descriptor i (-1: /dev/null)
 * and no other descriptor. */
int process_start(struct process *process, const char *path, char *const argv[], char *const envp[], const int *fds,
                  int fd_count, struct err *err);

/* Forks this process and calls `run(context)` in the new process, which exits with the result of `run`. The new process
 * has the descriptors, the process group and the signals that process_start describes, and it is killed if this process
 * ends. If this process cannot be debugged, the new process can never be debugged, either. This process must have a
 * single thread. All other descriptors are closed in the new process, so `run` must not use files that this process has
 * opened. `name` is the name that `ps` shows; it has at most 15 bytes. */
int process_fork(struct process *process, const char *name, int (*run)(void *context), void *context, const int *fds,
		 int fd_count, struct err *err);

/* If the process has ended, reaps it, sets `status` to its wait status and returns true. */
bool process_ended(struct process *process, int *status);

/* Resumes a process that a signal has stopped. Does nothing if `pidfd`, a pidfd of the process, is -1. */
void process_let_continue(int pidfd);

/* Sends SIGKILL to the process and to its process group. The caller must still reap the process. */
void process_kill(const struct process *process);

/* The description of a wait status, such as "exit status 3" or "signal 11 (SIGSEGV, Segmentation fault)". */
struct process_end {
	char text[80];
};
struct process_end process_end(int status);

/* Returns whether the process was killed by a signal that usually comes from another process (SIGKILL, SIGTERM, SIGINT,
 * SIGHUP, SIGQUIT). */
bool process_was_killed(int status);

#endif
