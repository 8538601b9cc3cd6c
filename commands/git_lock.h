/* git_lock - is git changing the tree right now? It holds index.lock from the first file of a checkout to the last. */
#ifndef REFTEST_COMMANDS_GIT_LOCK_H
#define REFTEST_COMMANDS_GIT_LOCK_H

#include <limits.h>
#include <stdbool.h>

struct git_lock {
	char path[PATH_MAX]; /* "": the root lies in no working tree */
};

void git_lock_find(const char *root, struct git_lock *lock);
/* A lock that was left behind by a git that died ages, and says nothing any more. */
bool git_lock_held(const struct git_lock *lock);

#endif
