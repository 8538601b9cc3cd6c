/* judge - the process that fills inputs, computes ground truths, compares and gives verdicts. The judge is the
 * reftest program itself, started as the hidden command `reftest judge`; no reference ever runs in it. The judge
 * reads and writes JSON lines on descriptor 3. The head of workers/judge/judge.c lists the judge's messages. */
#ifndef REFTEST_WORKERS_JUDGE_JUDGE_H
#define REFTEST_WORKERS_JUDGE_JUDGE_H

/* Runs the judge and returns its exit status. argv[0] is `judge`. With `--device DEVICE [--staged]` the judge serves
 * until the pool closes the socket. With `--probe DEVICE` it prints {"class", "product"} or {"refused"} as one line
 * on stdout. */
int judge_main(int argc, char **argv);

#endif
