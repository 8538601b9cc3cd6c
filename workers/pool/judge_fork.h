/* judge_fork - forks the process of a judge. */
#ifndef REFTEST_WORKERS_POOL_JUDGE_FORK_H
#define REFTEST_WORKERS_POOL_JUDGE_FORK_H

#include "workers/pool/process.h"
#include "workers/protocol/judge_process.h"

/* Starts a judge. Sets `*socket` to a non-blocking socket that is connected to the judge; the caller must close it. */
int judge_fork(struct process *judge, const struct judge_program *program, const struct judge_order *order, int *socket,
	       struct err *err);

#endif
