/* hook_result - decides whether a git hook (`verify --staged --hook`) rejects a commit. An error in a commit rejects
 * it; a definition that this machine cannot verify does not.
 *
 * If a definition failed or is invalid, the commit is rejected, even if it does not change the definition. A definition
 * may be unverifiable on this machine (no device, no ground truth, an absent tensor). If the commit does not change
 * such a definition, the hook only counts the definition. If the commit changes such a definition, the hook prints a
 * warning, and with --strict it rejects the commit. If a workload names a tensor that is in the working tree or in HEAD
 * but not in the commit, the commit is rejected. */
#ifndef REFTEST_CLI_HOOK_RESULT_H
#define REFTEST_CLI_HOOK_RESULT_H

#include "engine/run.h"

struct commit {
	bool strict;
	int left;	/* number of unverified definitions that the commit does not change */
	int changed;	/* number of unverified definitions that the commit changes */
	int incomplete; /* number of definitions among `changed` for which the commit lacks tensors */
	int unknown;	/* number of definitions without a result, because the run was interrupted or a file changed */
};

/* Counts the result of one definition in git's index. Returns false if the report must omit the definition. */
bool hook_result_counts(struct commit *commit, const struct result *result);

/* Prints the counts after the report. Returns the exit status of the hook. `code` is the exit status of the run, and
 * `width` the number of columns of a line. */
int hook_result_exit_code(const struct commit *commit, const struct run *run, int code, int width);

#endif
