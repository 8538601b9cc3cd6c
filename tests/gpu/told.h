/* told - how a check of a GPU says what is wrong, and ends where it cannot go on. */
#ifndef REFTEST_TESTS_GPU_TOLD_H
#define REFTEST_TESTS_GPU_TOLD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

/* Says a line; 1, to be added to how many things were wrong. */
static inline int tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline int tell(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	return 1;
}

/* Ends the program with `err` if what nothing here can do without is not `fine`. */
static inline void must(bool fine, const struct err *err)
{
	if (fine)
		return;
	printf("Bail out! %s\n", err->text);
	exit(1);
}

#endif
