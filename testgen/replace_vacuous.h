/* replace_vacuous - removes hand-written test files in which no test can fail, so that generated tests can replace them
 * (`generate --replace-vacuous`). */
#ifndef REFTEST_TESTGEN_REPLACE_VACUOUS_H
#define REFTEST_TESTGEN_REPLACE_VACUOUS_H

#include "testgen/vacuous_tests.h"

struct replaced {
	const char **messages; /* for each file, what happens to it and why */
	int message_count;
	const char **removed; /* paths of the removed files; with `check`: of the files that would be removed */
	int removed_count;
	int left;    /* the number of files that are kept because HEAD does not contain their content */
};

/* Removes the files that `found` lists; their paths are relative to `root`. `root_fd` is a descriptor of the folder
 * `root`. Keeps a file if the commit HEAD does not contain it with the same content. With `check`, only reports which
 * files it would remove. Returns 0, or -1 and sets `err`. */
int replace_vacuous(int root_fd, const char *root, const struct vacuous_tests *found, bool check, struct arena *arena,
		    struct replaced *out, struct err *err);

#endif
