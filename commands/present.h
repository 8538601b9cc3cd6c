/* present - what lies in a dataset's tests/references: which test files, and whose each is (artifacts/owned.h). */
#ifndef REFTEST_COMMANDS_PRESENT_H
#define REFTEST_COMMANDS_PRESENT_H

#include <stdbool.h>

#include "artifacts/owned.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"

#define PRESENT_FOLDER "tests/references/" /* from the root */

struct present {
	int root_fd; /* the root's, who opened it closes it */
	struct arena *arena;
	const char **names; /* "test_gemm.py", sorted; conftest.py and what else lies there is not among them */
	int count;
};

/* Lists the folder; that it is not there is no error. -1 with a sentence: it, or `tests`, is no real folder (a link
 * would let a dataset say where else on this machine files are written), or cannot be read. `root` is for the sentence.
 */
int present_list(struct present *p, int root_fd, const char *root, struct arena *arena, struct err *err);

bool present_has(const struct present *p, const char *file);

/* What stands in a file of the folder, and whose it is. A symbolic link is somebody's, wherever it leads. FILE_ERROR
 * with a sentence: it is a folder, cannot be opened, and the like. */
enum file_answer present_read(const struct present *p, const char *file, struct buf *bytes, enum owner *owner,
			      struct err *err);

/* Is there a test of this definition alone that somebody wrote? */
bool present_hand_written(const struct present *p, const char *name);

/* "test_….py". */
bool present_is_test(const char *name);

#endif
