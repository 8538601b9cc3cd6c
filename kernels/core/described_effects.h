/* described_effects - says what the words of a definition announce about the effects of its operation: whether it draws
 * random samples, and which inputs it writes to. Only definitions of no op family are read in this way; a family knows
 * its effects (op.samples, op.in_place). */
#ifndef REFTEST_KERNELS_CORE_DESCRIBED_EFFECTS_H
#define REFTEST_KERNELS_CORE_DESCRIBED_EFFECTS_H

#include <stdbool.h>

#include "kernels/core/op.h"

/* Returns the word of the name, op_type, description or tags that says that the operation draws random samples, or
 * NULL. */
const char *described_samples(const struct op_problem *problem);

/* Does the definition say that the operation writes to this input? Its description does, or an output has its name. */
bool described_written(const struct op_problem *problem, int input);

#endif
