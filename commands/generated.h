/* generated - the dataset's pytest files, tests/references/: which there should be, which are out of date, and making
 * them true. `reftest generate` calls it, `reftest verify` after its pass, and so may whatever watches.
 *
 * A file that reftest wrote and nobody edited is replaced when its bytes would differ, and goes when nothing is left to
 * stand in it; every other file is somebody's work and is left alone. A definition that cannot be read keeps its class
 * as it was, and so does one that git has and that is not checked out here (commands/sparse.h): a file that holds such
 * classes and would change is left as it is. What the last update saw (by stat) is noted in .reftest/artifacts, so that
 * the next one costs a walk. */
#ifndef REFTEST_COMMANDS_GENERATED_H
#define REFTEST_COMMANDS_GENERATED_H

#include <stdbool.h>

#include "base/arena.h"
#include "commands/notes.h"
#include "dataset/dataset.h"
#include "reftest.h"

struct generated_options {
	enum layout layout;
	bool check;  /* only say what is out of date: nothing is written */
	bool untold; /* what is wrong with definitions is told by somebody else */
	bool force;  /* replace files that somebody wrote or edited */
	const char
	    *print; /* write what this file would hold ("test_gemm.py") to standard output, and nothing else; NULL */
	/* Only the files in which these definitions stand; NULL: all, and files that belong to no definition any more
	 * go. */
	const struct dataset_file *const *selected;
	int selected_count;
};

/* What came of it. The sentences are one a line, in the arena that was given. */
struct generated {
	int files, written, removed,
	    current;	 /* files: those that there should be; written: or, with `check`, out of date */
	int definitions; /* that were looked at; each is one of these: */
	int with_test, hand_written, stale, without; /* stale: its class is an old one; without: it has none */
	int invalid;				     /* definitions, and folders of them, that cannot be read */
	int refused; /* files left as they are although they are not what they should be */
	bool printed;
	const char **told; /* what was written, removed, left alone or could not be read */
	int told_count;
	const char **changed; /* paths below the root of the files written or removed (with `check`: to be so) */
	int changed_count;
};

/* 0, or -1 with a sentence when the machinery failed (what was written by then stays). */
int generated_update(struct reftest *reftest, const struct dataset *dataset, const struct generated_options *options,
		     struct arena *arena, struct generated *out, struct err *err);

/* Were files generated in this dataset, here or where it was cloned from, and in which layout? Only then are they kept
 * true. */
bool generated_before(const char *root, enum layout *layout);

#endif
