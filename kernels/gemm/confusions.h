/* confusions - the mistakes that people make in references of matrix products. */
#ifndef REFTEST_KERNELS_GEMM_CONFUSIONS_H
#define REFTEST_KERNELS_GEMM_CONFUSIONS_H

#include "kernels/core/op.h"

/* the table, ended by a row without `says` */
extern const struct op_confusion gemm_confusions[];

#endif
