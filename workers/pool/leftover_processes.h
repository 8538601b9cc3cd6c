/* leftover_processes - finds and kills the processes that a reference left behind. */
#ifndef REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H
#define REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H

/* Kills and reaps leftover processes, and returns how many leftover processes it found. The caller must repeat the call
 * until the result is 0. When a child of this process (the zygote, for example) dies, the processes that it started are
 * leftover processes. The kernel makes the leftover processes children of this process, which must be a subreaper. A
 * child in another session than this process is a leftover process. A child is also a leftover process if it neither
 * leads its process group nor is in the group of this process. A child that this program started is no leftover
 * process: it is in the session of this program, and it is in the process group of this program or leads another group.
 * (The zygote itself is the child of the leader of its group.) */
int leftover_processes_kill(void);

#endif
