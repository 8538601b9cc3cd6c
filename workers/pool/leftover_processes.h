/* leftover_processes - finds and kills the processes that a reference left behind. */
#ifndef REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H
#define REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H

/* Kills and reaps leftover processes. Returns how many it found; the caller must repeat the call until the result is 0.
 * This process must be a subreaper: if one of its children dies (such as the zygote), the processes that the child
 * started then become children of this process. The function recognises leftover processes among the children by their
 * session and their process group. Every child that this program started itself has the same session as this process,
 * and either leads its process group or is in the process group of this process. All other children are leftover
 * processes. */
int leftover_processes_kill(void);

#endif
