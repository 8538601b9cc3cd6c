/* repository - the git repository that a folder lies in: found as git finds it, without running git.
 *
 * A hook is run with variables that say which repository and which index it is about (`git commit -a` and `git commit
 * FILE` make an index of their own). They count for the repository that they name, and for no other: a dataset that
 * lies in a submodule, or elsewhere, is looked at by its own .git. */
#ifndef REFTEST_GIT_REPOSITORY_H
#define REFTEST_GIT_REPOSITORY_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"

struct repository {
	char top[PATH_MAX];	  /* of the working tree; absolute, like the next four */
	char directory[PATH_MAX]; /* .git, or a worktree's or submodule's folder below another .git */
	char common[PATH_MAX];	  /* where the worktrees of a repository have what they share: objects, config, hooks */
	char index[PATH_MAX];	  /* the file of the index: $GIT_INDEX_FILE if that is of this repository */
	char prefix[PATH_MAX];	  /* the folder it was found for, below top: "" or "data/set/" */
	bool environment;	  /* the variables GIT_… of this process are about this repository */
	int object_bytes;	  /* of an object's name: 20, or 32 with SHA-256 */
	bool partial;		  /* a partial clone: a remote has the contents that are not here */
	bool sparse;		  /* a sparse checkout: only a part of the index is wanted in the working tree, */
	bool cone;		  /* told by folders (else by patterns) */
};

/* The repository of the folder `root`. -1 with a sentence: it lies in none. */
int repository_find(const char *root, struct repository *out, struct err *err);

/* Only the nearest .git above `folder`, whatever the environment says: its working tree and its folder, both of
 * PATH_MAX bytes. false: there is none. */
bool repository_above(const char *folder, char *top, char *directory);

#endif
