/* leftover_processes - finds and kills the processes that a reference left behind. */
#ifndef REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H
#define REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H

/* Kills and reaps leftover processes, and returns how many it found. The caller must repeat the call until it returns
 * 0. When a child of this process (the zygote, for example) dies, the processes that it started are leftover
 * processes. The kernel makes them children of this process, which must be a subreaper. A leftover process is
 * recognised by its session: the processes that this program starts stay in its session, and no process can join an
 * existing session. */
int leftover_processes_kill(void);

#endif
