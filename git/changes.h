/* changes - lists the files of a dataset that differ from a commit. */
#ifndef REFTEST_GIT_CHANGES_H
#define REFTEST_GIT_CHANGES_H

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "git/repository.h"

/* Paths relative to the dataset's directory (repository.prefix), allocated in the arena of the call. */
struct git_files {
	const char **list;
	int count;
};

/* Finds the merge base of HEAD and `name`, which names a branch or a commit. Sets `commit` to the object id of the
 * merge base. Returns 0, or -1 and sets `err`. */
int git_merge_base(const struct repository *repository, const char *name, struct arena *arena, const char **commit,
		   struct err *err);

/* Lists the files below the dataset's directory that differ between the working tree and `commit`. These are the
 * changed, added and deleted files, both names of each renamed file, and untracked files that git does not ignore.
 * Returns 0, or -1 and sets `err`. */
int git_changed_files(const struct repository *repository, const char *commit, struct arena *arena, struct git_files *out,
		      struct err *err);

struct git_file {
	const char *path; /* relative to the dataset's directory */
	unsigned char object[32];
};

/* Lists the files of `commit` in the directory `below`, in the order of their paths. `below` is relative to the
 * dataset's directory. Sets `out` to the array of files and returns their number, or returns -1 and sets `err`. */
int git_commit_files(const struct repository *repository, const char *commit, const char *below, struct arena *arena,
		     const struct git_file **out, struct err *err);

#endif
