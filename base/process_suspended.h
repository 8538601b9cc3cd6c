/* process_suspended - checks whether a process is stopped. */
#ifndef REFTEST_BASE_PROCESS_SUSPENDED_H
#define REFTEST_BASE_PROCESS_SUSPENDED_H

#include <stdbool.h>

/* Returns true if a signal or a debugger has stopped the process. Also returns false if the process does not exist or
 * if /proc does not show it. */
bool process_is_stopped(long process);

#endif
