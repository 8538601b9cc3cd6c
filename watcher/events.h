/* events - what inotify says, taken in by the places that it is about. */
#ifndef REFTEST_WATCHER_EVENTS_H
#define REFTEST_WATCHER_EVENTS_H

struct watcher;

/* Reads what there is, without waiting. A queue that overflowed ends in everything being told (watcher_lose_track). */
void events_read(struct watcher *w);

#endif
