/* oracle - computes the ground truth of a sampling case, and checks its inputs. kernels/sampling/sampling.c describes
 * the operation. */
#ifndef REFTEST_KERNELS_SAMPLING_ORACLE_H
#define REFTEST_KERNELS_SAMPLING_ORACLE_H

#include "kernels/core/op.h"
#include "kernels/sampling/filter.h"

enum { SAMPLING_PARALLEL_FROM = 1 << 20 }; /* if there are fewer elements, one thread is faster than several */

/* Reads row `row` of the probabilities and applies the case's filters to it. */
struct filter_kept sampling_keep(const struct op_case *c, const struct tensor *in, int64_t row, struct filter *filter);

/* Implements op.check: checks that rows are distributions (but not that their sum is 1) and that parameters are not
 * NaN. */
int sampling_check(const struct op_case *c, const struct tensor *in, struct err *err);

/* Implements op.oracle. */
int sampling_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

#endif
