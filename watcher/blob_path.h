/* blob_path - decides whether a blob (a tensor file that a workload line names) is in a folder that is always watched.
 * For a blob in any other folder, call watcher_follow (watcher/fs/watcher.h). */
#ifndef REFTEST_WATCHER_BLOB_PATH_H
#define REFTEST_WATCHER_BLOB_PATH_H

#include <stdbool.h>

enum { BLOB_DEPTH = 8 }; /* the number of folder levels below blob/ that are always watched */

/* Returns whether the folder of the blob is always watched. `path` is relative to the root and has no "." and no double
 * slashes; the parser of workload files ensures this. */
bool blob_path_is_watched(const char *path);

#endif
