/* extract_check - verifies the definitions that `reftest extract` is about to write. If the dataset already has a
 * definition with the same name, the module also compares the references of the two definitions. The verification and
 * the comparison use a temporary dataset, so the real dataset never contains a wrong definition. */
#ifndef REFTEST_CLI_EXTRACT_CHECK_H
#define REFTEST_CLI_EXTRACT_CHECK_H

#include "engine/run.h"
#include "extract/extract.h"

struct extract_check {
	struct run_options options; /* the caller's options; extract_check changes the cases and the interpreter */
	bool show; /* if true, prints the results that are not `passed` */
};

/* Runs the small cases of each new definition. If a definition does not pass, sets its member `keep` to false, so that
 * its file is not written. For each conflict with an existing definition, records whether both references behave alike.
 * Sets `status` to the exit status that follows from the verdicts. If program->root is set, the verdicts are stored in
 * the cache of that dataset. Returns 0. After an error (with a message in `err`) or an interrupt, returns an exit
 * status; the caller must then write no definition. */
int extract_check(struct program *program, const struct extract_check *check, struct extract_result *result, int *status,
		  struct arena *arena, struct err *err);

#endif
