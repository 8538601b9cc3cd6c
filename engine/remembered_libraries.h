/* remembered_libraries - stores the digests of library files in the cache (base/sealed_library.h).
 *
 * A user who can write to the cache can make a changed library look unchanged. That adds no risk, because the same user
 * can also write false verdicts to the cache. */
#ifndef REFTEST_ENGINE_REMEMBERED_LIBRARIES_H
#define REFTEST_ENGINE_REMEMBERED_LIBRARIES_H

#include "base/sealed_library.h"
#include "cache/store.h"

/* If `store` is NULL, the returned digest_memory knows no digests and stores none. */
struct digest_memory remembered_libraries(struct store *store);

#endif
