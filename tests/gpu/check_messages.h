/* check_messages - reports the errors of a check of a GPU, and ends the program if it cannot continue. */
#ifndef REFTEST_TESTS_GPU_CHECK_MESSAGES_H
#define REFTEST_TESTS_GPU_CHECK_MESSAGES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

/* Prints a line. Returns 1, which the caller adds to its number of errors. */
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

/* If `fine` is false, ends the program with the message `err`. */
static inline void must(bool fine, const struct err *err)
{
	if (fine)
		return;
	printf("Bail out! %s\n", err->text);
	exit(1);
}

#endif
