/* store_internal - the declarations that store.c, store_files.c (the table of files), store_gc.c, store_inspect.c and
 * store_io.c share. */
#ifndef REFTEST_CACHE_STORE_INTERNAL_H
#define REFTEST_CACHE_STORE_INTERNAL_H

#include <stdint.h>

#include "cache/lmdb_env.h"
#include "cache/store.h"

struct store {
	struct env env;
	int64_t hits, misses, damaged; /* counts since store_open */
};

#endif
