/* confusions - the mistakes that people make in references of gated delta nets. */
#ifndef REFTEST_KERNELS_GDN_CONFUSIONS_H
#define REFTEST_KERNELS_GDN_CONFUSIONS_H

#include "kernels/core/op.h"

extern const struct op_confusion gdn_confusions[];

#endif
