/* confusions - the mistakes that people make in references of samplers and of filters of probabilities. */
#ifndef REFTEST_KERNELS_SAMPLING_CONFUSIONS_H
#define REFTEST_KERNELS_SAMPLING_CONFUSIONS_H

#include "kernels/core/op.h"

/* the table, ended by a row without `says` */
extern const struct op_confusion sampling_confusions[];

#endif
