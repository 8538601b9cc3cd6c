/* staged - what git's index holds of a dataset: the other source, beside the disk, that a run can take its files from.
 *
 * Names of contents are compared before any content is asked for, so that a run in which nothing changed reads one
 * file, the index. Tensors that a workload names are the index's too; where Git LFS keeps them, the index has a
 * pointer, and what counts is a file of the size and the SHA-256 that it states, in the working tree or in LFS's own
 * store. */
#ifndef REFTEST_COMMANDS_STAGED_H
#define REFTEST_COMMANDS_STAGED_H

#include "base/file.h"
#include "base/hash.h"
#include "dataset/dataset.h"

struct staged; /* opaque */

/* Where the dataset is of which the index is asked: as dataset_find_root has it, but a folder whose definitions only the
 * index holds is one too (a sparse checkout, a folder that was deleted and not yet from the index). 0, or -1 with a
 * sentence. */
int staged_root(const char *given, char *root, size_t size, struct err *err);

/* Reads the index of the repository that `root` lies in, and makes the dataset that it lists; what it lists but cannot
 * be followed (symbolic links, submodules) is one of the dataset's problems. NULL with a sentence. Lives in `arena`,
 * but is closed with staged_close. */
struct staged *staged_open(const char *root, struct arena *arena, struct dataset *dataset, struct err *err);
void staged_close(struct staged *staged);

/* The content of a file of the index, by its path below the root. -1 with a sentence: a conflict, more than `limit`
 * bytes. 1 with one: it is not on this machine, in a partial clone. */
int staged_read(struct staged *staged, const char *path, const struct object_name *object, size_t limit,
		struct buf *out, struct err *err);

/* Is there such a file in the index? Then its object. STAGED_IGNORED: git is told to ignore the path, so that it can be
 * in no commit, and the working tree's file is the one that counts. STAGED_NOT with a sentence: it is not, or is in
 * conflict. */
enum staged_answer { STAGED_NOT = -1, STAGED_FOUND = 0, STAGED_IGNORED = 1 };
enum staged_answer staged_find(struct staged *staged, const char *path, struct object_name *object, struct err *err);

/* Would the commit change the file at this path, below the root: add it, remove it, or give it another content than HEAD
 * has? true also where git cannot tell. Git is asked once, when the first path is. */
bool staged_changes(struct staged *staged, const char *path);

/* The bytes of a blob: the index's, or those that its LFS pointer stands for. staged_blob_free gives them back. 1: what
 * the pointer stands for is not on this machine, with the command that fetches it; -1 with a sentence. */
struct staged_blob {
	const unsigned char *data;
	size_t length;
	struct digest content;	/* of what was held to the pointer, or to git's name; a mapping may show others by now */
	struct buf bytes;	/* owned; or */
	struct mapping mapping; /* owned */
};
int staged_blob(struct staged *staged, const char *path, const struct object_name *object, struct staged_blob *out,
		struct err *err);
void staged_blob_free(struct staged_blob *blob);

/* Puts bytes where the judge can read them, below the root until staged_close, and says where ("" on failure: -1 with a
 * sentence). */
int staged_place(struct staged *staged, const struct digest *content, const void *bytes, size_t length,
		 struct arena *arena, const char **path, struct err *err);

#endif
