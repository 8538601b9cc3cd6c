/* sandbox_remove - removes what a reference left in its folder of temporary files.
 *
 * A reference can leave a hostile tree: it may have directories that nobody may enter, and it may be so deep that
 * recursion overflows the stack or that paths become too long. Therefore each directory at the top of the tree is
 * opened, its files are removed, and its subdirectories are moved to the top. This is repeated until the top is empty.
 * No symbolic link is followed. */
#include "workers/sandbox/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

enum { PASSES_MAX = 1 << 20 }; /* a limit is needed because a process that is still alive could create files without
			        * end */

/* The top of the tree, to which subdirectories are moved. `moved` is the number in the name that the next moved
 * subdirectory gets. */
struct top {
	int fd;
	unsigned long moved;
};

/* Opens a directory of this user, whatever its permissions are. */
static int open_directory(int parent, const char *name)
{
	fchmodat(parent, name, 0700, AT_SYMLINK_NOFOLLOW);
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_directory(int parent, const char *name)
{
	struct stat st;

	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Moves a directory to the top, under a new name. */
static void move_up(int parent, const char *name, struct top *top)
{
	char free_name[64];

	do {
		snprintf(free_name, sizeof free_name, "removed-%lu", top->moved++);
	} while (faccessat(top->fd, free_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
	fchmodat(parent, name, 0700, AT_SYMLINK_NOFOLLOW); /* the kernel moves a directory only if it is writable for
							    * this process */
	renameat(parent, name, top->fd, free_name);
}

/* Removes the files of a directory, and moves its subdirectories to the top. Closes `fd`. */
static void empty(int fd, struct top *top)
{
	DIR *directory = fdopendir(fd);
	struct dirent *entry;

	if (directory == NULL) {
		close(fd);
		return;
	}
	while ((entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (is_directory(fd, entry->d_name))
			move_up(fd, entry->d_name, top);
		else
			unlinkat(fd, entry->d_name, 0);
	}
	closedir(directory);
}

/* Empties and removes each directory at the top. Returns the number of entries that it removed. */
static unsigned long remove_entries(struct top *top)
{
	DIR *directory = fdopendir(openat(top->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	unsigned long removed = 0;

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		bool folder = is_directory(top->fd, entry->d_name);
		int fd = folder ? open_directory(top->fd, entry->d_name) : -1;

		if (fd >= 0)
			empty(fd, top);
		removed += unlinkat(top->fd, entry->d_name, folder ? AT_REMOVEDIR : 0) == 0;
	}
	if (directory != NULL)
		closedir(directory);
	return removed;
}

SHOWN void sandbox_remove_folder(const char *path)
{
	struct top top = {open_directory(AT_FDCWD, path), 0};

	if (top.fd < 0)
		return;
	for (int i = 0; i < PASSES_MAX && remove_entries(&top) > 0; i++)
		;
	close(top.fd);
	rmdir(path);
}
