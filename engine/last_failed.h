/* last_failed - remembers which definitions failed when they last ran, for `verify --last-failed`. The store keeps
 * their names. Stored verdicts are not enough, because an invalid definition or a transient error has no stored
 * verdict. */
#ifndef REFTEST_ENGINE_LAST_FAILED_H
#define REFTEST_ENGINE_LAST_FAILED_H

#include "engine/run_state.h"

/* Removes from the selection every definition that did not fail when it last ran. Returns the number of definitions
 * that stay selected. If no definition failed, leaves the selection unchanged and returns 0. */
int last_failed_select(struct run *run);

/* Writes to the store which definitions of `run` failed. The run must have ended. For a definition without a status in
 * this run, the stored state does not change. */
void last_failed_write(const struct run *run);

#endif
