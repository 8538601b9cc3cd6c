/* remembered_seconds - reads from the store how long a case took when it last ran, even if its definition has changed
 * since then. A run uses these times to estimate how long it will still take. */
#ifndef REFTEST_ENGINE_REMEMBERED_SECONDS_H
#define REFTEST_ENGINE_REMEMBERED_SECONDS_H

#include "engine/run_state.h"

/* Returns how many seconds the case took according to its latest stored verdict, or 0 if the store has no verdict of
 * this case. */
double remembered_seconds(struct result *result, const struct case_result *c);

/* Returns an estimate of the seconds until all submitted cases are finished if they run on `lanes` lanes, or -1 if this
 * is unknown. `now` is a time of the monotonic clock. */
double remembered_seconds_left(const struct run *run, int lanes, double now);

#endif
