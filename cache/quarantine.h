/* quarantine - sets aside a store that cannot be used. The store's folder, which also contains the lock file, is
 * renamed and never deleted. A process that has the store open can continue to use it. */
#ifndef REFTEST_CACHE_QUARANTINE_H
#define REFTEST_CACHE_QUARANTINE_H

#include <stdint.h>

#include "base/err.h"

/* Renames the folder `path` to the first free "{path}.aside-N" and creates an empty folder with the old name. `why`
 * says what is wrong with the store. Writes a message with the new path to `note`. Returns 0, or -1 with a message. */
int quarantine_put(const char *path, const struct err *why, struct err *note, struct err *err);

/* Counts the stores that were set aside from `path` and still exist. Sets `bytes` to the size of their files. */
void quarantine_count(const char *path, int64_t *count, int64_t *bytes);

#endif
