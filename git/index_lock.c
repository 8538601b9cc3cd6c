#include "git/index_lock.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "git/repository.h"

enum { LOCK_SECONDS = 10 };

void git_lock_find(const char *root, struct git_lock *lock)
{
	char top[PATH_MAX], directory[PATH_MAX];

	if (!repository_above(root, top, directory) ||
	    snprintf(lock->path, sizeof lock->path, "%s/index.lock", directory) >= (int)sizeof lock->path)
		lock->path[0] = '\0';
}

bool git_lock_held(const struct git_lock *lock)
{
	struct stat st;
	time_t now = time(NULL);

	return lock->path[0] != '\0' && stat(lock->path, &st) == 0 && st.st_ctim.tv_sec + LOCK_SECONDS >= now &&
	       st.st_ctim.tv_sec <= now + LOCK_SECONDS;
}
