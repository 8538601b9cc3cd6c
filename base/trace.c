#include "base/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/show.h"

bool trace_on(void)
{
	const char *value = getenv("REFTEST_TRACE");

	return value != NULL && value[0] != '\0';
}

void trace(const char *module, const char *format, ...)
{
	char line[1024];
	struct timespec now;
	va_list args;

	if (!trace_on())
		return;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	clock_gettime(CLOCK_MONOTONIC, &now);
	show_print(stderr, "%lld.%06ld %s: %s\n", (long long)now.tv_sec, now.tv_nsec / 1000, module, line);
}
