/* judge - the process that fills inputs, computes ground truths, compares and gives verdicts. The pool forks the
 * process from the reftest program (workers/protocol/judge_process.h); no reference ever runs in it. The judge reads
 * and writes JSON lines on a socket. The comment at the head of workers/judge/judge.c lists the judge's messages. */
#ifndef REFTEST_WORKERS_JUDGE_JUDGE_H
#define REFTEST_WORKERS_JUDGE_JUDGE_H

#include "kernels/core/kernels_library.h"
#include "workers/protocol/judge_process.h"

/* Returns the program of the judges that use these kernels. `kernels` must be open as long as the program is used. For
 * judges on a GPU, call kernels_seal_cuda first. */
struct judge_program judge_program(const struct kernels *kernels);

#endif
