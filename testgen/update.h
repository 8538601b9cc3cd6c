/* update - generates the dataset's pytest files in tests/references/. Decides which files should exist and which are
 * out of date, and writes them. `reftest generate`, `reftest watch` and `reftest verify` (after its run) call this
 * module.
 *
 * A file that reftest wrote, and that no user edited, is replaced if its content would change, and is removed if no
 * class would be left in it. Every other file is left unchanged. If a definition cannot be read, its class in the old
 * file is kept. If a definition is in git but not checked out (engine/sparse_checkout.h), its class is kept, too, and
 * the file with this class is left unchanged even if other classes in the file are out of date. For each file, a digest
 * of the stat() results of the file and of its definitions is recorded in .reftest/artifacts. With these records, the
 * next update only has to scan the folders. */
#ifndef REFTEST_TESTGEN_UPDATE_H
#define REFTEST_TESTGEN_UPDATE_H

#include <stdbool.h>

#include "base/arena.h"
#include "dataset/dataset.h"
#include "engine/program.h"
#include "testgen/update_stamps.h"

struct update_options {
	enum layout layout;
	bool check;  /* report which files are out of date, and write nothing */
	bool quiet;  /* do not report invalid definitions, because the caller reports them */
	bool force;  /* replace files that a user wrote or edited */
	/* The bounds to write (testgen/file_tolerances.h): DTYPE_COUNT items, or NULL if each file keeps its bounds. If
	 * all items are negative, the bounds of a file are removed. */
	const struct tolerance *tolerances;
	const char
	    *print; /* a file such as "test_gemm.py" whose new text is only printed; NULL: update the files */
	/* Hand-written files in which no test can fail ("tests/references/test_x.py", from vacuous_tests.vacuous). A
	 * definition whose only test file is in this list counts as a definition without a test. Only `reftest
	 * generate` looks for such files; it passes them together with `check`, to count the definitions. */
	const char *const *vacuous;
	int vacuous_count;
	/* With `check`: files that `generate --replace-vacuous` would remove. They count as removed. The paths are
	 * relative to the root, as in `vacuous`. */
	const char *const *removed;
	int removed_count;
	/* Only the test files of these definitions are processed. NULL: all files are processed, and files without
	 * definitions are removed. */
	const struct dataset_file *const *selected;
	int selected_count;
};

/* The result of an update. Each message is one line; messages are allocated in the caller's arena. */
struct update_result {
	int files, written, removed,
	    current;	 /* files: how many files should exist; written: how many were written (with `check`: how many
			  * are out of date) */
	int definitions; /* number of definitions checked */
	/* The numbers of definitions:
	 * - with_test: definitions with a class that is up to date, or with a hand-written test file
	 * - hand_written: definitions with a hand-written test file
	 * - stale: definitions with a class that is out of date
	 * - without: definitions without a test */
	int with_test, hand_written, stale, without;
	int invalid; /* number of unreadable definitions, plus dataset.problem_count */
	int refused; /* number of files that differ but were left unchanged */
	bool printed;
	const char **messages; /* messages about files that were written, removed or left unchanged, and about unreadable files */
	int message_count;
	const char **problems; /* the messages that report a problem; messages about written or removed files are only
				* in `messages` */
	int problem_count;
	const char **changed; /* files that were written or removed (with `check`: that would be written or removed),
			       * relative to the root */
	int changed_count;
};

/* Updates the generated files. Returns 0, or -1 and sets `err` on an internal error. Files that were written before the
 * error stay as they are. */
int update_tests(struct program *program, const struct dataset *dataset, const struct update_options *options,
		 struct arena *arena, struct update_result *out, struct err *err);

/* Returns whether the dataset has generated files, and sets `layout`. The files may have been generated on this machine
 * or cloned with the dataset. `verify` and `watch` update generated files only if the dataset has some. */
bool generated_before(const char *root, enum layout *layout);

#endif
