#include "cache/quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* QUARANTINE_MAX: the largest number N in the name of a store that was set aside, "cache.aside-N"; PATH_ROOM: room for
 * the path "<root>/.reftest/cache.aside-N/data.mdb" */
enum { QUARANTINE_MAX = 1000, PATH_ROOM = 4096 + 128 };

static const char suffix[] = ".aside-";

int quarantine_put(const char *path, const struct err *why, struct err *note, struct err *err)
{
	char aside[PATH_ROOM];
	struct stat st;

	for (int i = 1; i <= QUARANTINE_MAX; i++) {
		snprintf(aside, sizeof aside, "%s%s%d", path, suffix, i);
		if (lstat(aside, &st) == 0)
			continue;
		if (rename(path, aside) != 0)
			break;
		err_set(note,
			"the cache %s could not be used: %.1000s; it was set aside as %s (which you may delete), and "
			"everything is verified again",
			path, why->text, aside);
		/* EEXIST is no error: on a filesystem without locks, another process may have created the folder after
		 * the rename. */
		return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : err_errno(err, "%s cannot be created", path);
	}
	return err_set(err, "the cache %s cannot be used: %.1000s; reftest cannot set the cache aside either (%s), so "
			    "remove it", path,
		       why->text, strerror(errno));
}

static int64_t bytes_in(const char *folder)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	struct stat st;
	int64_t sum = 0;

	while (entries != NULL && (entry = readdir(entries)) != NULL)
		if (fstatat(dirfd(entries), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			sum += st.st_size;
	if (entries != NULL)
		closedir(entries);
	return sum;
}

void quarantine_count(const char *path, int64_t *count, int64_t *bytes)
{
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	char folder[PATH_ROOM];
	size_t length = strlen(name);
	struct dirent *entry;

	*count = *bytes = 0;
	snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
	DIR *entries = opendir(slash != NULL ? folder : ".");

	while (entries != NULL && (entry = readdir(entries)) != NULL) {
		if (strncmp(entry->d_name, name, length) != 0 ||
		    strncmp(entry->d_name + length, suffix, sizeof suffix - 1) != 0)
			continue;
		snprintf(folder, sizeof folder, "%.*s%s", (int)(name - path), path, entry->d_name);
		++*count;
		*bytes += bytes_in(folder);
	}
	if (entries != NULL)
		closedir(entries);
}
