/* worker - the loop of `reftest work`. It reads requests (fleet/request.h) from standard input, verifies them on one
 * device with processes that are kept for the next request, and writes an answer to each request to standard output
 * (fleet/answer.h).
 *
 * Each request is a separate run over one definition, and all runs share one pool. A worker neither reads nor writes a
 * cache: the sender of the requests knows which verdicts are missing, and stores the answers. */
#ifndef REFTEST_FLEET_WORKER_H
#define REFTEST_FLEET_WORKER_H

#include "engine/run.h"

/* Works until the end of standard input. Returns EXIT_VERIFIED after the last answer, even if the status of an answer
 * is not `passed`. Returns EXIT_USAGE or EXIT_UNVERIFIED, and sets `err`, if no request can be verified here. Returns
 * EXIT_INTERNAL, and sets `err`, if the pool failed. Returns EXIT_INTERRUPTED after a signal, or if nobody reads the
 * answers. */
int worker_run(struct program *program, const struct run_options *options, struct err *err);

#endif
