/* mistakes - the mistakes that people make in references of gated delta nets. */
#ifndef REFTEST_KERNELS_GDN_MISTAKES_H
#define REFTEST_KERNELS_GDN_MISTAKES_H

#include "kernels/core/op.h"

extern const struct op_mistake gdn_mistakes[];

#endif
