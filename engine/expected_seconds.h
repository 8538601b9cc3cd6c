/* expected_seconds - estimates how long a case will take. Longer cases start first, so only the order of the estimates
 * matters. A wrong estimate costs time, but changes no verdict. */
#ifndef REFTEST_ENGINE_EXPECTED_SECONDS_H
#define REFTEST_ENGINE_EXPECTED_SECONDS_H

#include "engine/run_state.h"

/* Returns `remembered`, the seconds that a case took when it ran last. If `remembered` is 0, this time is unknown, and
 * the function estimates it from `family` (NULL if there is no op family) and from the size of the tensors. Always
 * positive. */
double expected_seconds(double remembered, const char *family, const struct job *job);

#endif
