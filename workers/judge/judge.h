/* judge - the process that fills inputs, computes ground truths, compares outputs with them and gives verdicts. The
 * pool forks the process from the reftest program (workers/protocol/judge_process.h); no reference ever runs in it. The
 * judge reads and writes JSON lines on a socket. The comment at the head of workers/judge/judge.c lists the judge's
 * messages. */
#ifndef REFTEST_WORKERS_JUDGE_JUDGE_H
#define REFTEST_WORKERS_JUDGE_JUDGE_H

#include "kernels/core/kernels_library.h"
#include "workers/protocol/judge_process.h"

/* Returns a description of how to start judges with this kernels library. `kernels` must stay open while the result is
 * used. For judges on a GPU, call kernels_seal_cuda first. */
struct judge_program judge_program(const struct kernels *kernels);

#endif
