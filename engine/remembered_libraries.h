/* remembered_libraries - remembers in the cache which library file has which digest (base/sealed_library.h).
 *
 * Whoever can write to the cache could make a changed library pass. They could as well write verdicts there, which need
 * no library. */
#ifndef REFTEST_ENGINE_REMEMBERED_LIBRARIES_H
#define REFTEST_ENGINE_REMEMBERED_LIBRARIES_H

#include "base/sealed_library.h"
#include "cache/store.h"

/* `store` may be NULL; nothing is then known or remembered. */
struct digest_memory remembered_libraries(struct store *store);

#endif
