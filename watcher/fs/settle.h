/* settle - delays the report of a changed file until the file has settled (no program is still writing to it). The
 * caller passes the current time, and this module does not access files.
 *
 * A file that was closed after writing, or moved to its path, is checked immediately. If the caller's callback says
 * that the file is complete, the file has settled. Files that are empty, absent, incomplete, or still open for writing
 * must wait, because editors truncate files, rename them and write them in pieces. Such a file settles SETTLE_MS after
 * its last event or, if events continue, SETTLE_LONGEST_MS after its first event. */
#ifndef REFTEST_WATCHER_FS_SETTLE_H
#define REFTEST_WATCHER_FS_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { SETTLE_MS = 100, SETTLE_LONGEST_MS = 2000, SETTLE_BUCKETS = 1024 };

enum touch {
	TOUCH_WRITTEN, /* the file was closed after writing, moved to this path, or found in a new directory;
			* settle_turn checks at once whether it is complete */
	TOUCH_WRITING, /* the file was created or modified and may still be open for writing */
	TOUCH_GONE     /* the file was deleted or moved away; an editor may be about to create it again */
};

struct settle_item;

struct settle { /* {0}: no path waits */
	struct settle_item *bucket[SETTLE_BUCKETS];
	int count;
};

/* Returns whether the file at `path` is complete. settle_turn calls this callback only for paths with TOUCH_WRITTEN. */
typedef bool settle_complete(const char *path, void *context);

void settle_touch(struct settle *settle, const char *path, enum touch touch, int64_t now_ms);

/* Returns the time at which settle_turn must be called at the latest, or INT64_MAX if no path waits. */
int64_t settle_deadline(const struct settle *settle);

/* Sets `paths` to the paths that have settled, and removes them from `settle`. The list is sorted, without duplicates
 * and allocated in `arena`. Returns their number. */
int settle_turn(struct settle *settle, int64_t now_ms, settle_complete *complete, void *context, struct arena *arena,
		const char *const **paths);

void settle_free(struct settle *settle);

#endif
