/* judge - the process that makes inputs, computes ground truth and decides. The same binary, started as the hidden
 * command `reftest judge`; no reference ever runs in it. One JSON line in, one out, on descriptor 3; the CPU's arena
 * is the memfd on descriptor 4. The messages are listed at the head of workers/judge.c. */
#ifndef REFTEST_WORKERS_JUDGE_H
#define REFTEST_WORKERS_JUDGE_H

/* Serves until its peer closes. Returns the exit status. */
int judge_main(int argc, char **argv);

#endif
