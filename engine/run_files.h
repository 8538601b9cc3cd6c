/* run_files - the interface through which a run reads its files. The implementations read from the disk
 * (engine/disk_files.h) or from git's index (engine/git_index_files.h). Unit tests use a fake that records which files
 * were read. */
#ifndef REFTEST_ENGINE_RUN_FILES_H
#define REFTEST_ENGINE_RUN_FILES_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cache/store.h"
#include "dataset/dataset.h"
#include "engine/cases.h"

/* The result of checking whether a file's content has changed. */
struct stat_check {
	struct file_seen seen;
	bool read;   /* the file was read in this run */
	bool absent; /* the check failed, because the file does not exist */
	/* The check failed, because only the git remote has the content (the repository is a partial clone). */
	bool remote;
};

/* The first argument of every call is run_files.self. `earlier` is the record that an earlier run stored for the file,
 * or NULL. */
struct run_files_calls {
	/* True if a changed file is recognised by its git object name, and false if by its stat() result. */
	bool by_object;
	/* Returns whether the file still has the content that `earlier` records. Does not read the file. */
	bool (*holds)(void *self, const struct dataset_file *file, const struct file_seen *earlier);
	/* Reads a file of at most `limit` bytes. Sets `out->seen` except `out->seen.content`. On error, returns -1 and
	 * sets `err`. If the file does not exist, also sets `out->absent`; if only the git remote has its content, also
	 * sets `out->remote`. */
	int (*read)(void *self, const struct dataset_file *file, size_t limit, struct buf *bytes, struct stat_check *out,
		    struct err *err);
	/* Returns whether the file has `content`. Reads the file, unless `earlier` proves that it has this content. */
	bool (*unchanged)(void *self, const struct dataset_file *file, const struct file_seen *earlier,
			  const struct digest *content);
	/* Gets the blob at `path` below the root. Errors are stored in the returned blob. If `to_run` is true, makes
	 * sure that the blob exists as a file, because the judge or the reference may read it. If this function reads
	 * the blob, it sets `seen` and sets `*read` to true. */
	struct blob (*blob)(void *self, enum blob_use use, const char *path, const struct file_seen *earlier, bool to_run,
			    struct arena *arena, struct file_seen *seen, bool *read);
	/* Returns whether the blob has had the same content at all times since it was hashed. */
	bool (*blob_unchanged)(void *self, const struct blob *blob, const struct file_seen *earlier);
};

struct run_files {
	const struct run_files_calls *calls;
	void *self;
};

#endif
