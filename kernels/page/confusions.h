/* confusions - the mistakes that people make in references of appending to paged caches. */
#ifndef REFTEST_KERNELS_PAGE_CONFUSIONS_H
#define REFTEST_KERNELS_PAGE_CONFUSIONS_H

#include "kernels/core/op.h"

/* the table, ended by a row without `says` */
extern const struct op_confusion page_confusions[];

#endif
