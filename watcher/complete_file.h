/* complete_file - decides whether a file of the dataset is completely written. While an editor saves a file, the file
 * may be empty, truncated or absent for a moment. Therefore the watcher reports a change only when the file is
 * complete. */
#ifndef REFTEST_WATCHER_COMPLETE_FILE_H
#define REFTEST_WATCHER_COMPLETE_FILE_H

#include <stdbool.h>

/* Returns whether the file at `path`, relative to `root`, is complete. A definition, workload or solution file is
 * complete if it parses. Any other file is complete if it exists. A file that cannot be read because of its permissions
 * or size also counts as complete, because waiting would not help. */
bool is_complete_file(const char *root, const char *path);

#endif
