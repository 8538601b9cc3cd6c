/* oracle - computes the gated delta net of kernels/gdn/gdn.c in double, and checks the inputs of a case. */
#ifndef REFTEST_KERNELS_GDN_ORACLE_H
#define REFTEST_KERNELS_GDN_ORACLE_H

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Implements op.check: checks the axes, and the tensors that are loaded (data is not NULL). */
int gdn_check(const struct op_case *c, const struct tensor *in, struct err *err);

/* Returns true if the case writes to the slots of sequences, so that no two sequences may share a slot. */
struct gdn_roles;
bool gdn_writes_slots(const struct op_case *c, const struct gdn_roles *roles);

/* Implements op.oracle. */
int gdn_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
