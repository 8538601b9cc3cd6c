/* file_digests - finds the digests of the files of a run. A file is not read again if it is in the state that an
 * earlier run stored (cache/unchanged_file.h). With --staged, engine/git_index_files.c compares object ids from
 * git's index. The new digests of a run are stored in one transaction. */
#ifndef REFTEST_ENGINE_FILE_DIGESTS_H
#define REFTEST_ENGINE_FILE_DIGESTS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "dataset/dataset.h"
#include "engine/cases.h"
#include "engine/run_files.h"
#include "engine/run_store.h"

struct file_digests; /* opaque */

/* Reads the records of files from the store. A file without a record is read when its digest is needed. If the dataset
 * has only some definitions (dataset_some), reads only the records of their files. The result is allocated in `arena`.
 * Returns NULL and sets `err` on error. */
struct file_digests *file_digests_open(struct run_store records, const struct dataset *dataset, struct run_files files,
				struct arena *arena, struct err *err);

/* Returns the stored record of a definition, or NULL if there is no record. The definition file may have changed since
 * the record was stored. */
const struct file_entry *file_digests_entry(const struct file_digests *digests, const struct dataset_file *definition);

/* Gets the digest of a dataset file. Takes the digest from the file's stored record if the file is unchanged; otherwise
 * reads the file. Always reads the file if `need_bytes` is true. If the file was read, sets `out->read` to true, and
 * `bytes` to the content; otherwise sets `bytes->length` to 0. Returns -1 and sets `err` if the file does not exist, if
 * it is too large, or if it cannot be read. */
int file_digests_check(struct file_digests *digests, const struct dataset_file *file, size_t limit, bool need_bytes,
		     struct buf *bytes, struct stat_check *out, struct err *err);

/* Gets a blob (a tensor file, or a file that a reference reads) below the root. Hashes the whole file unless its stat
 * proves that the file is unchanged. Errors are stored in the members `missing` and `bad` of the returned blob. If
 * `to_run` is true, the blob must exist as a file, because the judge or the reference may read it: a blob that exists
 * only in git is written to a file. */
struct blob file_digests_blob(struct file_digests *digests, enum blob_use use, const char *path, bool to_run,
			      struct arena *arena);

/* file_digests_unchanged returns whether the file still has the content that was hashed, and
 * file_digests_blob_unchanged returns whether the blob has kept its content ever since it was hashed. A file on disk is
 * read unless its stat proves that the file is unchanged. Files from git's index cannot change. */
bool file_digests_unchanged(struct file_digests *digests, const struct dataset_file *file,
			    const struct digest *content);
bool file_digests_blob_unchanged(struct file_digests *digests, const struct blob *blob);

/* Adds a copy of the entry to the list that file_digests_write stores. Does nothing if the store already has an equal
 * entry. */
void file_digests_note(struct file_digests *digests, const struct file_entry *entry);
int file_digests_write(struct file_digests *digests, struct err *err);

#endif
