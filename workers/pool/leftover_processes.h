/* leftover_processes - finds and kills the processes that a reference left behind. */
#ifndef REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H
#define REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H

/* Kills and reaps leftover processes, and returns how many it found. The caller must repeat the call until it returns
 * 0. When a child of this process (the zygote, for example) dies, the processes that it started are leftover
 * processes. The kernel makes them children of this process, which must be a subreaper. A child in another session than
 * this process is a leftover process. A child is also a leftover process if it neither leads its process group nor is
 * in the group of this process. Every other child was started by this program: it is in the session of this program,
 * and it is in the process group of this program or leads another group. (The zygote itself is the child of the leader
 * of its group.) */
int leftover_processes_kill(void);

#endif
