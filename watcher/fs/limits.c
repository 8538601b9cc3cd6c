#include "watcher/fs/limits.h"

#include <limits.h>
#include <stdio.h>

/* Reads the number in a file of /proc/sys. Returns false if the file does not exist or has no number. */
static bool read_number(const char *proc, const char *folder, const char *name, const char *what, long *value)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/sys/%s/%s%s", proc, folder, name, what);
	FILE *file = fopen(path, "re");
	bool read = file != NULL && fscanf(file, "%ld", value) == 1;

	if (file != NULL)
		fclose(file);
	return read;
}

/* Returns whether this process is in a user namespace other than the initial one. In the initial one, the file uid_map
 * maps every id to itself. */
static bool in_namespace(const char *proc)
{
	char path[PATH_MAX];
	unsigned long from = 0, to = 0, count = UINT_MAX;

	snprintf(path, sizeof path, "%s/self/uid_map", proc);
	FILE *file = fopen(path, "re");
	bool read = file != NULL && fscanf(file, "%lu %lu %lu", &from, &to, &count) == 3;

	if (file != NULL)
		fclose(file);
	return read && (from != 0 || to != 0 || count < UINT_MAX);
}

struct limit limit_of(const char *what, const char *proc)
{
	struct limit limit = {.outside = in_namespace(proc)};
	long own;

	snprintf(limit.name, sizeof limit.name, "fs.inotify.max_user_%s", what);
	if (!read_number(proc, "fs/inotify", "max_user_", what, &limit.value))
		limit.value = 0;
	if (read_number(proc, "user", "max_inotify_", what, &own) && own < limit.value) {
		snprintf(limit.name, sizeof limit.name, "user.max_inotify_%s", what);
		limit.value = own;
		limit.outside = false;
	}
	return limit;
}
