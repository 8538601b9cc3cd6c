/* shim - a library that is loaded in front of the C library (LD_PRELOAD). The shim counts the calls with which one
 * process changes files, both the calls of LMDB and those of the program. At one of these calls, which the test chooses
 * (faults.h), the shim kills the process, executes only half of a write, makes the call fail as if the disk were broken
 * or full, or makes the clock jump.
 *
 * Only writes to regular files are counted. The shim does not execute fsync, because the kernel keeps the writes of a
 * killed process even if they were not synced. What a disk would contain after a power failure is computed from the
 * log. If reftest begins to use another function of the C library that changes files, add a wrapper for it here. */
#include "tests/faults/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

enum { SECTOR = 512, TEN_YEARS = 3653 * 86400 };

static struct faults *faults;
static int log_fd = -1;

__attribute__((constructor)) static void meet(void)
{
	const char *path = getenv(FAULTS_ENV);
	int fd = path == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);

	if (fd < 0)
		return;
	void *map = mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	faults = map == MAP_FAILED ? NULL : map;
}

static bool meant(void)
{
	return faults != NULL && faults->pid == getpid();
}

enum kind { KIND_WRITE, KIND_TAKES_ROOM, KIND_TAKES_NONE };

/* Returns whether the fault can happen at a call of this kind. */
static bool concerns(enum fault fault, enum kind kind)
{
	if (fault == FAULT_SHORT)
		return kind == KIND_WRITE;
	return fault != FAULT_NONE && (fault != FAULT_ENOSPC || kind != KIND_TAKES_NONE);
}

static void strike(const char *name)
{
	if (!faults->struck)
		snprintf(faults->last, sizeof faults->last, "%s", name);
	faults->struck = true;
	if (faults->fault == FAULT_BEFORE)
		raise(SIGKILL);
	if (faults->fault == FAULT_AHEAD || faults->fault == FAULT_BACK)
		faults->clock_s = faults->clock_s + (faults->fault == FAULT_AHEAD ? TEN_YEARS : -TEN_YEARS);
}

/* Counts a call, and returns the fault that happens at it. */
static enum fault next_fault(const char *name, enum kind kind)
{
	if (!meant())
		return FAULT_NONE;
	faults->calls = faults->calls + 1;
	if (faults->calls < faults->at || (faults->calls > faults->at && faults->fault != FAULT_ENOSPC) ||
	    !concerns(faults->fault, kind))
		return FAULT_NONE;
	strike(name);
	return faults->fault;
}

/* If the fault is an error of the disk, sets errno and returns true, so that the call fails. */
static bool refused(enum fault fault)
{
	if (fault != FAULT_EIO && fault != FAULT_ENOSPC)
		return false;
	errno = fault == FAULT_EIO ? EIO : ENOSPC;
	return true;
}

static long done(enum fault fault, long answer)
{
	if (fault == FAULT_TORN)
		raise(SIGKILL);
	return answer;
}

/* Returns how many of its `length` bytes a write stores if this fault happens at it. */
static size_t torn(enum fault fault, size_t length)
{
	if (fault != FAULT_TORN && fault != FAULT_SHORT)
		return length;
	return length > SECTOR ? length / SECTOR / 2 * SECTOR + SECTOR : length / 2;
}

/* --- The clock --------------------------------------------------------------------------------------------------- */

SHOWN int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	if (rc == 0 && clock == CLOCK_REALTIME && meant())
		now->tv_sec += faults->clock_s;
	return rc;
}

SHOWN time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out != NULL)
		*out = now.tv_sec;
	return now.tv_sec;
}

SHOWN int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec fine;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &fine);
	*now = (struct timeval){fine.tv_sec, fine.tv_nsec / 1000};
	return 0;
}

/* --- The log ---------------------------------------------------------------------------------------------------- */

static bool logging(void)
{
	if (!meant() || faults->log[0] == '\0')
		return false;
	if (log_fd < 0)
		log_fd = (int)syscall(SYS_openat, AT_FDCWD, faults->log, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
	return log_fd >= 0;
}

static void put_log(enum logged what, const struct stat *st, uint64_t offset, const char *name, const char *other,
		    const void *bytes, size_t length)
{
	struct logged_head head = {.what = what,
				   .name_length = (uint32_t)strlen(name),
				   .other_length = (uint32_t)strlen(other),
				   .inode = st == NULL ? 0 : st->st_ino,
				   .offset = offset,
				   .length = length};
	struct iovec parts[] = {{&head, sizeof head},
				{(char *)(uintptr_t)name, head.name_length},
				{(char *)(uintptr_t)other, head.other_length},
				{(void *)(uintptr_t)bytes, length}};

	if (syscall(SYS_writev, log_fd, parts, 4) !=
	    (long)(sizeof head + head.name_length + head.other_length + length))
		abort();
}

static const char *path_of(int fd, char out[PATH_MAX])
{
	char link[64];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, out, PATH_MAX - 1);

	out[length > 0 ? length : 0] = '\0';
	return out;
}

