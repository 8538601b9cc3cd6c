#include "cache/unchanged_file.h"

#include <fcntl.h>
#include <time.h>

#include "base/file.h"

bool file_seen_holds(const struct file_seen *seen, const struct file_stat *now)
{
	const struct file_stat *then = &seen->stat;
	int64_t newest = then->mtime_ns > then->ctime_ns ? then->mtime_ns : then->ctime_ns;

	if (then->inode != now->inode || then->size != now->size || then->mtime_ns != now->mtime_ns ||
	    then->ctime_ns != now->ctime_ns)
		return false;
	return seen->read_ns >= newest &&
	       (uint64_t)seen->read_ns - (uint64_t)newest >= (uint64_t)UNCHANGED_FILE_RACY_MS * 1000 * 1000;
}

bool file_seen_proves(int dir, const char *path, const struct file_seen *earlier, const struct digest *content,
		      struct file_seen *seen)
{
	struct stat st;

	if (earlier == NULL || !digest_equal(&earlier->content, content) || fstatat(dir, path, &st, 0) != 0)
		return false;
	*seen = (struct file_seen){.stat = file_stat_of(&st), .read_ns = earlier->read_ns};
	return file_seen_holds(earlier, &seen->stat);
}

struct file_reading file_reading_begin(int dir, const char *path)
{
	struct timespec now;
	struct file_reading reading;

	clock_gettime(CLOCK_REALTIME, &now);
	reading.ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	reading.shows = file_shows_changes(dir, path, &reading.st);
	return reading;
}

int64_t file_reading_time(const struct file_reading *reading, const struct stat *st)
{
	return reading->shows && reading->st.st_ino == st->st_ino && reading->st.st_dev == st->st_dev ? reading->ns : 0;
}
