/* tolerance - defines the default tolerance rule (atol, rtol, hit_ratio) for each dtype of an output. Families use this
 * rule unless op.rule returns another one.
 *
 * If you change a value, also change tests/unit/test_op.c. engine/cases_bounds.c replaces the defaults by the
 * definition's own tolerance, or by the tolerance from the command line. */
#ifndef REFTEST_KERNELS_CORE_TOLERANCE_H
#define REFTEST_KERNELS_CORE_TOLERANCE_H

#include "kernels/core/op.h"

struct rule rule_default(enum dtype dtype);

#endif
