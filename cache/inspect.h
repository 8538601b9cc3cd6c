/* inspect - looks at every row of every table, behind store_inspect (cache/store.h). */
#ifndef REFTEST_CACHE_INSPECT_H
#define REFTEST_CACHE_INSPECT_H

#include "cache/env.h"
#include "cache/store.h"

int inspect(struct env *env, store_complaint *tell, void *context, struct store_inspected *out, struct err *err);

#endif
