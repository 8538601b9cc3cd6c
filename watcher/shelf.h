/* shelf - what a folder held when it was last looked at, to find by polling what inotify would have told.
 *
 * A file is read and hashed when its stat differs from the last one, when it was written so recently that its stat
 * proves nothing, and every SHELF_ROUNDS-th look in any case: filesystems that have to be polled are those whose stat
 * may lie. Files above SHELF_READ_MAX are judged by their stat. */
#ifndef REFTEST_WATCHER_SHELF_H
#define REFTEST_WATCHER_SHELF_H

#include <stdbool.h>

#include "watcher/settle.h"

enum { SHELF_ROUNDS = 20, SHELF_READ_MAX = 1 << 20 };

struct shelf; /* opaque; NULL is an empty one that has never been looked at */

/* Which names are files that count. */
typedef bool shelf_wanted(const char *name, void *context);
/* A file came or changed (TOUCH_WRITTEN) or is gone (TOUCH_GONE). */
typedef void shelf_told(const char *name, enum touch touch, void *context);

/* Looks at the folder `fd` (kept by the caller). The first look tells nothing unless `announce`. */
void shelf_look(struct shelf **shelf, int fd, bool announce, shelf_wanted *wanted, shelf_told *told, void *context);
void shelf_free(struct shelf *shelf);

#endif
