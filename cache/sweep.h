/* sweep - removes what nobody needs, behind store_sweep (cache/store.h). */
#ifndef REFTEST_CACHE_SWEEP_H
#define REFTEST_CACHE_SWEEP_H

#include "cache/env.h"
#include "cache/store.h"

int sweep(struct env *env, const struct store_needs *needs, bool dry_run, struct store_swept *swept, struct err *err);

#endif
