/* integrity - reads and writes the file `clean`. The file `clean` contains one record, which describes data.mdb: inode
 * u64, size u64, mtime u64, ctime u64.
 *
 * Two changes of a file within one tick of the filesystem's clock have the same timestamps. `clean` is therefore
 * trusted only if data.mdb had not changed for CLEAN_STILL_MS milliseconds when `clean` was written. If a process
 * writes `clean` right after a commit, the next process therefore checks the pages again, and writes a new `clean`. */
#include "cache/integrity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trace.h"
#include "cache/lmdb_page_check.h"
#include "cache/checksummed_record.h"
#include "dataset/dataset.h"

enum {
	CLEAN_STILL_MS = 100, /* many ticks of a filesystem's clock, which are 1 to 10 ms each */
	CLEAN_BYTES = RECORD_HEAD + 32,
	PATH_ROOM = 4096 + 128,
};

static const char clean_key[] = "data.mdb";

/* Returns true if another process holds a lock on the first byte of lock.mdb, as every process that uses an LMDB
 * environment does. */
bool integrity_in_use(const char *folder)
{
	char path[PATH_ROOM];
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};

	snprintf(path, sizeof path, "%s/lock.mdb", folder);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool used = fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;

	if (fd >= 0)
		close(fd);
	return used;
}

static void clean_record(const struct file_stat *now, struct buf *out)
{
	struct buf body = {0};

	record_put_u64(&body, now->inode);
	record_put_u64(&body, now->size);
	record_put_u64(&body, (uint64_t)now->mtime_ns);
	record_put_u64(&body, (uint64_t)now->ctime_ns);
	record_write(RECORD_CLEAN, clean_key, sizeof clean_key, body.data, body.length, out);
	buf_free(&body);
}

/* `data` is the stat of data.mdb, and `written` is the stat of the file `clean`. Returns true if data.mdb had not
 * changed for CLEAN_STILL_MS milliseconds when `clean` was written. */
static bool had_been_still(const struct file_stat *data, const struct file_stat *written)
{
	int64_t newest = data->mtime_ns > data->ctime_ns ? data->mtime_ns : data->ctime_ns;

	return written->mtime_ns >= newest && written->mtime_ns - newest >= (int64_t)CLEAN_STILL_MS * 1000 * 1000;
}

static bool left_clean(const char *folder, const struct stat *data)
{
	char path[PATH_ROOM], found[CLEAN_BYTES + 1];
	struct file_stat now = file_stat_of(data), written;
	struct buf expected = {0};
	struct stat st;

	snprintf(path, sizeof path, "%s/clean", folder);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return false;
	ssize_t length = fstat(fd, &st) == 0 ? read(fd, found, sizeof found) : -1;

	close(fd);
	if (length != CLEAN_BYTES)
		return false;
	written = file_stat_of(&st);
	clean_record(&now, &expected);
	bool same = expected.length == CLEAN_BYTES && memcmp(found, expected.data, CLEAN_BYTES) == 0;

	buf_free(&expected);
	return same && had_been_still(&now, &written);
}

static enum integrity check_file(const char *folder, int fd, struct err *why)
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		err_errno(why, "%s/data.mdb cannot be read", folder);
		return INTEGRITY_ERROR;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(why, "data.mdb is not a regular file");
		return INTEGRITY_DAMAGED;
	}
	if (st.st_size == 0)
		return INTEGRITY_NOTHING;
	if (integrity_in_use(folder) || left_clean(folder, &st))
		return INTEGRITY_KNOWN;
	trace("cache", "checking every page of %s/data.mdb", folder);
	enum lmdb_page_check_answer answer = lmdb_page_check(fd, why);

	if (answer == LMDB_PAGE_CHECK_ERROR)
		return INTEGRITY_ERROR;
	return answer == LMDB_PAGE_CHECK_SOUND ? INTEGRITY_CHECKED : INTEGRITY_DAMAGED;
}

enum integrity integrity_check(const char *folder, struct err *why)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof path, "%s/data.mdb", folder);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* opening a FIFO must not block */

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return INTEGRITY_NOTHING;
	if (fd < 0) {
		err_errno(why, "%s cannot be read", path);
		return INTEGRITY_ERROR;
	}
	enum integrity answer = check_file(folder, fd, why);

	close(fd);
	return answer;
}

void integrity_mark_clean(const char *folder)
{
	char path[PATH_ROOM];
	struct buf record = {0};
	struct file_stat now;
	struct stat st;

	snprintf(path, sizeof path, "%s/data.mdb", folder);
	if (stat(path, &st) != 0)
		return;
	now = file_stat_of(&st);
	clean_record(&now, &record);
	snprintf(path, sizeof path, "%s/clean", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0644);

	if (fd >= 0) {
		if (write(fd, record.data, record.length) != (ssize_t)record.length)
			trace("cache", "%s could not be written", path);
		close(fd);
	}
	buf_free(&record);
}
