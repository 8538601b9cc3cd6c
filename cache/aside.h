/* aside - what becomes of a store that cannot be used: its folder is renamed, lock file included, and never deleted. A
 * process that still works on it goes on undisturbed. */
#ifndef REFTEST_CACHE_ASIDE_H
#define REFTEST_CACHE_ASIDE_H

#include <stdint.h>

#include "base/err.h"

/* Renames the folder `path` to the first free "{path}.aside-N" and makes an empty one in its place. `why` holds what is
 * wrong with it; `note` gets the sentence, which names the new place. 0, or -1 with a sentence. */
int aside_put(const char *path, const struct err *why, struct err *note, struct err *err);

/* How many folders were set aside from `path` and are still there, and what their files hold in all. */
void aside_count(const char *path, int64_t *count, int64_t *bytes);

#endif
