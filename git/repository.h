/* repository - finds the git repository that contains a directory, by git's rules and without running git.
 *
 * When git runs a hook, it sets environment variables to the paths of the repository and of the index. These variables
 * are used, because `git commit -a` and `git commit FILE` have a temporary index. If the dataset is in another
 * repository, for example in a submodule, the variables are ignored, and the nearest .git is used. */
#ifndef REFTEST_GIT_REPOSITORY_H
#define REFTEST_GIT_REPOSITORY_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"

struct repository {
	char top[PATH_MAX];	  /* the top directory of the working tree; this path and the next three are absolute */
	char directory[PATH_MAX]; /* the folder .git; a worktree or a submodule has a folder below the .git of another
				   * checkout instead */
	char common[PATH_MAX];	  /* the directory with objects, config and hooks, which all worktrees share */
	char index[PATH_MAX];	  /* the index file: $GIT_INDEX_FILE if it belongs to this repository */
	char prefix[PATH_MAX];	  /* the dataset's directory relative to `top`: "" or "data/set/" */
	bool environment;	  /* whether the GIT_* variables of this process apply to this repository */
	int object_bytes;	  /* the length of an object id: 20 bytes, or 32 with SHA-256 */
	bool partial;		  /* whether the repository is a partial clone, which fetches missing contents from a
				   * git remote */
	bool sparse;		  /* whether the checkout is sparse: only a part of the index is checked out */
	bool cone;		  /* true if the sparse checkout selects directories, false if it selects patterns */
};

/* Finds the repository that contains the directory `root`. Returns 0, or -1 and sets `err` if there is no
 * repository. */
int repository_find(const char *root, struct repository *out, struct err *err);

/* Finds the nearest .git in `folder` or its parents. Ignores environment variables. Sets `top` to the working tree and
 * `directory` to the repository's directory; both must have room for PATH_MAX bytes. Returns false if there is no
 * .git. */
bool repository_above(const char *folder, char *top, char *directory);

#endif
