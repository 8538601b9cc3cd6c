/* trust - the file `clean` is one record: inode u64 . size u64 . mtime u64 . ctime u64 of data.mdb.
 *
 * It speaks only for a data.mdb that had been still for CLEAN_STILL_MS when it was written: a change within one tick of
 * the filesystem's clock would leave the same stat. A process that ends right after a commit therefore leaves a `clean`
 * that nobody believes; the next one looks at the pages and leaves a better one. */
#include "cache/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trace.h"
#include "cache/pages.h"
#include "cache/record.h"
#include "dataset/dataset.h"

enum {
	CLEAN_STILL_MS = 100, /* ticks are 1 to 10 ms */
	CLEAN_BYTES = RECORD_HEAD + 32,
	PATH_ROOM = 4096 + 128,
};

static const char clean_key[] = "data.mdb";

/* Does a process hold the lock that every user of an LMDB environment holds on the first octet of lock.mdb? */
bool trust_in_use(const char *folder)
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

/* Was a file of stat `written` written when one of stat `data` had been still? */
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

static enum trust_answer trust_file(const char *folder, int fd, struct err *why)
{
	struct stat st;

	if (fstat(fd, &st) != 0) {
		err_errno(why, "%s/data.mdb cannot be read", folder);
		return TRUST_ERROR;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(why, "data.mdb is no file");
		return TRUST_DAMAGED;
	}
	if (st.st_size == 0)
		return TRUST_NOTHING;
	if (trust_in_use(folder) || left_clean(folder, &st))
		return TRUST_KNOWN;
	trace("cache", "looking at every page of %s/data.mdb", folder);
	enum pages_answer answer = pages_check(fd, why);

	return answer == PAGES_SOUND ? TRUST_CHECKED : answer == PAGES_DAMAGED ? TRUST_DAMAGED : TRUST_ERROR;
}

enum trust_answer trust_data(const char *folder, struct err *why)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof path, "%s/data.mdb", folder);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO must not hold us up */

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return TRUST_NOTHING;
	if (fd < 0) {
		err_errno(why, "%s cannot be read", path);
		return TRUST_ERROR;
	}
	enum trust_answer answer = trust_file(folder, fd, why);

	close(fd);
	return answer;
}

void trust_leave(const char *folder)
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
