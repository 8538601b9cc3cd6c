/* repository - finds the git repository that contains a directory. It follows git's rules, but does not run git.
 *
 * When git runs a hook, it sets environment variables with the paths of the repository and the index. reftest uses
 * these variables, because `git commit -a` and `git commit FILE` use a temporary index. If the dataset is in another
 * repository, for example in a submodule, reftest ignores the variables and uses the repository of the nearest .git. */
#ifndef REFTEST_GIT_REPOSITORY_H
#define REFTEST_GIT_REPOSITORY_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"

struct repository {
	char top[PATH_MAX];	  /* the top directory of the working tree; this path and the next three are absolute */
	char directory[PATH_MAX]; /* the folder .git; for a worktree or a submodule, a folder inside the .git of another
				   * checkout */
	char common[PATH_MAX];	  /* the directory with objects, config and hooks, which all worktrees share */
	char index[PATH_MAX];	  /* the index file: $GIT_INDEX_FILE if it belongs to this repository */
	char prefix[PATH_MAX];	  /* the dataset's directory relative to `top`: "" or "data/set/" */
	bool environment;	  /* true: the GIT_* variables of this process apply to this repository */
	int object_bytes;	  /* the length of an object id: 20 bytes, or 32 with SHA-256 */
	bool partial;		  /* the repository is a partial clone, which lacks some objects */
	bool sparse;		  /* sparse checkout is on: only some files of the index are checked out */
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
