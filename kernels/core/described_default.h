/* described_default - finds out whether the description of a Python scalar names a number that stands for the scalar's
 * default. For example, "0 stands for 1/sqrt(head_size)" means that a caller may pass 0 to get the default. Some
 * references replace 0 by the default and others do not. Only a case that passes 0 shows the difference. */
#ifndef REFTEST_KERNELS_CORE_DESCRIBED_DEFAULT_H
#define REFTEST_KERNELS_CORE_DESCRIBED_DEFAULT_H

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns true if the description says that a number (0 or -1) stands for the scalar's default, and writes the number
 * to `number`. Returns false if the description does not say so, or if the input is a tensor or a switch. */
bool described_default(const struct op_arg *arg, double *number);

/* Like described_default, but returns true only if the family knows the default. `op` may be NULL. */
bool described_default_known(const struct op *op, const struct op_case *c, int input, double *number);

/* Sets the value of a Python scalar of the case to `number`. If the number stands for a default that the family knows,
 * treats the scalar as omitted: sets its bit in op_case.absent, and sets its value to the family's default. */
void described_set_scalar(const struct op *op, struct op_case *c, int input, double number);

#ifdef __cplusplus
}
#endif
#endif
