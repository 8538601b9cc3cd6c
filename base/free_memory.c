/* free_memory - reads /proc/meminfo, and the control groups of this process (version 1 and version 2).
 *
 * The limit of a control group also applies to all groups below it. The code therefore reads the limit of the process's
 * group and of every group above it. File pages that are not in active use count as free, because the kernel reclaims
 * them before it refuses an allocation. Inside a container, the path in /proc/self/cgroup may be outside of the mounted
 * hierarchy. The code can then read only the root of the mount, which is the container's own group. */
#include "base/free_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* The names of files and keys in one version of control groups (1 or 2). */
struct dialect {
	const char *controller; /* the text before the path in a line of /proc/self/cgroup */
	const char *mount, *limit, *usage, *reclaimable;
};

static const struct dialect dialects[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

/* Reads the file's text into `out`. Returns false if the file cannot be read. */
static bool read_text(const char *root, const char *path, struct buf *out)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full)
		return false;
	return file_read(AT_FDCWD, full, 1 << 20, out, NULL, NULL) == FILE_OK && out->length > 0;
}

/* Finds the first line that starts with `key`, and returns the number that follows `key` in this line. If `key` is "",
 * returns the number at the start of the text. Returns -1 if a text such as "max" is there instead of a number. */
static int64_t number_behind(const struct buf *text, const char *key)
{
	size_t length = strlen(key);
	char *end;

	for (const char *line = text->data; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
		line += *line == '\n' ? 1 : 0;
		if (strncmp(line, key, length) != 0)
			continue;
		long long value = strtoll(line + length, &end, 10);

		return end == line + length || value < 0 ? -1 : value;
	}
	return -1;
}

static int64_t number_in(const char *root, const char *folder, const char *file, const char *key)
{
	char path[PATH_MAX];
	struct buf text = {0};
	int64_t value = -1;

	if (snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path && read_text(root, path, &text))
		value = number_behind(&text, key);
	buf_free(&text);
	return value;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Returns the memory limit of one group in bytes. If `free` is true, returns the limit minus the memory that the group
 * already uses. Returns INT64_MAX if the group has no limit. */
static int64_t group_allows(const char *root, const struct dialect *dialect, const char *folder, bool free)
{
	int64_t limit = number_in(root, folder, dialect->limit, "");
	int64_t usage = free ? number_in(root, folder, dialect->usage, "") : 0;
	int64_t reclaimable = free ? number_in(root, folder, "memory.stat", dialect->reclaimable) : 0;

	if (limit < 0 || usage < 0)
		return INT64_MAX;
	usage -= least(usage, reclaimable < 0 ? 0 : reclaimable);
	return limit > usage ? limit - usage : 0;
}

/* Returns the smallest result of group_allows for the group at `path` (as in /proc/self/cgroup) and all groups above
 * it. */
static int64_t groups_allow(const char *root, const struct dialect *dialect, const char *path, size_t length, bool free)
{
	char folder[PATH_MAX];
	int64_t allowed = INT64_MAX;

	if (snprintf(folder, sizeof folder, "%s%.*s", dialect->mount, (int)length, path) >= (int)sizeof folder)
		return allowed;
	while (strlen(folder) >= strlen(dialect->mount)) {
		allowed = least(allowed, group_allows(root, dialect, folder, free));
		*strrchr(folder, '/') = '\0';
	}
	return allowed;
}

static int64_t control_groups_leave(const char *root, bool free)
{
	struct buf text = {0};
	int64_t allowed = INT64_MAX;

	if (read_text(root, "/proc/self/cgroup", &text))
		for (size_t d = 0; d < sizeof dialects / sizeof *dialects; d++) {
			const char *at = strstr(text.data, dialects[d].controller);
			const char *path = at == NULL ? "" : at + strlen(dialects[d].controller);

			if (at != NULL && strcspn(path, "\n") < PATH_MAX)
				allowed = least(allowed,
						groups_allow(root, &dialects[d], path, strcspn(path, "\n"), free));
		}
	buf_free(&text);
	return allowed;
}

static int64_t meminfo(const char *root, const char *key)
{
	int64_t kilobytes = number_in(root, "/proc", "meminfo", key);

	return kilobytes < 0 || kilobytes > INT64_MAX / 1024 ? 0 : kilobytes * 1024;
}

int64_t memory_available(const char *root)
{
	return least(meminfo(root, "MemAvailable:"), control_groups_leave(root, true));
}

int64_t memory_installed(const char *root)
{
	return least(meminfo(root, "MemTotal:"), control_groups_leave(root, false));
}
