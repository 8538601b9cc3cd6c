/* worker - the loop of `reftest work`. The loop reads requests (fleet/request.h) from standard input and verifies them
 * on one device. The worker processes keep running from one request to the next. The loop writes an answer to each
 * request to standard output (fleet/answer.h).
 *
 * Each request is a separate run over one definition, and all runs share one pool. A worker uses no cache: the sender
 * of the requests knows which verdicts are missing, and stores the answers. */
#ifndef REFTEST_FLEET_WORKER_H
#define REFTEST_FLEET_WORKER_H

#include "engine/run.h"

/* Works until the end of standard input. Returns EXIT_VERIFIED after the last answer, even if references failed.
 * Returns EXIT_USAGE or EXIT_UNVERIFIED, and sets `err`, if this machine cannot verify any request. Returns
 * EXIT_INTERNAL, and sets `err`, if the pool failed. Returns EXIT_INTERRUPTED after a signal, or if the reader of the
 * answers has closed the pipe. */
int worker_run(struct program *program, const struct run_options *options, struct err *err);

#endif
