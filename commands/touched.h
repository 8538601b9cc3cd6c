/* touched - which definitions, and which generated tests, depend on files: the whole of what `verify` would look at.
 *
 *   definitions/x/y.json, workloads/x/y.jsonl   the definition
 *   a file that workload lines name             their definitions
 *   kernels/{family}/…                          that family's definitions (its template.py: only their tests)
 *   kernels/…_template.py                       every test
 *   other sources of kernels/ and workers/      every definition: what judges is made of them
 *   tests/references/test_….py                  the test, and the definitions in it; conftest.py: every test
 *
 * Sources count only in a root that is reftest's own checkout. */
#ifndef REFTEST_COMMANDS_TOUCHED_H
#define REFTEST_COMMANDS_TOUCHED_H

#include "commands/content.h"
#include "reftest.h"

struct touched_definition {
	const struct dataset_file *file;
	const char *because; /* the first of the files that touch it */
};

struct touched {
	struct touched_definition *definitions; /* in path order */
	int definition_count;
	const char **gone; /* paths of definitions that are no more */
	int gone_count;
	const char **tests; /* "tests/references/test_x.py", those that there are; sorted */
	int test_count;
	const char **others; /* files that touch nothing */
	int other_count;
};

/* `files`: paths relative to the root. Everything in `arena`. 0, or -1 with a sentence. */
int touched_by(struct reftest *reftest, const struct dataset *dataset, struct contents *contents,
	       const char *const *files, int count, struct arena *arena, struct touched *out, struct err *err);

/* The path below `root` of a file named from the working directory; one that lies elsewhere as it is. */
const char *touched_path(const char *root, const char *word, struct arena *arena);

#endif
