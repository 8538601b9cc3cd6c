/* disk_files - reads the files of a run (definitions, workload files, blobs) from the working tree. */
#ifndef REFTEST_ENGINE_DISK_FILES_H
#define REFTEST_ENGINE_DISK_FILES_H

#include "engine/run_files.h"

/* Returns the files of `dataset`; this dataset must outlive the result. If dataset_some built the dataset, every file
 * is read, whatever its stat says, because the caller of dataset_some lists only files that have changed. */
struct run_files disk_files(const struct dataset *dataset);

/* engine/git_index_files.c also uses these functions: if a file in the working tree has the same bytes as the blob in
 * git's index, the file can be used instead of the blob.
 * - disk_blob implements run_files_calls.blob for files on disk.
 * - disk_holds returns whether the file `path` in the directory `dir` has `content`. If `earlier` does not prove the
 *   content, disk_holds reads the file. In this case, it sets `seen` to the file's stat and the time of the read.
 * - blob_refuse_large marks a blob as unusable if it has more bytes than a reference may read. */
struct blob disk_blob(int dir, enum blob_use use, const char *path, const struct file_seen *earlier, struct arena *arena,
		      struct file_seen *seen, bool *read);
void blob_refuse_large(struct blob *blob, int64_t size, struct arena *arena);
bool disk_holds(int dir, const char *path, const struct file_seen *earlier, const struct digest *content,
		struct file_seen *seen);

#endif
