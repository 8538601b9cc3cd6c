/* beside - a library that came with this program: in $REFTEST_KERNELS (a folder), else beside the binary, else where
 * make install puts it, ../lib/reftest from the binary. */
#ifndef REFTEST_BASE_BESIDE_H
#define REFTEST_BASE_BESIDE_H

#include <stddef.h>

/* The path of the file `name` there into `out`. 0; -1: it is in none of these places. */
int beside_program(const char *name, char *out, size_t size);

#endif
