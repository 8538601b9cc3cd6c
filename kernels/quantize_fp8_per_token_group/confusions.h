/* confusions - the mistakes that people make in references of quantising groups of channels to float8. */
#ifndef REFTEST_KERNELS_QUANTIZE_FP8_PER_TOKEN_GROUP_CONFUSIONS_H
#define REFTEST_KERNELS_QUANTIZE_FP8_PER_TOKEN_GROUP_CONFUSIONS_H

#include "kernels/core/op.h"

/* the table, ended by a row without `says` */
extern const struct op_confusion quantize_confusions[];

#endif
