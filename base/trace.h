/* trace - writes a log of internal events to stderr, one event on each line, if REFTEST_TRACE is set and not empty. */
#ifndef REFTEST_BASE_TRACE_H
#define REFTEST_BASE_TRACE_H

#include <stdbool.h>

bool trace_on(void);
void trace(const char *module, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
