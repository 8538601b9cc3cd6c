#include "commands/git_lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"

enum { LOCK_SECONDS = 10, GITFILE_BYTES = 8192 };

/* "gitdir: PATH" in a file .git, as worktrees and submodules have it. */
static bool follow_gitfile(const char *folder, const char *path, struct git_lock *lock)
{
	struct buf text = {0};
	bool found = false;

	if (file_read(AT_FDCWD, path, GITFILE_BYTES, &text, NULL, NULL) == FILE_OK && text.length > 8 &&
	    strncmp(text.data, "gitdir: ", 8) == 0) {
		const char *target = text.data + 8;
		int length = (int)strcspn(target, "\n");

		found = (target[0] == '/' ? snprintf(lock->path, sizeof lock->path, "%.*s/index.lock", length, target)
		                          : snprintf(lock->path, sizeof lock->path, "%s/%.*s/index.lock", folder, length,
		                                     target)) < (int)sizeof lock->path;
	}
	buf_free(&text);
	return found;
}

void git_lock_find(const char *root, struct git_lock *lock)
{
	char folder[PATH_MAX], path[PATH_MAX + 8];
	struct stat st;

	lock->path[0] = '\0';
	if (realpath(root, folder) == NULL)
		return;
	for (;;) {
		char *slash = strrchr(folder, '/');

		snprintf(path, sizeof path, "%s/.git", folder);
		if (stat(path, &st) == 0) {
			if (S_ISDIR(st.st_mode) ? snprintf(lock->path, sizeof lock->path, "%s/index.lock", path) >=
			                              (int)sizeof lock->path
			                        : !follow_gitfile(folder, path, lock))
				lock->path[0] = '\0';
			return;
		}
		if (slash == NULL || folder[0] == '\0')
			return;
		*slash = '\0';
	}
}

bool git_lock_held(const struct git_lock *lock)
{
	struct stat st;
	time_t now = time(NULL);

	return lock->path[0] != '\0' && stat(lock->path, &st) == 0 && st.st_ctim.tv_sec + LOCK_SECONDS >= now &&
	       st.st_ctim.tv_sec <= now + LOCK_SECONDS;
}
