/* dir_snapshot - finds changed files in a directory by polling, for directories in which inotify does not work. A
 * snapshot has the stat and the digest of each file from the last scan.
 *
 * A scan hashes a file if its stat has changed. It also hashes a file whose last hash was computed soon after a write,
 * because a second write may have left the stat unchanged. Of DIR_SNAPSHOT_ROUNDS consecutive scans, at least one
 * hashes the file even if its stat is the same, because the filesystems that need polling may report wrong stats. Files
 * larger than DIR_SNAPSHOT_READ_MAX bytes are compared by stat alone. */
#ifndef REFTEST_WATCHER_FS_DIR_SNAPSHOT_H
#define REFTEST_WATCHER_FS_DIR_SNAPSHOT_H

#include <stdbool.h>

#include "watcher/fs/settle.h"

enum { DIR_SNAPSHOT_ROUNDS = 20, DIR_SNAPSHOT_READ_MAX = 1 << 20 };

struct dir_snapshot; /* an opaque type; a NULL pointer means that the directory was never scanned */

/* Returns whether a file with this name is watched. */
typedef bool dir_snapshot_wanted(const char *name, void *context);
/* Is called with TOUCH_WRITTEN for each new or changed file, and with TOUCH_GONE for each removed file. */
typedef void dir_snapshot_report(const char *name, enum touch touch, void *context);

/* Scans the directory with the descriptor `fd` and reports the changes since the last scan. The caller closes `fd`. The
 * first scan of a directory reports all its files if `announce` is true, and no file if it is false. */
void dir_snapshot_look(struct dir_snapshot **snapshot, int fd, bool announce, dir_snapshot_wanted *wanted,
		       dir_snapshot_report *on_result, void *context);
void dir_snapshot_free(struct dir_snapshot *snapshot);

#endif
