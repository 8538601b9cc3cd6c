/* commit - what a git hook makes of a run (`verify --staged --hook`): a commit is refused for what is wrong with it, not for
 * what this machine cannot tell.
 *
 * What failed or is invalid refuses it, whether the commit touches it or not. What could not be verified here (no device,
 * no ground truth, a tensor that is elsewhere) is only counted where the commit leaves it as HEAD has it, is told loudly
 * where the commit changes it, and refuses it there with --strict. But a tensor that a workload names, and that is here or
 * was in HEAD, and that the commit would be without, is the commit's own fault. */
#ifndef REFTEST_COMMANDS_COMMIT_H
#define REFTEST_COMMANDS_COMMIT_H

#include "commands/pass.h"

struct commit {
	bool strict;
	int left;	/* definitions that could not be verified, and that the commit leaves as they are */
	int changed;	/* ... and that it changes */
	int incomplete; /* of the changed: those of which it would be without tensors */
	int unknown;	/* interrupted, or a file of it changed meanwhile */
};

/* Counts an outcome of a pass over git's index. false: nothing need be told of it but the count. */
bool commit_counts(struct commit *commit, const struct outcome *outcome);

/* Tells what it came to, after the report, and makes the hook's exit code of the run's. `width`: columns of a line. */
int commit_exit_code(const struct commit *commit, const struct pass *pass, int code, int width);

#endif
