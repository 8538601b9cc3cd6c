/* polling - what no event tells of: folders without a watch, and places that may have come to lead elsewhere. */
#ifndef REFTEST_WATCHER_POLLING_H
#define REFTEST_WATCHER_POLLING_H

struct watcher;

void polling_look(struct watcher *w);  /* at what the polled places hold, and for folders below them */
void polling_audit(struct watcher *w); /* do links, polled places and the trees' own folders lead where they did? */

#endif
