/* tolerance - the default tolerance rule (atol, rtol, hit_ratio) of an output of each dtype, for families that do not
 * define a rule of their own in op.rule.
 *
 * A changed value also needs a change in tests/unit/test_op.c. engine/cases_bounds.c replaces a default by the
 * definition's own tolerance or by that of the command line. */
#ifndef REFTEST_KERNELS_CORE_TOLERANCE_H
#define REFTEST_KERNELS_CORE_TOLERANCE_H

#include "kernels/core/op.h"

struct rule rule_default(enum dtype dtype);

#endif
