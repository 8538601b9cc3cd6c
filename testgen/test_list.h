/* test_list - lists and reads the test files in a dataset's tests/references, and determines whether reftest or a user
 * wrote each of them (testgen/hand_edit.h). */
#ifndef REFTEST_TESTGEN_TEST_LIST_H
#define REFTEST_TESTGEN_TEST_LIST_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "testgen/hand_edit.h"

#define TESTS_FOLDER "tests/references/" /* relative to the dataset's root */

struct test_list {
	int root_fd; /* a descriptor of the dataset's root folder; the caller opens and closes it */
	struct arena *arena;
	const char **names; /* sorted names of the test files, such as "test_gemm.py", without conftest.py */
	int count;
	const char **libraries; /* all Python files in the folder reftest_libraries, such as
				 * "reftest_libraries/torch.py" */
	int library_count;
};

/* Lists tests/references. A missing folder is not an error. Returns -1 and sets `err` if the folder cannot be read, or
 * if `tests`, tests/references or tests/references/reftest_libraries is a symbolic link or not a folder. Such a link is
 * refused because a dataset could use it to make reftest write files anywhere on this machine. `root` is only used in
 * messages. */
int test_list_names(struct test_list *p, int root_fd, const char *root, struct arena *arena, struct err *err);

bool test_list_has(const struct test_list *p, const char *file);

/* Reads a file in tests/references and determines its owner. A symbolic link counts as hand-written, whatever its
 * target is. Returns FILE_ERROR and sets `err` if the file cannot be read or is a folder. */
enum file_answer test_list_read(const struct test_list *p, const char *file, struct buf *bytes, enum owner *owner,
				struct err *err);

/* Returns whether the test file test_NAME.py of the definition `name` exists and was written or edited by a user. */
bool test_list_hand_written(const struct test_list *p, const char *name);

/* Returns whether the name has the form "test_….py". */
bool is_test_file(const char *name);

#endif
