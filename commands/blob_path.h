/* blob_path - where a blob lies that a workload line names, in the spelling that events have. Pure. */
#ifndef REFTEST_COMMANDS_BLOB_PATH_H
#define REFTEST_COMMANDS_BLOB_PATH_H

#include <limits.h>
#include <stdbool.h>

enum { BLOB_DEPTH = 8 }; /* levels of folders below blob/ that are watched */

/* "blob/x/a" for "./blob//x/./a". false: longer than any path that the system could open. */
bool blob_path_plain(const char *named, char path[PATH_MAX]);

/* Does it lie where the watcher hears of it: in blob/, and not too deep? */
bool blob_path_is_watched(const char *path);

#endif
