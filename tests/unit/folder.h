/* folder - gives each test a temporary folder as its working directory. */
#ifndef REFTEST_TESTS_FOLDER_H
#define REFTEST_TESTS_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static inline int enter_folder(void **state)
{
	char *path = strdup("/tmp/reftest-unit-XXXXXX");

	*state = path;
	return path == NULL || mkdtemp(path) == NULL || chdir(path) != 0;
}

/* Removes the folder with its content, even if the test has removed permissions. */
static inline int leave_folder(void **state)
{
	char command[128];

	snprintf(command, sizeof command, "chmod -R u+rwx '%s' && rm -r '%s'", (char *)*state, (char *)*state);
	free(*state);
	return chdir("/") != 0 || system(command) != 0;
}

/* Writes `text` to the file `path`. */
static inline void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

#endif
