/* lfs_pointer - recognizes the pointer that Git LFS leaves in place of a file that has not been fetched. */
#ifndef REFTEST_DATASET_LFS_POINTER_H
#define REFTEST_DATASET_LFS_POINTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/* Returns whether the contents of a file begin like a Git LFS pointer. */
enum { LFS_POINTER_HEAD = 43 }; /* number of bytes that lfs_pointer_begins looks at */
bool lfs_pointer_begins(const void *bytes, size_t length);
/* Returns the command that fetches a file from Git LFS. */
const char *lfs_fetch_command(struct arena *arena, const char *path);

#endif
