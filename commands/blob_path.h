/* blob_path - does the watcher hear by itself of what happens to the blob that a workload line names? */
#ifndef REFTEST_COMMANDS_BLOB_PATH_H
#define REFTEST_COMMANDS_BLOB_PATH_H

#include <stdbool.h>

enum { BLOB_DEPTH = 8 }; /* levels of folders below blob/ that are watched */

/* `path`: relative to the root, without "." and double slashes, as a workload file has it once it is read. */
bool blob_path_is_watched(const char *path);

#endif