static const char *whole(int folder, const char *path, char out[PATH_MAX])
{
	char where[PATH_MAX] = "";

	if (path[0] == '/') {
		snprintf(out, PATH_MAX, "%s", path);
		return out;
	}
	if (folder != AT_FDCWD)
		path_of(folder, where);
	else if (getcwd(where, sizeof where) == NULL)
		abort();
	if (snprintf(out, PATH_MAX, "%s/%s", where, path) >= PATH_MAX)
		abort();
	return out;
}

static void log_write(int fd, off_t at, const void *bytes, long written)
{
	struct stat st;

	if (written > 0 && logging() && fstat(fd, &st) == 0)
		put_log(LOGGED_WRITE, &st, (uint64_t)at, "", "", bytes, (size_t)written);
}

static void log_sync(int fd)
{
	char path[PATH_MAX];
	struct stat st;

	if (logging() && fstat(fd, &st) == 0)
		put_log(LOGGED_SYNC, &st, S_ISDIR(st.st_mode), path_of(fd, path), "", NULL, 0);
}

static void log_names(enum logged what, int one, const char *path, int two, const char *other)
{
	char a[PATH_MAX], b[PATH_MAX];

	if (logging())
		put_log(what, NULL, 0, whole(one, path, a), other == NULL ? "" : whole(two, other, b), NULL, 0);
}

/* --- Contents --------------------------------------------------------------------------------------------------- */

static bool regular(int fd)
{
	struct stat st;
	int before = errno;
	bool answer = meant() && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

	errno = before;
	return answer;
}

/* Returns the offset at which write() stores its bytes: with O_APPEND the end of the file, else the file offset. */
static off_t position(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && (flags & O_APPEND) != 0 && fstat(fd, &st) == 0)
		return st.st_size;
	return lseek(fd, 0, SEEK_CUR);
}

static ssize_t write_at(const char *name, int fd, const void *bytes, size_t length, off_t at, bool placed)
{
	enum fault fault = next_fault(name, KIND_WRITE);

	if (refused(fault))
		return -1;
	off_t where = placed ? at : position(fd);
	long n = placed ? syscall(SYS_pwrite64, fd, bytes, torn(fault, length), at)
			: syscall(SYS_write, fd, bytes, torn(fault, length));

	log_write(fd, where, bytes, n);
	return done(fault, n);
}

/* Writes the parts of a vector. Copies them into one buffer first, so that the write can be shortened and logged like
 * any other write. */
static ssize_t vector_at(const char *name, int fd, const struct iovec *vector, int count, off_t at, bool placed)
{
	size_t length = 0, used = 0;

	for (int i = 0; i < count; i++)
		length += vector[i].iov_len;
	char *bytes = malloc(length + 1);

	if (bytes == NULL)
		abort();
	for (int i = 0; i < count; i++) {
		memcpy(bytes + used, vector[i].iov_base, vector[i].iov_len);
		used += vector[i].iov_len;
	}
	ssize_t n = write_at(name, fd, bytes, length, at, placed);

	free(bytes);
	return n;
}

SHOWN ssize_t write(int fd, const void *bytes, size_t length)
{
	return regular(fd) ? write_at("write", fd, bytes, length, 0, false) : syscall(SYS_write, fd, bytes, length);
}

SHOWN ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at)
{
	return regular(fd) ? write_at("pwrite", fd, bytes, length, at, true)
			   : syscall(SYS_pwrite64, fd, bytes, length, at);
}

SHOWN ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t at)
{
	return pwrite(fd, bytes, length, at);
}

SHOWN ssize_t writev(int fd, const struct iovec *vector, int count)
{
	return regular(fd) ? vector_at("writev", fd, vector, count, 0, false) : syscall(SYS_writev, fd, vector, count);
}

SHOWN ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t at)
{
	return regular(fd) ? vector_at("pwritev", fd, vector, count, at, true)
			   : syscall(SYS_pwritev, fd, vector, count, at, 0);
}

SHOWN ssize_t pwritev64(int fd, const struct iovec *vector, int count, off_t at)
{
	return pwritev(fd, vector, count, at);
}

SHOWN int ftruncate(int fd, off_t length)
{
	enum fault fault = next_fault("ftruncate", KIND_TAKES_ROOM);
	struct stat st;

	if (refused(fault))
		return -1;
	long rc = syscall(SYS_ftruncate, fd, length);

	if (rc == 0 && logging() && fstat(fd, &st) == 0)
		put_log(LOGGED_SIZE, &st, (uint64_t)length, "", "", NULL, 0);
	return (int)done(fault, rc);
}

SHOWN int ftruncate64(int fd, off_t length)
{
	return ftruncate(fd, length);
}

SHOWN int fallocate(int fd, int mode, off_t at, off_t length)
{
	enum fault fault = next_fault("fallocate", KIND_TAKES_ROOM);

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_fallocate, fd, mode, at, length));
}

