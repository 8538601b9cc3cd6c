/* serve_verifier - the process of `reftest serve` that verifies, one request after the other. Its pool of runners
 * stays open between requests, so that a reference need not wait until torch is imported. */
#ifndef REFTEST_CLI_SERVE_VERIFIER_H
#define REFTEST_CLI_SERVE_VERIFIER_H

#include "cli/shared_options.h"

/* The descriptors of the process. */
enum { VERIFIER_REQUESTS, VERIFIER_ANSWERS, VERIFIER_ERRORS, VERIFIER_FDS };

struct verifier_start {
	const struct program *program; /* of `reftest serve`: the root and the secrets */
	const struct shared_options *options; /* of `reftest serve`; they hold for all requests */
};

/* The main function of the process; `context` is a struct verifier_start. Reads requests: the length of the words in
 * bytes as a uint32_t, and the words of a command line (serve/tools.h), each with its NUL. Writes for each request
 * the answer, a NUL and a byte: 1 if the answer is a message about an error, else 0. Returns when nobody writes
 * requests any more, or when a signal interrupts a request. */
int verifier_main(void *context);

#endif
