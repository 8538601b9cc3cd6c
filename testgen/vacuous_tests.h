/* vacuous_tests - finds hand-written tests that cannot fail, in all test files of a dataset. Runs the script
 * python/vacuous_tests.py once for all files. The script parses the files and prints findings, and vacuous_tests.c
 * checks that these findings are well-formed. */
#ifndef REFTEST_TESTGEN_VACUOUS_TESTS_H
#define REFTEST_TESTGEN_VACUOUS_TESTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/string_list.h"
#include "dataset/dataset.h"

struct vacuous_tests {
	int files;	       /* number of hand-written test files */
	const char **messages; /* findings ("tests/references/test_x.py:12: …"), and errors about unreadable files */
	int message_count;
	const char **vacuous; /* files whose tests pass whatever mistakes the definition has:
			       * "tests/references/test_x.py" */
	const char **reasons; /* for each file in `vacuous`, its first finding: "12: …" */
	int vacuous_count;
	int uncollected;     /* number of test files that import a missing Python module */
	const char *missing; /* the missing Python module that the first such file imports, or NULL */
	const char *python;  /* the Python interpreter that ran the script; NULL if there are no hand-written test
			      * files */
	bool no_python; /* the audit failed because no Python interpreter was found */
};

/* Audits all hand-written test files. Returns 0, or -1 and sets `err` if tests/references/ cannot be read or the files
 * cannot be audited. `python` is passed to machine_python as its parameter `given`. The result is allocated in
 * `arena`. */
int vacuous_tests_find(const struct dataset *dataset, const char *root, const char *python, struct arena *arena,
		     struct vacuous_tests *out, struct err *err);

/* The answer of python/vacuous_tests.py about one test file, without its list of findings. */
struct vacuous_answer {
	bool vacuous;	     /* no mistake in the definition makes a test fail */
	const char *reason;  /* the first finding, "12: …", or NULL */
	const char *missing; /* a missing Python module that the file imports, or NULL */
};

/* Reads the answer of python/vacuous_tests.py about one file; the answer is a line of JSON. For each finding, adds a
 * message "PATH:12: reason" to `messages`. `out` is allocated in the arena of `messages`. Returns 0. If the line does
 * not have the expected form, returns -1, sets `err` and adds nothing. */
int vacuous_tests_read_answer(const char *path, const char *line, size_t length, struct string_list *messages,
			      struct vacuous_answer *out, struct err *err);

#endif
