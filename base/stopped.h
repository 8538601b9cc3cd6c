/* stopped - does a process stand still? */
#ifndef REFTEST_BASE_STOPPED_H
#define REFTEST_BASE_STOPPED_H

#include <stdbool.h>

/* Has it been stopped by a signal or a debugger? false also of one that is not there, or that /proc does not show. */
bool process_is_stopped(long process);

#endif
