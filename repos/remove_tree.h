/* remove_tree - removes a folder with everything in it. */
#ifndef REFTEST_REPOS_REMOVE_TREE_H
#define REFTEST_REPOS_REMOVE_TREE_H

#include "base/err.h"

/* Follows no symbolic link and does not enter other filesystems. A missing folder is no error. Returns 0, or -1 and
 * sets `err`. */
int remove_tree(const char *path, struct err *err);

#endif
