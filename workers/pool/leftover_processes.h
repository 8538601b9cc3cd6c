/* leftover_processes - finds and kills the processes that a reference left behind. */
#ifndef REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H
#define REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H

/* Kills and reaps leftover processes. Returns how many it found; the caller must repeat the call until the result is 0.
 * If a child of this process dies (such as the zygote), the processes that it started become children of this process,
 * which must be a subreaper. These are leftover processes. A child of this process is a leftover process if it is in
 * another session, or if it neither leads its process group nor is in the group of this process. This never holds for a
 * child that this program started itself. (The zygote is a child of the leader of its group.) */
int leftover_processes_kill(void);

#endif
