/* leftover_processes - finds and kills the processes that a reference left behind. */
#ifndef REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H
#define REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H

/* Kills and reaps leftover processes, and returns how many it found. The caller must repeat the call until it returns
 * 0. When a child of this process (the zygote, for example) dies, the processes that it started are leftover
 * processes. The kernel makes them children of this process, which must be a subreaper. A leftover process is
 * in another session than this process, or in a process group that it does not lead: every process that this program
 * starts is in the session of this program, and in its process group or the leader of another. (The zygote itself is
 * the child of the leader of its group.) */
int leftover_processes_kill(void);

#endif
