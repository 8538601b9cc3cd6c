/* process - children of this program: started, watched, killed, reaped, and how their end is told. */
#ifndef REFTEST_WORKERS_PROCESS_H
#define REFTEST_WORKERS_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct process {
	pid_t pid; /* 0: none */
	int pidfd; /* readable once it has ended; owned; -1: none */
};

/* Starts `path` in a process group of its own (the terminal's Ctrl-C is not for it), with no signal blocked or ignored.
 * It gets fds[i] as descriptor i (-1: /dev/null) and no other. */
int process_start(struct process *process, const char *path, char *const argv[], char *const envp[], const int *fds,
                  int fd_count, struct err *err);

/* This program's environment, without what a process that runs code of others has no use for and might print: the key that
 * verdicts are signed with, and the address and password of the remote. `more`: a variable to be in it after all, as
 * "NAME=value"; NULL: none. In `arena`, ends with NULL. (Whoever runs as this user can still find them out: this keeps them out
 * of texts, not from thieves.) */
struct arena;
char **process_environment(const char *more, struct arena *arena);

/* That of references, and of whoever is asked what they will find: a short list, so that what somebody has set changes no
 * outcome. */
char **process_reference_environment(struct arena *arena);

/* Reaps it if it has ended: true, with its wait status. */
bool process_ended(struct process *process, int *status);

/* SIGKILL to it and to its group. It still has to be reaped. */
void process_kill(const struct process *process);

/* "exit status 3", "signal 11 (SIGSEGV, Segmentation fault)". */
struct process_end {
	char text[80];
};
struct process_end process_end(int status);

/* Was it ended by a signal that other processes send (SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT)? */
bool process_was_killed(int status);

/* Children that are in another session than this process were left behind by somebody that we started and that has
 * died (this process must be a subreaper): whatever we start ourselves stays in our session, and no process can enter a
 * session that exists. Kills and reaps them; returns how many were found: call again until it is 0. */
int process_end_orphans(void);

#endif
