/* memory - how much of this machine's memory a program may still take: what the kernel calls available, less whatever
 * control groups allow. */
#ifndef REFTEST_KERNELS_MEMORY_H
#define REFTEST_KERNELS_MEMORY_H

#include <stdint.h>

/* Bytes. `root` is put before every path read ("" on a real machine; a test gives a folder of its own). 0 if the
 * machine does not tell. */
int64_t memory_available(const char *root);
int64_t memory_installed(const char *root);

#endif
