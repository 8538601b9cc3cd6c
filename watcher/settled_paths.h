/* settled_paths - gets the settled paths from the watcher (watcher/fs/watcher.h), finds the definitions that they
 * affect (watcher/affected_definitions.h), and starts a batch with these definitions. Also handles changes of
 * reftest.toml, of the root and of the cache. */
#ifndef REFTEST_WATCHER_SETTLED_PATHS_H
#define REFTEST_WATCHER_SETTLED_PATHS_H

#include "watcher/watch_state.h"

/* Reads the events that have arrived. Starts a batch with the definitions that settled paths affect, unless the watcher
 * must first wait for further changes (watcher/debounce.h). */
void changes_take(struct watch *watch);

/* Starts a batch with the definitions at `paths`, or adds them to the open batch. If `paths` is NULL, the batch gets
 * all definitions. */
void changes_begin_batch(struct watch *watch, const char *const *paths, int count);

#endif
