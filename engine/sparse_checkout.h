/* sparse_checkout - finds the files of a dataset that are absent from the working tree only because they are marked
 * skip-worktree in git's index. These files do not count as deleted. A sparse checkout sets this mark; a user may also
 * set it by hand.
 *
 * The index is read once, on the first call of sparse_ask. Callers use this module only when a file is absent, to save
 * time. */
#ifndef REFTEST_ENGINE_SPARSE_CHECKOUT_H
#define REFTEST_ENGINE_SPARSE_CHECKOUT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "dataset/dataset.h"

/* The part of a test file's name between "test_" and ".py": a definition's name or op_type. */
struct stem {
	const char *text;
	const struct dataset_file *definition; /* a definition whose name or op_type is the stem */
};

struct sparse { /* {0} means that git's index was not read yet */
	bool asked;
	const struct dataset_file *definitions; /* the absent definitions, sorted by path; `stat` is not set */
	int count;
	const struct stem *stems; /* the name and the op_type of each absent definition, sorted */
	/* The files of tests/references that are marked skip-worktree ("test_gemm.py", "conftest.py"), sorted. A file
	 * that is marked may still exist in the working tree. */
	const char **tests;
	int test_count;
	const char *top;    /* the top of the working tree, for git -C; NULL: the working directory */
	const char *prefix; /* the path of the root relative to the top: "" or "data/set/" */
	enum sparse_checkout {
		SPARSE_BY_HAND, /* no sparse checkout is active, but a user marked individual files */
		SPARSE_CONE,	/* the sparse checkout selects folders */
		SPARSE_PATTERNS /* the sparse checkout has patterns as in .gitignore; the last pattern that matches a
				 * path applies */
	} checkout;
};

/* On the first call, reads git's index and lists the files of `dataset` that are absent. The list is allocated in
 * `arena`. Outside a git repository, no files are absent. Returns 0, or -1 and sets `err` if the index cannot be
 * read. */
int sparse_ask(struct sparse *s, const struct dataset *dataset, struct arena *arena, struct err *err);

/* Returns whether the definition at this path ("definitions/gemm/gemm_n128.json") is one of the absent definitions. */
bool sparse_lacks_definition(const struct sparse *s, const char *path);

/* Returns an absent definition to which a file of tests/references belongs. For "test_gemm.py", this is a definition
 * with the name or op_type "gemm". Returns NULL if there is no such definition. */
const struct dataset_file *sparse_of_test(const struct sparse *s, const char *file, struct arena *arena);

/* Returns whether this file of tests/references ("test_gemm.py") is marked skip-worktree. A file that is marked may
 * still exist in the working tree. */
bool sparse_marks_test(const struct sparse *s, const char *file);

/* Returns the command that restores an absent file and its folder, for example "`git sparse-checkout add
 * 'definitions/gemm'`". If a user marked files by hand, the command restores only the absent file. */
const char *sparse_remedy(const struct sparse *s, const char *folder, const char *file, struct arena *arena);

#endif
