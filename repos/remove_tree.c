#include "repos/remove_tree.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>

enum { OPEN_FOLDERS = 32 };

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

int remove_tree(const char *path, struct err *err)
{
	if (nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0 || errno == ENOENT)
		return 0;
	return err_errno(err, "cannot remove %s", path);
}
