/* confusions - the mistakes that people make in references of mixtures of experts. */
#ifndef REFTEST_KERNELS_MOE_CONFUSIONS_H
#define REFTEST_KERNELS_MOE_CONFUSIONS_H

#include "kernels/core/op.h"

/* the table, ended by a row without `says` */
extern const struct op_confusion moe_confusions[];

#endif
