/* oracle - computes the selective state update of kernels/mamba_ssu/mamba_ssu.c in double, and checks the inputs of a
 * case. */
#ifndef REFTEST_KERNELS_MAMBA_SSU_ORACLE_H
#define REFTEST_KERNELS_MAMBA_SSU_ORACLE_H

#include "kernels/core/op.h"

/* Implements op.check: checks the axes, and the tensors that are loaded (data is not NULL). Returns 0, or -1 with a
 * message if the case is invalid. */
int ssu_check(const struct op_case *c, const struct tensor *in, struct err *err);

/* Implements op.oracle. */
int ssu_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

#endif
