/* judge - the process that makes inputs, computes ground truth and decides. The same binary, started as the hidden
 * command `reftest judge`; no reference ever runs in it. One JSON line in, one out, on descriptor 3. The messages are
 * listed at the head of workers/judge.c. */
#ifndef REFTEST_WORKERS_JUDGE_H
#define REFTEST_WORKERS_JUDGE_H

/* argv[0] is the word `judge`; then `--device DEVICE [--staged]`: serves until its peer closes; or `--probe DEVICE`:
 * prints {"class", "product"} or {"refused"} on one line of stdout. Returns the exit status. */
int judge_main(int argc, char **argv);

#endif
