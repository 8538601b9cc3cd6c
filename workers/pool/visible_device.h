/* visible_device - sets the variable CUDA_VISIBLE_DEVICES so that the processes that work with a GPU see only this GPU,
 * as "cuda:0".
 *
 * CUDA initialises every GPU that a process sees, so a process starts faster if only one GPU is visible. A second
 * reason is that a reference can then use the name "cuda:0" for the GPU that has its inputs. */
#ifndef REFTEST_WORKERS_POOL_VISIBLE_DEVICE_H
#define REFTEST_WORKERS_POOL_VISIBLE_DEVICE_H

#include "base/arena.h"

/* The name of the device in processes that see only this device. */
#define VISIBLE_DEVICE_NAME "cuda:0"

/* Returns the value of CUDA_VISIBLE_DEVICES that makes only the device "cuda:N" visible. `list` is the current value,
 * or NULL if the variable is not set. If `device` is not a GPU, or if `list` has no entry for it, returns NULL; the
 * variable must then stay as it is. */
const char *visible_device(const char *device, const char *list, struct arena *arena);

/* Returns a copy of the NULL-terminated array `environment` in which CUDA_VISIBLE_DEVICES has the value `visible`. If
 * `visible` is NULL, returns `environment`. */
char **visible_device_environment(char **environment, const char *visible, struct arena *arena);

#endif
