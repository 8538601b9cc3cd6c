/* confusions - the mistakes that people make in references of sparse attention and of its indexer. */
#ifndef REFTEST_KERNELS_DSA_PAGED_CONFUSIONS_H
#define REFTEST_KERNELS_DSA_PAGED_CONFUSIONS_H

#include "kernels/core/op.h"

extern const struct op_confusion dsa_confusions[];

#endif
