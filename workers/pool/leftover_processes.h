/* leftover_processes - finds and kills the processes that a reference left behind. */
#ifndef REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H
#define REFTEST_WORKERS_POOL_LEFTOVER_PROCESSES_H

/* Kills and reaps leftover processes. Returns how many it found; the caller must repeat the call until the result is 0.
 * If a child of this process dies (such as the zygote), the processes that the child started become children of this
 * process, which must be a subreaper. The function recognises these leftover processes by their session and process
 * group. A process is a leftover process if its session differs from that of this process. It is also one if it is in
 * the same session, but in a process group that differs from that of this process and that it does not lead. A child
 * that this program started itself never has these properties. (The zygote is a grandchild of this process. Its parent
 * is a child of this process, and leads the process group of both.) */
int leftover_processes_kill(void);

#endif
