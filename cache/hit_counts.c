/* hit_counts - reads the lines of the file .reftest/counts, and appends lines to it. A line is "counts 1 RUNS HITS
 * MISSES…", with one number in MISSES for each reason of a miss. A line from an older version of this program may have
 * fewer numbers. line_read rejects a line with more numbers than this version writes, and a line with fewer numbers
 * than the first version wrote. */
#include "cache/hit_counts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

enum { FILE_BIG = 32 << 10, FILE_MAX = 1 << 20, PATH_ROOM = 4096 + 32, LINE_ROOM = 256 };

static const char mark[] = "counts 1";

static int open_counts(const char *root, int flags)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof path, "%s/.reftest/counts", root);
	return open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0644);
}

static void line_write(const struct cache_stats *counts, char line[LINE_ROOM])
{
	int at = snprintf(line, LINE_ROOM, "%s %" PRId64 " %" PRId64, mark, counts->runs, counts->hits);

	for (int i = 0; i < HIT_COUNTS_REASONS; i++)
		at += snprintf(line + at, LINE_ROOM - (size_t)at, " %" PRId64, counts->misses[i]);
	snprintf(line + at, LINE_ROOM - (size_t)at, "\n");
}

enum { OLDEST_NUMBERS = 2 + 6 }; /* how many numbers follow "counts 1" in a line of this program's first version */

/* Parses one line, which has no newline. If the line is from an older version of this program and lacks some numbers,
 * sets these numbers to 0. */
static bool line_read(const char *line, struct cache_stats *out)
{
	int64_t *numbers[2 + HIT_COUNTS_REASONS] = {&out->runs, &out->hits};

	for (int i = 0; i < HIT_COUNTS_REASONS; i++)
		numbers[2 + i] = &out->misses[i];
	char *end = NULL;

	if (strncmp(line, mark, strlen(mark)) != 0)
		return false;
	line += strlen(mark);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++, line = end) {
		long long number = strtoll(line, &end, 10);

		if (end == line && i >= OLDEST_NUMBERS && *line == '\0') {
			*numbers[i] = 0;
			continue;
		}
		if (end == line || number < 0 || number > INT64_MAX / 1024)
			return false;
		*numbers[i] = number;
	}
	return *end == '\0';
}

static void sum(char *text, struct cache_stats *out)
{
	char *rest = NULL;

	*out = (struct cache_stats){0};
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		struct cache_stats one;

		if (!line_read(line, &one))
			continue;
		out->runs += one.runs;
		out->hits += one.hits;
		for (int i = 0; i < HIT_COUNTS_REASONS; i++)
			out->misses[i] += one.misses[i];
	}
}

static void read_fd(int fd, struct cache_stats *out)
{
	struct buf text = {0};
	struct stat st;
	ssize_t n = 0;

	*out = (struct cache_stats){0};
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		return;
	buf_reserve(&text, (size_t)st.st_size + 1);
	if ((n = pread(fd, text.data, (size_t)st.st_size, 0)) > 0) {
		text.data[n] = '\0';
		sum(text.data, out);
	}
	buf_free(&text);
}

void hit_counts_read(const char *root, struct cache_stats *out)
{
	int fd = open_counts(root, O_RDONLY);

	*out = (struct cache_stats){0};
	if (fd < 0)
		return;
	if (flock(fd, LOCK_SH) == 0)
		read_fd(fd, out);
	close(fd);
}

void hit_counts_add(const char *root, const struct cache_stats *more)
{
	int fd = open_counts(root, O_RDWR | O_CREAT | O_APPEND);
	struct cache_stats all = *more;
	char line[LINE_ROOM];
	struct stat st;

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX) == 0 && fstat(fd, &st) == 0) {
		if (st.st_size > FILE_BIG) { /* a crash between ftruncate and write loses only statistics */
			read_fd(fd, &all);
			all.runs += more->runs;
			all.hits += more->hits;
			for (int i = 0; i < HIT_COUNTS_REASONS; i++)
				all.misses[i] += more->misses[i];
			if (ftruncate(fd, 0) != 0)
				all = *more;
		}
		line_write(&all, line);
		if (write(fd, line, strlen(line)) < 0)
			(void)0; /* a failed write loses only statistics */
	}
	close(fd);
}
