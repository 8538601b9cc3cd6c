/* affected_definitions - finds the definitions that are affected by changed paths. watcher/settled_paths.c gets the
 * changed paths from watcher/fs/watcher.h, and starts a batch with these definitions. */
#ifndef REFTEST_WATCHER_AFFECTED_DEFINITIONS_H
#define REFTEST_WATCHER_AFFECTED_DEFINITIONS_H

#include <stdbool.h>

#include "base/arena.h"
#include "cache/store.h"
#include "watcher/fs/watcher.h"
#include "watcher/last_statuses.h"

/* A growable list of paths of definitions. {.arena = …} is empty. */
struct path_list {
	const char **items;
	int count, room;
	struct arena *arena;
};

void path_list_sort(struct path_list *list); /* sorts the paths and removes duplicates */

/* Adds the definition to which the file at `path` belongs (a definition, workload, truth, approval or
 * solution file). For a folder such as "definitions/x/" or "workloads/x/", adds all definitions in `known` that belong
 * to this folder, including definitions that were deleted. For a folder of solutions, adds all definitions in `known`.
 * Adds nothing for other paths. */
void affected_definitions_add(const struct last_statuses *known, const char *path, struct path_list *list);

/* Adds the definitions whose workload lines name a changed blob. The definitions are looked up in the store's table of
 * files. Returns false if `store` is NULL or cannot be read; any definition may then be affected. */
bool affected_definitions_add_blobs(struct store *store, const struct changes *changes, struct path_list *list);

#endif
