/* described_effects - reads from the text of a definition whether its operation draws random samples, and which inputs
 * the operation writes to. These functions are only for definitions without an op family, because families state their
 * effects in op.samples and op.in_place. */
#ifndef REFTEST_KERNELS_CORE_DESCRIBED_EFFECTS_H
#define REFTEST_KERNELS_CORE_DESCRIBED_EFFECTS_H

#include <stdbool.h>

#include "kernels/core/op.h"

/* Searches the name, the op_type, the description and the tags for a word which says that the operation draws random
 * samples. Returns the beginning of this word, such as "sampl", or NULL if there is none. */
const char *described_samples(const struct op_problem *problem);

/* Returns true if the operation writes to this input: if the input's description says so, or if an output has the
 * input's name. */
bool described_written(const struct op_problem *problem, int input);

#endif
