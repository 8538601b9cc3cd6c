/* last_failed - the definitions that did not pass when they ran last, for `verify --last-failed`. The store has their
 * names, because an invalid definition and an error that may go away leave no stored verdict. */
#ifndef REFTEST_ENGINE_LAST_FAILED_H
#define REFTEST_ENGINE_LAST_FAILED_H

#include "engine/run_state.h"

/* Removes from the selection every definition that did not fail when it ran last. Returns the number of those that
 * stay. If none failed, the selection stays as it is, and the function returns 0. */
int last_failed_select(struct run *run);

/* Writes to the store which definitions failed, once `run` has ended. A definition that has no status in this run keeps
 * its former one. */
void last_failed_write(const struct run *run);

#endif
