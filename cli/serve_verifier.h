/* serve_verifier - the process of `reftest serve` that verifies definitions, one request after the other. The process
 * keeps its pool of runners (the processes that run references) open between requests, so that a request need not wait
 * until torch is imported. */
#ifndef REFTEST_CLI_SERVE_VERIFIER_H
#define REFTEST_CLI_SERVE_VERIFIER_H

#include "cli/shared_options.h"

/* The descriptors of the verifier process: it reads requests from the first, and writes answers to the second and
 * messages to the third. */
enum { VERIFIER_REQUESTS, VERIFIER_ANSWERS, VERIFIER_ERRORS, VERIFIER_FDS };

struct verifier_start {
	const struct program *program; /* the program of `reftest serve`, with its root and secrets */
	const struct shared_options *options; /* the options of `reftest serve`, for all requests */
};

/* The main function of the process; `context` is a struct verifier_start. Reads requests. A request is a number
 * (uint32_t) and then that many bytes: the words of a command line (serve/tools.h), each with its NUL. For each
 * request, writes the answer, a NUL and one byte: 1 if the answer is an error message, otherwise 0. Returns when the
 * other end of the pipe is closed, or when a signal interrupts a request. */
int verifier_main(void *context);

#endif
