/* save_verdicts - writes verdicts to the store, in one transaction per definition. Some writes are deferred to the end
 * of the run, and are then done in one transaction (struct later). */
#ifndef REFTEST_ENGINE_SAVE_VERDICTS_H
#define REFTEST_ENGINE_SAVE_VERDICTS_H

#include "engine/run_state.h"

/* Stores the verdicts of a result. Clears `in_store` of each case whose verdict cannot be stored. */
void save_result(struct result *result);

/* Writes the verdicts that save_result deferred. */
void save_waiting(struct run *run);

#endif
