#include "workers/pool/memory_watch.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_SIZE = 4096 };

/* The fields of a file in /proc/PID that are added up. Each key begins with a newline. Therefore no key is found in the
 * name of the process: the file contains this name, but without newlines. */
struct sum_of {
	const char *file;
	const char *keys[3];
};

static const struct sum_of whole_pages = {"status", {"\nRssAnon:", "\nVmSwap:", "\nVmPTE:"}};
static const struct sum_of parts_of_pages = {"smaps_rollup", {"\nPss_Anon:", "\nSwapPss:", NULL}};

/* Returns the size that follows `key` in the text, converted from KiB to bytes, or 0. */
static int64_t field_bytes(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at == NULL ? 0 : (int64_t)strtoll(at + strlen(key), NULL, 10) << 10;
}

/* Returns the sum of these fields for one process. Returns -1 if the file cannot be read, because the process has ended
 * or the file is hidden. */
static int64_t sum_of(int proc, const char *pid, const struct sum_of *what)
{
	char path[64], text[STATUS_SIZE];
	int64_t sum = 0;

	snprintf(path, sizeof path, "%.20s/%s", pid, what->file);
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return -1;
	text[length] = '\0';
	for (size_t i = 0; i < sizeof what->keys / sizeof *what->keys; i++)
		sum += what->keys[i] == NULL ? 0 : field_bytes(text, what->keys[i]);
	return sum;
}

static int64_t memory_of(int proc, const char *pid, bool exact)
{
	int64_t sum = exact ? sum_of(proc, pid, &parts_of_pages) : -1;

	if (sum < 0)
		sum = sum_of(proc, pid, &whole_pages);
	return sum < 0 ? 0 : sum;
}

int64_t memory_watch_sum(int proc, bool exact)
{
	int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int64_t sum = 0;

	if (folder == NULL) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while ((entry = readdir(folder)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) && strcmp(entry->d_name, "1") != 0)
			sum += memory_of(proc, entry->d_name, exact);
	closedir(folder);
	return sum;
}
