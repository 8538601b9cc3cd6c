/* staged_dataset - reads the dataset from git's index instead of the disk, for `verify --staged`.
 *
 * A file is read only if its object name in git's index (the hash of its content) has changed since the last run. If
 * nothing has changed, a run reads only the index file. The tensor files of workload lines also come from the index.
 * For a file in Git LFS, the index has only a pointer with the size and SHA-256 of the content. The content of such a
 * file is read from the working tree or from LFS's own storage, and is checked against the pointer. */
#ifndef REFTEST_ENGINE_STAGED_DATASET_H
#define REFTEST_ENGINE_STAGED_DATASET_H

#include "base/file.h"
#include "base/hash.h"
#include "dataset/dataset.h"

struct staged; /* opaque */

/* Finds the root of the dataset, as dataset_find_root does. A folder also counts as a dataset if its definitions are in
 * the index but not on disk. This happens in a sparse checkout, or after a user deleted the definitions. Returns 0, or
 * -1 and sets `err`. */
int staged_root(const char *given, char *root, size_t size, struct err *err);

/* Reads the index of the git repository that contains `root`. Fills in `dataset` with the files that the index lists.
 * Symbolic links and submodules in the index are not followed. For each link and submodule, `problems` in the dataset
 * gets a message. The result is allocated in `arena`; close it with staged_close. Returns NULL and sets `err` on
 * error. */
struct staged *staged_open(const char *root, struct arena *arena, struct dataset *dataset, struct err *err);
void staged_close(struct staged *staged);

/* Makes the list for staged_solutions. For each symbolic link and submodule below solutions/, `problems` in the dataset
 * gets a message. Call this after staged_open, if solutions are ground truths. */
void staged_list_solutions(struct staged *staged, struct dataset *dataset);

/* Returns the paths of the solutions of a definition in the index, sorted and relative to the root. `definition` is the
 * path of the definition. Paths beyond the first SOLUTIONS_MAX are left out. Call staged_list_solutions before. */
const char **staged_solutions(const struct staged *staged, const char *definition, struct arena *arena, int *count);

/* Reads the content of a file from the index. `path` is relative to the root. Returns 0 on success. Returns -1 and sets
 * `err` if the file has a merge conflict or more than `limit` bytes. Returns 1 and sets `err` if the content is not on
 * this machine, as in a partial clone. */
int staged_read(struct staged *staged, const char *path, const struct object_name *object, size_t limit,
		struct buf *out, struct err *err);

/* Looks up a file in the index and sets `object`. Returns STAGED_IGNORED if git ignores the path. For an ignored path,
 * the run uses the file in the working tree, because a commit contains no ignored files. Returns STAGED_NOT and sets
 * `err` if the file is not in the index or has a merge conflict. */
enum staged_answer { STAGED_NOT = -1, STAGED_FOUND = 0, STAGED_IGNORED = 1 };
enum staged_answer staged_find(struct staged *staged, const char *path, struct object_name *object, struct err *err);

/* Returns whether a commit of the current index would add, remove or change the file at `path`. `path` is relative to
 * the root. Also returns true if git fails. The first call runs git; later calls do not. */
bool staged_changes(struct staged *staged, const char *path);

/* Lists the files below the root that a commit of the current index would add, remove or change. Their paths are
 * relative to the root. Returns the number of files. Returns -1 if git fails, and also before the first commit, when
 * every file is new. */
int staged_changed_files(struct staged *staged, struct arena *arena, const char ***files);

/* Gets the bytes of a blob (a tensor file) from the index, or from the file to which its LFS pointer refers. Free the
 * blob with staged_blob_free. Returns 0 on success. Returns 1 if the content is not on this machine; `err` then has the
 * command that fetches it. Returns -1 and sets `err` on other errors. */
struct staged_blob {
	const unsigned char *data;
	size_t length;
	/* Digest of `data`. A mapped file may change later. Its digest was therefore computed in the same pass as the
	 * SHA-256 that was compared with the LFS pointer, so both describe the same content. */
	struct digest content;
	struct buf bytes;	/* the content, if the index has it; owned */
	struct mapping mapping; /* the mapped file, if the index has an LFS pointer; owned */
};
int staged_blob(struct staged *staged, const char *path, const struct object_name *object, struct staged_blob *out,
		struct err *err);
void staged_blob_free(struct staged_blob *blob);

/* Writes the bytes of a blob to a file below <root>/.reftest, so that the judge can read them. Sets `path` to this
 * file, which staged_close removes. Returns 0, or -1 and sets `err`. */
int staged_place(struct staged *staged, const struct digest *content, const void *bytes, size_t length,
		 struct arena *arena, const char **path, struct err *err);

#endif
