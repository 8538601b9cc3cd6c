/* settle - touched paths, kept until what lies there may be acted on. Pure: no disk, no clock; the time is given.
 *
 * There is no fixed delay. A file that was closed after writing, or moved into place, is looked at in the same turn, and
 * if it is ripe (its reader says: it parses) it is settled. Editors truncate, rename away and write in pieces, so what
 * is empty, absent, unparsable or still held open by its writer waits until nothing more was heard of it for SETTLE_MS;
 * then it is settled as it is, whatever that may be. A writer that never rests is looked at after SETTLE_LONGEST_MS. */
#ifndef REFTEST_WATCHER_SETTLE_H
#define REFTEST_WATCHER_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

enum { SETTLE_MS = 100, SETTLE_LONGEST_MS = 2000, SETTLE_BUCKETS = 1024 };

enum touch {
	TOUCH_WRITTEN, /* closed after writing, moved in, found in a new folder: worth a look now */
	TOUCH_WRITING, /* made or modified, and perhaps still open */
	TOUCH_GONE     /* deleted or moved away; it may be back in a moment */
};

struct settle_item;

struct settle { /* {0} is empty */
	struct settle_item *bucket[SETTLE_BUCKETS];
	int count;
};

/* Can the path be acted on as it is? Asked only of what was TOUCH_WRITTEN. */
typedef bool settle_ripe(const char *path, void *context);

void settle_touch(struct settle *settle, const char *path, enum touch touch, int64_t now_ms);

/* When settle_turn is due at the latest; INT64_MAX: nothing waits. */
int64_t settle_deadline(const struct settle *settle);

/* Moves what has settled into `paths`: sorted, each once, in the arena. Returns how many. */
int settle_turn(struct settle *settle, int64_t now_ms, settle_ripe *ripe, void *context, struct arena *arena,
                const char *const **paths);

void settle_free(struct settle *settle);

#endif
