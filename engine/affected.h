/* affected - finds the definitions and the generated tests that depend on given files. Knows every kind of file that
 * `verify` reads.
 *
 * A definition file affects its definition, and so do its workload file, its truth, its approval and its solutions. The
 * settings of the dataset affect every definition. A tensor file affects each definition whose workload
 * names the file. A generated test file (tests/references/test_….py) affects itself and the definitions that it
 * contains. tests/references/conftest.py and tests/references/reftest_libraries/ affect every test.
 *
 * Source files affect definitions and tests only if the root is reftest's own checkout. A source file of
 * kernels/{family}/ affects the definitions of this op family. A source file of python/testing/ affects every test.
 * Other source files of kernels/, workers/ and python/ affect every definition, because they are the code of the
 * processes that run references and compare outputs. */
#ifndef REFTEST_ENGINE_AFFECTED_H
#define REFTEST_ENGINE_AFFECTED_H

#include "engine/file_digests.h"
#include "engine/program.h"

struct affected_definition {
	const struct dataset_file *file;
	const char *because; /* the first changed file that affects this definition */
};

struct affected {
	struct affected_definition *definitions; /* in path order */
	int definition_count;
	const char **gone; /* paths of definitions that no longer exist */
	int gone_count;
	const char **tests; /* "tests/references/test_x.py"; only existing files, sorted */
	int test_count;
	const char **others; /* files that affect nothing */
	int other_count;
};

/* Finds the definitions and tests that `files` affect. `files` are paths relative to the root. The results are
 * allocated in `arena`. Returns 0, or -1 and sets `err`. */
int affected_by(struct program *program, const struct dataset *dataset, struct file_digests *digests,
		const char *const *files, int count, struct arena *arena, struct affected *out, struct err *err);

/* Converts a path relative to the working directory to a path relative to `root`. Returns a path outside `root`
 * unchanged. */
const char *affected_path(const char *root, const char *word, struct arena *arena);

#endif