static int sync_it(const char *name, int fd, long really)
{
	enum fault fault = next_fault(name, KIND_TAKES_NONE);

	if (!meant())
		return (int)syscall(really, fd);
	if (refused(fault))
		return -1;
	log_sync(fd);
	return (int)done(fault, 0);
}

SHOWN int fsync(int fd)
{
	return sync_it("fsync", fd, SYS_fsync);
}

SHOWN int fdatasync(int fd)
{
	return sync_it("fdatasync", fd, SYS_fdatasync);
}

SHOWN int msync(void *address, size_t length, int flags)
{
	enum fault fault = next_fault("msync", KIND_TAKES_NONE);

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_msync, address, length, flags));
}

SHOWN int fchmod(int fd, mode_t mode)
{
	enum fault fault = next_fault("fchmod", KIND_TAKES_NONE);

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_fchmod, fd, mode));
}

SHOWN int chmod(const char *path, mode_t mode)
{
	enum fault fault = next_fault("chmod", KIND_TAKES_NONE);

	return refused(fault) ? -1 : (int)done(fault, syscall(SYS_fchmodat, AT_FDCWD, path, mode));
}

/* --- Names ------------------------------------------------------------------------------------------------------ */

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
	bool changes = (flags & (O_CREAT | O_TRUNC)) != 0;
	enum fault fault = changes ? next_fault("open", KIND_TAKES_ROOM) : FAULT_NONE;
	struct stat before, st;
	char name[PATH_MAX];

	if (refused(fault))
		return -1;
	bool there = changes && fstatat(folder, path, &before, 0) == 0;
	long fd = syscall(SYS_openat, folder, path, flags, mode);
	int number = errno;

	if (changes && fd >= 0 && logging() && fstat((int)fd, &st) == 0 && S_ISREG(st.st_mode)) {
		if (!there)
			put_log(LOGGED_CREATE, &st, 0, path_of((int)fd, name), "", NULL, 0);
		else if ((flags & O_TRUNC) != 0)
			put_log(LOGGED_SIZE, &st, 0, "", "", NULL, 0);
	}
	errno = number;
	return (int)done(fault, fd);
}

static mode_t mode_in(int flags, va_list more)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

#define OPEN_WITH(folder)                                                                                              \
	va_list more;                                                                                                  \
	va_start(more, flags);                                                                                         \
	mode_t mode = mode_in(flags, more);                                                                            \
	va_end(more);                                                                                                  \
	return open_at(folder, path, flags, mode)

SHOWN int open(const char *path, int flags, ...)
{
	OPEN_WITH(AT_FDCWD);
}

SHOWN int open64(const char *path, int flags, ...)
{
	OPEN_WITH(AT_FDCWD);
}

SHOWN int openat(int folder, const char *path, int flags, ...)
{
	OPEN_WITH(folder);
}

SHOWN int openat64(int folder, const char *path, int flags, ...)
{
	OPEN_WITH(folder);
}

SHOWN int renameat2(int one, const char *from, int two, const char *to, unsigned flags)
{
	enum fault fault = next_fault("rename", KIND_TAKES_ROOM);

	if (refused(fault))
		return -1;
	long rc = syscall(SYS_renameat2, one, from, two, to, flags);

	if (rc == 0)
		log_names((flags & RENAME_EXCHANGE) != 0 ? LOGGED_EXCHANGE : LOGGED_RENAME, one, from, two, to);
	return (int)done(fault, rc);
}

SHOWN int renameat(int one, const char *from, int two, const char *to)
{
	return renameat2(one, from, two, to, 0);
}

SHOWN int rename(const char *from, const char *to)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

SHOWN int linkat(int one, const char *from, int two, const char *to, int flags)
{
	enum fault fault = next_fault("link", KIND_TAKES_ROOM);

	if (refused(fault))
		return -1;
	long rc = syscall(SYS_linkat, one, from, two, to, flags);

	if (rc == 0)
		log_names(LOGGED_LINK, one, from, two, to);
	return (int)done(fault, rc);
}

SHOWN int link(const char *from, const char *to)
{
	return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

SHOWN int unlinkat(int folder, const char *path, int flags)
{
	enum fault fault = next_fault("unlink", KIND_TAKES_NONE);

	if (refused(fault))
		return -1;
	long rc = syscall(SYS_unlinkat, folder, path, flags);

	if (rc == 0)
		log_names((flags & AT_REMOVEDIR) != 0 ? LOGGED_RMDIR : LOGGED_UNLINK, folder, path, 0, NULL);
	return (int)done(fault, rc);
}

SHOWN int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

SHOWN int rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

SHOWN int mkdirat(int folder, const char *path, mode_t mode)
{
	enum fault fault = next_fault("mkdir", KIND_TAKES_ROOM);

	if (refused(fault))
		return -1;
	long rc = syscall(SYS_mkdirat, folder, path, mode);

	if (rc == 0)
		log_names(LOGGED_FOLDER, folder, path, 0, NULL);
	return (int)done(fault, rc);
}

SHOWN int mkdir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}
