#include "workers/pool/memory_watch.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_SIZE = 4096 };

/* Returns the bytes that a file status of /proc states after `key`, or 0. */
static int64_t field_bytes(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at == NULL ? 0 : (int64_t)strtoll(at + strlen(key), NULL, 10) << 10;
}

/* Returns the memory of one process; 0 if it has ended. */
static int64_t memory_of(int proc, const char *pid)
{
	static const char *const keys[] = {"\nRssAnon:", "\nVmSwap:", "\nVmPTE:"}; /* after the name, which may contain no newline */
	char path[64], text[STATUS_SIZE];
	int64_t sum = 0;

	snprintf(path, sizeof path, "%.20s/status", pid);
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		sum += field_bytes(text, keys[i]);
	return sum;
}

int64_t memory_watch_sum(int proc)
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
			sum += memory_of(proc, entry->d_name);
	closedir(folder);
	return sum;
}
