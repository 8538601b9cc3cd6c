/* sparse - what git has of a dataset and does not want in this working tree: the entries of its index that are marked
 * skip-worktree, by a sparse checkout or by hand. They are not here, and not deleted either.
 *
 * The index is read once, when the first question is asked: only where something not here would be taken for gone. */
#ifndef REFTEST_COMMANDS_SPARSE_H
#define REFTEST_COMMANDS_SPARSE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "dataset/dataset.h"

/* What a test file may be named after, "test_{stem}.py": a definition, or its op_type. */
struct stem {
	const char *text;
	const struct dataset_file *definition; /* one of them */
};

struct sparse { /* {0}: nobody asked yet */
	bool asked;
	const struct dataset_file *definitions; /* sorted by path; without a stat */
	int count;
	const struct stem *stems; /* two of each definition, sorted */
	const char **
	    tests; /* "test_gemm.py", "conftest.py": files of tests/references, sorted; some may be here all the same */
	int test_count;
	const char *top;    /* of the working tree, as git has to be told; NULL: it is the working directory */
	const char *prefix; /* of the root below it: "" or "data/set/" */
	enum sparse_checkout {
		SPARSE_BY_HAND, /* there is none: files were marked one by one */
		SPARSE_CONE,	/* of folders */
		SPARSE_PATTERNS /* as in .gitignore, the last that fits a file decides */
	} checkout;
};

/* Asks git's index what it has of `dataset` that is not there, if nobody did before. In no repository there is nothing.
 * 0, or -1 with a sentence: there is an index and it cannot be read. Everything is in the arena. */
int sparse_ask(struct sparse *s, const struct dataset *dataset, struct arena *arena, struct err *err);

/* Is there a definition at this path, "definitions/gemm/gemm_n128.json"? */
bool sparse_has_definition(const struct sparse *s, const char *path);

/* A definition that a file of tests/references is named after: "test_gemm.py" after any of that op_type. NULL: there is
 * none. */
const struct dataset_file *sparse_of_test(const struct sparse *s, const char *file, struct arena *arena);

/* Is this file of tests/references in the index so, "test_gemm.py"? (It may be here all the same.) */
bool sparse_has_test(const struct sparse *s, const char *file);

/* The command that brings here a file of it and whatever else lies in that folder: "`git sparse-checkout add
 * 'definitions/gemm'`"; where files were marked by hand, the file alone. */
const char *sparse_remedy(const struct sparse *s, const char *folder, const char *file, struct arena *arena);

#endif
