/* watcher - watches directories below a root and reports changed paths once they have settled.
 *
 * The watcher knows nothing about definitions. It watches trees. A tree is a directory in the root, such as
 * "definitions". For each tree, the caller sets the number of directory levels and the suffix of the files that are
 * watched. If a file may have changed, the watcher reports its path at least once after the last change, or it reports
 * "everything". To miss no change, the watcher adds the inotify watch of a directory before it lists the directory, and
 * reports every file in a new directory. The reported paths depend on the event:
 *
 * - If a file is written, created, moved or deleted, or if its permissions change, its path is reported.
 * - If a directory is created in a tree or moved into it, or if a link to a directory is replaced, each path in the
 *   directory is reported.
 * - If a directory or a link to a directory is deleted or moved away, "folder/" is reported. "folder/" means that any
 *   path below the folder may have changed.
 * - If the event queue overflows, "everything" is reported after events have stopped.
 * - If the root is deleted, moved, unmounted or hidden by a mount, "everything" is reported when the root is back.
 *
 * If inotify cannot watch a directory, the watcher scans it twice a second, compares the contents of its files, and
 * says so in a message. One reason is that inotify does not report all changes on the filesystem (NFS, FUSE, 9p, …);
 * statfs tells the type of the filesystem. The other reason is that the limit of inotify watches is reached. If the
 * target of a symbolic link is outside the watched directories, the watcher checks the target once a second. */
#ifndef REFTEST_WATCHER_FS_WATCHER_H
#define REFTEST_WATCHER_FS_WATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "watcher/fs/watched_tree.h"

struct watcher; /* an opaque type */

/* Opens a watcher. All directories are watched when this function returns, so every later change is reported. Returns
 * NULL and sets `err` on error. */
struct watcher *watcher_open(const struct watcher_options *options, struct err *err);
void watcher_close(struct watcher *watcher);

/* Returns a descriptor, or -1 if all directories are polled. Call watcher_turn when the descriptor is readable. Each
 * watcher_turn may replace the descriptor by another. */
int watcher_fd(const struct watcher *watcher);
int64_t watcher_deadline(const struct watcher *watcher); /* Returns the time in ms at which watcher_turn must be called
							  * at the latest. */

/* Processes all events that have arrived, without blocking. */
void watcher_turn(struct watcher *watcher, int64_t now_ms);

/* Makes the watcher check the file at `path` once a second. Use this for files outside the trees and for files with hard
 * links. When the watcher
 * reports "everything", it stops these checks; the function must then be called again. */
void watcher_follow(struct watcher *watcher, const char *path);

/* Makes the next watcher_turn check the polled directories and the links at once, even if a check is not due yet. */
void watcher_hurry(struct watcher *watcher);

struct changes {
	const char *const *paths; /* the changed paths, relative to the root, sorted, without duplicates; "folder/"
				   * stands for any path below it */
	int count;
	bool everything; /* all paths count as changed, and `paths` is empty */
};
/* Sets `out` to the paths that have settled since the last call. Returns false if no path has settled. */
bool watcher_changes(struct watcher *watcher, int64_t now_ms, struct arena *arena, struct changes *out);

int watcher_pending(const struct watcher *watcher); /* returns the number of touched paths that have not settled */
bool watcher_has_root(const struct watcher *watcher);
int watcher_generation(const struct watcher *watcher); /* returns a number that increases each time another directory
							* replaces the root */

/* Returns the next message for the user, or NULL if there is none. The text is valid until the next call. */
const char *watcher_notice(struct watcher *watcher);

struct watcher_counts watcher_counts(const struct watcher *watcher);

#endif
