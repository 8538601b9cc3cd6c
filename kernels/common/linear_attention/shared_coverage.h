/* shared_coverage - rows of op.coverage for all families of linear attention, including gdn. One table can serve all of
 * these families, because they use the same names for roles. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_SHARED_COVERAGE_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_SHARED_COVERAGE_H

#include "kernels/core/coverage.h"

#define LINEAR_ATTENTION_COVERAGE \
	COVERAGE_OPTION("initial state", "state", "given", "has a case with an initial state", "zero",                \
			    "has a case without an initial state"),                                                       \
	    COVERAGE_OPTION("final state", "new_state", "returned", "returns the final state", "none",                    \
			    "returns no final state"),                                                                    \
	    {"D and Dv", coverage_ratio, .role = "q", .axis = -1, .other = "v", .other_axis = -1,                         \
	     .values = {{"equal", 1, 1, "has D = Dv"}, {"different", 0, 0x1p62, "has D != Dv"}}},                         \
	    {"values", coverage_ratio, .role = "v", .axis = -2, .other = "q", .other_axis = -2,                           \
	     .values = {{"as many heads", 1, 1, "has as many heads of values as of queries"},                             \
			{"grouped", 1.0001, 0x1p62, "has grouped values"}}},                                              \
	    {"QK norm", coverage_switch, .role = "l2norm", .other = "l2norm",                                             \
	     .values = {{"applied", 1, 1, "has a case that normalises q and k"},                                          \
			{"none", 0, 0, "has a case that leaves q and k as they are"}}},                                   \
	    COVERAGE_OPTION("scale", "scale", "input", "has a scale among its inputs", "1 / sqrt(D)",                     \
			    "has the scale 1 / sqrt(D)")

#endif
