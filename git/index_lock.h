/* index_lock - checks whether git is changing the working tree. Git holds the lock file index.lock during a whole
 * checkout. */
#ifndef REFTEST_GIT_INDEX_LOCK_H
#define REFTEST_GIT_INDEX_LOCK_H

#include <limits.h>
#include <stdbool.h>

struct git_lock {
	char path[PATH_MAX]; /* the path of git's lock file; "": the dataset is not in a working tree */
};

/* Sets `lock` to the path of the lock file of the repository that contains `root`. */
void git_lock_find(const char *root, struct git_lock *lock);
/* Returns whether git holds the lock. Ignores a lock file that is several seconds old, because a killed git process
 * leaves its lock file behind. */
bool git_lock_held(const struct git_lock *lock);

#endif
