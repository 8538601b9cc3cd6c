/* oracle - copies tokens to the slots of a paged cache, as described in kernels/page/page.c, and checks the inputs of a
 * case. */
#ifndef REFTEST_KERNELS_PAGE_ORACLE_H
#define REFTEST_KERNELS_PAGE_ORACLE_H

#include "kernels/core/op.h"

/* Implements op.check: checks the elements of float inputs, and all tables together. If a workload provides only some of
 * the tables, checks no table, because these tables may be inconsistent with the tables that the family computes. */
int page_check(const struct op_case *c, const struct tensor *in, struct err *err);

/* Implements op.oracle. */
int page_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

#endif
