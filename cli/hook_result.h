/* hook_result - decides whether a git hook (`verify --staged --hook`) rejects a commit.
 *
 * Without --all, the hook verifies only the definitions that the commit changes. If a definition failed or is invalid,
 * the commit is rejected. If this machine cannot verify a definition (no device, no ground truth, an absent tensor),
 * the hook only prints a warning; with --strict, it rejects the commit. If a workload names a tensor that is in the
 * working tree or in HEAD, but not in the commit, the commit is rejected. The definitions that the commit does not
 * change are only counted.
 *
 * With --all, the hook verifies every definition. It then rejects every commit while any definition fails or is
 * invalid. */
#ifndef REFTEST_CLI_HOOK_RESULT_H
#define REFTEST_CLI_HOOK_RESULT_H

#include "engine/run.h"

/* What the cache knows about the definitions that a commit does not change. */
struct unchanged_counts {
	int64_t failed;	 /* failed or invalid */
	int64_t unknown; /* not verified, or not in the cache */
	int64_t definitions;
};

/* Looks up the verdicts of all definitions of git's index that `run` did not select. If `run` is NULL, looks up the
 * verdicts of all definitions. Runs nothing. A verdict counts only if it is for the device, the sizes and the other
 * settings in `options`. After an error, all counts are 0. */
struct unchanged_counts hook_result_unchanged(struct program *program, const struct run_options *options, const struct run *run);

struct commit {
	bool strict;
	/* The option --all. Without this option, `unchanged` counts the definitions that the commit does not change. */
	bool all;
	struct unchanged_counts unchanged;
	int left;	/* number of unverified definitions that the commit does not change */
	int changed;	/* number of unverified definitions that the commit changes */
	int incomplete; /* number of definitions among `changed` for which the commit lacks tensors */
	/* Number of definitions without a result, because the run was interrupted or because a file changed. */
	int unknown;
};

/* Adds the result of one definition to the counts in `commit`. Returns true if the report lists the definition. */
bool hook_result_counts(struct commit *commit, const struct result *result);

/* Prints the counts after the report. Returns the exit status of the hook. `code` is the exit status of the run, and
 * `width` is the number of columns of a line. */
int hook_result_exit_code(const struct commit *commit, const struct run *run, int code, int width);

#endif
