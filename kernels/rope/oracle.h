/* oracle - rotates tensors in double, as described in kernels/rope/rope.c, and checks the inputs of a case. */
#ifndef REFTEST_KERNELS_ROPE_ORACLE_H
#define REFTEST_KERNELS_ROPE_ORACLE_H

#include "kernels/rope/roles.h"

/* Implements op.check: checks the Python scalars of a workload, and that positions are rows of the cache. Without a
 * cache, any integer is a valid position. */
int rope_check(const struct op_case *c, const struct tensor *in, struct err *err);

/* Returns -1 with a message in `err` if the rotary dimension does not fit a head. */
int rope_check_widths(const struct rope_extent *e, struct err *err);

/* Implements op.oracle. */
int rope_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

#endif
