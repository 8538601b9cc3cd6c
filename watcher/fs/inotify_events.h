/* inotify_events - reads inotify events, marks changed files as touched, and updates the watched directories. */
#ifndef REFTEST_WATCHER_FS_INOTIFY_EVENTS_H
#define REFTEST_WATCHER_FS_INOTIFY_EVENTS_H

struct watcher;

/* Reads all available events without blocking. If the event queue has overflowed, calls watcher_events_lost, so that
 * all paths are reported as changed. */
void events_read(struct watcher *w);

#endif
