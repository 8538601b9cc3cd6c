#include "base/library_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

int library_path(const char *name, char *out, size_t size)
{
	static const char *const places[] = {"", "/../lib/reftest"};
	const char *given = getenv("REFTEST_KERNELS");
	char folder[PATH_MAX];

	if (given != NULL && *given != '\0')
		return snprintf(out, size, "%s/%s", given, name) < (int)size && access(out, F_OK) == 0 ? 0 : -1;
	if (file_program_directory(folder, sizeof folder, NULL) < 0)
		return -1;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (snprintf(out, size, "%s%s/%s", folder, places[i], name) < (int)size && access(out, F_OK) == 0)
			return 0;
	return -1;
}
