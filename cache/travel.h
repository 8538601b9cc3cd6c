/* travel - verdicts out of the store and into it, behind store_each_verdict and store_merge (cache/store.h). */
#ifndef REFTEST_CACHE_TRAVEL_H
#define REFTEST_CACHE_TRAVEL_H

#include "cache/env.h"
#include "cache/store.h"

int travel_out(struct env *env, store_verdict_visit *visit, void *context, int64_t *damaged, struct err *err);
int travel_in(struct env *env, const struct portable *records, int count, struct store_merged *merged, struct err *err);

#endif
