/* test_trace - events are written to standard error if REFTEST_TRACE is set, each on a line of its own. */
#include "base/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Redirects standard error to a file, calls `trace`, and returns what `trace` wrote. */
static void traced(char *out, size_t size)
{
	FILE *file = tmpfile();
	int kept = dup(STDERR_FILENO);

	assert_non_null(file);
	assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	trace("room", "%s %d", "event", 7);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	close(kept);
	rewind(file);
	out[fread(out, 1, size - 1, file)] = '\0';
	fclose(file);
}

static void events_are_written_when_they_are_asked_for(void **state)
{
	char line[256];

	(void)state;
	unsetenv("REFTEST_TRACE");
	assert_false(trace_on());
	traced(line, sizeof line);
	assert_string_equal(line, "");
	assert_int_equal(setenv("REFTEST_TRACE", "", 1), 0);
	traced(line, sizeof line);
	assert_string_equal(line, "");
	assert_int_equal(setenv("REFTEST_TRACE", "1", 1), 0);
	assert_true(trace_on());
	traced(line, sizeof line);
	assert_non_null(strstr(line, " room: event 7\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(events_are_written_when_they_are_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
