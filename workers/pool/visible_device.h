/* visible_device - the processes of a GPU see this GPU only, as "cuda:0", through CUDA_VISIBLE_DEVICES.
 *
 * CUDA initialises every GPU that a process sees, so on a host with many GPUs each new process would take longer. And a
 * reference that names "cuda:0" gets the GPU that its inputs are on. */
#ifndef REFTEST_WORKERS_POOL_VISIBLE_DEVICE_H
#define REFTEST_WORKERS_POOL_VISIBLE_DEVICE_H

#include "base/arena.h"

/* The device's name where it is the only visible one. */
#define VISIBLE_DEVICE_NAME "cuda:0"

/* Returns the value of CUDA_VISIBLE_DEVICES with which only the device "cuda:N" is visible, if the value is `list` now;
 * `list` NULL: it is not set. NULL: `device` is no GPU, or the list has no such entry, so nothing may be changed. */
const char *visible_device(const char *device, const char *list, struct arena *arena);

/* Returns a copy of `environment`, which ends with NULL, with this value. `visible` NULL: returns `environment`. */
char **visible_device_environment(char **environment, const char *visible, struct arena *arena);

#endif
