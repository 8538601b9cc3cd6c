/* extract_check - verifies the definitions that `reftest extract` is about to write, and compares the references of
 * those whose name was taken with the references that have the name. Both happen in a temporary dataset, so that
 * nothing that is wrong is ever in the dataset. */
#ifndef REFTEST_CLI_EXTRACT_CHECK_H
#define REFTEST_CLI_EXTRACT_CHECK_H

#include "engine/run.h"
#include "extract/extract.h"

struct extract_check {
	struct run_options options; /* which cases run, and with which Python, is set by extract_check */
	bool show; /* print the results that are not `passed` */
};

/* Runs the small cases of each new definition. Takes those that do not pass out of the files that are kept, and sets
 * the behaviour of conflicts. `status` gets the exit status of the verdicts. If the root of the program is known,
 * verdicts go to its cache. Returns 0, or an exit status after which nothing may be written: an error, of which `err`
 * says more, or an interrupt. */
int extract_check(struct program *program, const struct extract_check *check, struct extract_result *result, int *status,
		  struct arena *arena, struct err *err);

#endif
