/* default_tolerance - defines the default tolerance rule (atol, rtol, hit_ratio) for each dtype of an output. Families
 * use this rule unless op.rule returns another one.
 *
 * If you change a value, also change tests/unit/test_op.c. If a definition or the command line sets a tolerance,
 * engine/cases_bounds.c replaces the defaults by this tolerance. */
#ifndef REFTEST_KERNELS_CORE_DEFAULT_TOLERANCE_H
#define REFTEST_KERNELS_CORE_DEFAULT_TOLERANCE_H

#include "kernels/core/op.h"

struct rule rule_default(enum dtype dtype);

#endif
