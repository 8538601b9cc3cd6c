/* extract_check - verifies the definitions that `reftest extract` is about to write. If the name of a new definition is
 * taken, also compares the new definition's reference with the reference of the existing definition. The verification
 * and the comparison use a temporary dataset, so the real dataset never contains a wrong definition. */
#ifndef REFTEST_CLI_EXTRACT_CHECK_H
#define REFTEST_CLI_EXTRACT_CHECK_H

#include "engine/run.h"
#include "extract/extract.h"

struct extract_check {
	struct run_options options; /* extract_check sets which cases run, and with which Python */
	bool show; /* print the results that are not `passed` */
};

/* Runs the small cases of each new definition. Removes the definitions that do not pass from the files to write. For
 * each conflict, sets whether both references behave alike. Sets `status` to the exit status of the verdicts. If the
 * root of the program is known, verdicts go to its cache. Returns 0, or an exit status after an error (with a message
 * in `err`) or an interrupt. If the result is not 0, the caller must write nothing. */
int extract_check(struct program *program, const struct extract_check *check, struct extract_result *result, int *status,
		  struct arena *arena, struct err *err);

#endif
