/* disk_store - implements struct run_store (engine/run_store.h) with the store below <root>/.reftest
 * (cache/store.h). */
#ifndef REFTEST_ENGINE_DISK_STORE_H
#define REFTEST_ENGINE_DISK_STORE_H

#include "engine/program.h"
#include "engine/run_store.h"

/* Returns an empty run_store, which stores nothing, if the program has no store. */
struct run_store disk_store(struct program *program);

#endif
