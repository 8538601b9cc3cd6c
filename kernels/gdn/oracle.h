/* oracle - the gated delta net in double, as kernels/gdn/gdn.c has it, and whether a case makes sense. */
#ifndef REFTEST_KERNELS_GDN_ORACLE_H
#define REFTEST_KERNELS_GDN_ORACLE_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Are offsets and slots in order, as far as they are at hand? As op.check. */
int gdn_check(const struct op_case *c, const struct tensor *in, struct err *err);

/* Is anything written to the slots of sequences? Then no two may share one. */
struct gdn_roles;
bool gdn_writes_slots(const struct op_case *c, const struct gdn_roles *roles);

/* As op.oracle. */
int gdn_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
