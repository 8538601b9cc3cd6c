/* polling - finds changes that cause no inotify events: changes in directories without an inotify watch, and paths that
 * now lead to another directory. */
#ifndef REFTEST_WATCHER_FS_POLLING_H
#define REFTEST_WATCHER_FS_POLLING_H

struct watcher;

/* Scans the polled directories for changed files and new subdirectories. */
void polling_look(struct watcher *w);
/* Checks that the paths of symbolic links, polled directories and roots of trees still lead to the same directories. */
void polling_audit(struct watcher *w);

#endif
