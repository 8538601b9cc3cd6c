#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Without O_NONBLOCK, opening a pipe that has no writer would block forever. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static enum file_answer fail(struct err *err, const char *path, const char *doing)
{
	err_errno(err, "%s: cannot %s", path, doing);
	return FILE_ERROR;
}

static bool is_absent(int number)
{
	return number == ENOENT || number == ENOTDIR;
}

static enum file_answer stat_regular(int fd, const char *path, struct stat *st, struct err *err)
{
	if (fstat(fd, st) != 0)
		return fail(err, path, "stat the file");
	if (S_ISREG(st->st_mode))
		return FILE_OK;
	err_set(err, "%s: expected a file, found %s", path,
	        S_ISDIR(st->st_mode)    ? "a folder"
	        : S_ISFIFO(st->st_mode) ? "a pipe"
	        : S_ISSOCK(st->st_mode) ? "a socket"
	                                : "a device");
	return FILE_ERROR;
}

/* --- reading ------------------------------------------------------------------------------------------------- */

static enum file_answer too_large(const char *path, uintmax_t bytes, size_t limit, struct err *err)
{
	err_set(err, "%s: the file has %ju bytes, more than the limit of %zu", path, bytes, limit);
	return FILE_ERROR;
}

/* Reads to the end of the file and not only to the size in `st`, because the file may have grown since fstat. */
static enum file_answer read_all(int fd, const char *path, const struct stat *st, size_t limit, struct buf *out,
                                 struct err *err)
{
	size_t hint = (size_t)st->st_size + 1;

	for (;;) {
		buf_reserve(out, out->length < hint ? hint - out->length : 64 * 1024);
		ssize_t n = read(fd, out->data + out->length, out->room - out->length - 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(err, path, "read");
		out->length += (size_t)n;
		out->data[out->length] = '\0';
		if (out->length > limit)
			return too_large(path, out->length, limit, err);
		if (n == 0)
			return FILE_OK;
	}
}

static enum file_answer read_open(int fd, const char *path, size_t limit, struct buf *out, struct stat *st,
                                  struct err *err)
{
	enum file_answer answer = stat_regular(fd, path, st, err);

	if (answer != FILE_OK)
		return answer;
	if ((uintmax_t)st->st_size > limit)
		return too_large(path, (uintmax_t)st->st_size, limit, err);
	return read_all(fd, path, st, limit, out, err);
}

enum file_answer file_read(int dir, const char *path, size_t limit, struct buf *out, struct stat *st, struct err *err)
{
	struct stat ignored;
	int fd = openat(dir, path, OPEN_FLAGS);

	buf_clear(out);
	if (fd < 0 && is_absent(errno))
		return FILE_ABSENT;
	if (fd < 0)
		return fail(err, path, "open the file");
	enum file_answer answer = read_open(fd, path, limit, out, st == NULL ? &ignored : st, err);

	close(fd);
	if (answer != FILE_OK)
		buf_clear(out);
	return answer;
}

/* Returns true if the kernel grants a read lease on the file. The kernel grants a lease only if no process has the file
 * open for writing. If another process opens the file for writing during the lease, its open() blocks until this
 * function releases the lease. The kernel then also sends SIGURG to the process that has the lease; the default action
 * of SIGURG is to do nothing. */
static bool lease_granted(int fd)
{
	if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
		return false;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return true;
}

/* Returns whether the filesystem keeps files only in memory. Such a filesystem never writes pages out. A page that was
 * first read through a writable shared mapping can therefore be written later without a change of any timestamp. */
static bool is_in_memory(const struct statfs *fs)
{
	return fs->f_type == TMPFS_MAGIC || fs->f_type == RAMFS_MAGIC || fs->f_type == HUGETLBFS_MAGIC;
}

bool file_shows_changes(int dir, const char *path, struct stat *st)
{
	int fd = openat(dir, path, OPEN_FLAGS);
	struct statfs fs;
	bool shows = fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode) && fstatfs(fd, &fs) == 0 && !is_in_memory(&fs);

	/* EAGAIN means that a process has the file open for writing. */
	if (shows && !lease_granted(fd))
		shows = errno != EAGAIN &&
		        sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
		                                      SYNC_FILE_RANGE_WAIT_AFTER) == 0;
	/* On overlayfs, a write through a shared mapping goes to a file in the underlying layer, and a lease on the
	 * overlay's file does not detect it. */
	if (shows && fs.f_type == OVERLAYFS_SUPER_MAGIC)
		shows = fdatasync(fd) == 0;
	if (fd >= 0)
		close(fd);
	return shows;
}

/* --- replacing ----------------------------------------------------------------------------------------------- */

/* Creates the missing parent directories of the file `path`. */
static int make_parents(const char *path, struct err *err)
{
	struct buf folder = {0};
	int answer = 0;

	buf_text(&folder, path);
	for (char *slash = strchr(folder.data + 1, '/'); slash != NULL && answer == 0; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(folder.data, 0777) != 0 && errno != EEXIST)
			answer = err_errno(err, "%s: cannot create the folder", folder.data);
		*slash = '/';
	}
	buf_free(&folder);
	return answer;
}

/* Writes the path of a temporary file in the directory of `path`. The file is hidden, so that a listing of the
 * directory ignores it. If `first` is true, the name depends only on `path`. The next process that replaces `path` can
 * thus find and remove the file that a killed process left behind. If `first` is false, the name is random. */
static int temporary_name(const char *path, bool first, struct buf *out, struct err *err)
{
	const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
	struct digest digest = digest_of(name, strlen(name));
	uint64_t number;

	memcpy(&number, digest.bytes, sizeof number);
	if (!first && getrandom(&number, sizeof number, 0) != sizeof number)
		return err_errno(err, "%s: cannot choose a random name for a temporary file", path);
	buf_clear(out);
	buf_add(out, path, (size_t)(name - path));
	buf_printf(out, ".reftest-%016llx.tmp", (unsigned long long)number);
	return 0;
}

/* Locks the temporary file. The lock marks the file as in use. Returns false if another process has the lock, or if
 * `name` no longer refers to this file. Returns true on a filesystem without locks, because no process can have locked
 * the file.
 * */
static bool hold(int fd, const char *name)
{
	struct stat held, named;

	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return errno != EWOULDBLOCK;
	return fstat(fd, &held) == 0 && lstat(name, &named) == 0 && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

/* Removes a temporary file that a killed process left behind. Does not remove a temporary file that a process still
 * uses. */
static void remove_left(const char *name)
{
	int fd = open(name, OPEN_FLAGS | O_NOFOLLOW);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && hold(fd, name))
		unlink(name);
	if (fd >= 0)
		close(fd);
}

/* Tries to create the temporary file under one name. Returns a locked descriptor, or -1 with errno. EEXIST means that
 * the caller should try another name. */
static int try_temporary(const char *path, bool first, struct buf *name, struct err *err)
{
	enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY };

	if (temporary_name(path, first, name, err) != 0)
		return -1;
	int fd = open(name->data, FLAGS, 0666);

	if (fd < 0 && errno == EEXIST && first) {
		remove_left(name->data);
		fd = open(name->data, FLAGS, 0666);
	}
	/* hold() fails if another process mistook the new file for a leftover and removed it before this process
	 * locked it. */
	if (fd >= 0 && !hold(fd, name->data)) {
		close(fd);
		errno = EEXIST;
		fd = -1;
	}
	return fd;
}

static int create_temporary(const char *path, struct buf *name, struct err *err)
{
	bool parents = false;

	for (int attempt = 0; attempt < 8; attempt++) {
		int fd = try_temporary(path, attempt == 0, name, err);

		if (fd >= 0)
			return fd;
		if (errno == ENOENT && !parents) {
			if (make_parents(path, err) != 0)
				return -1;
			parents = true;
			attempt--;
		} else if (errno != EEXIST) {
			break;
		}
	}
	return err_errno(err, "%s: cannot create a temporary file in the same folder", path);
}

bool file_write_all(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length > 0) {
		ssize_t wrote = write(fd, at, length);

		if (wrote < 0 && errno != EINTR)
			return false;
		at += wrote > 0 ? wrote : 0;
		length -= wrote > 0 ? (size_t)wrote : 0;
	}
	return true;
}

struct wanted {
	bool durable; /* fsync before the rename */
	mode_t mode;  /* 0: the process's default */
};

/* Writes the contents of the temporary file and closes `fd`. */
static int fill_temporary(int fd, const char *path, const void *bytes, size_t length, struct wanted wanted,
                          struct err *err)
{
	int answer = 0;

	if (!file_write_all(fd, bytes, length))
		answer = err_errno(err, "%s: cannot write the file", path);
	else if (wanted.mode != 0 && fchmod(fd, wanted.mode) != 0)
		answer = err_errno(err, "%s: cannot set the permissions of the new file", path);
	else if (wanted.durable && fsync(fd) != 0)
		answer = err_errno(err, "%s: cannot write to the disk", path);
	if (close(fd) != 0 && answer == 0)
		answer = err_errno(err, "%s: cannot write the file", path);
	return answer;
}

/* Compares the contents of an existing file with `bytes`. If the file exists, returns FILE_OK, stores the file's stat
 * in `st`, and sets `same` to whether the contents equal `bytes`. */
static enum file_answer compare_with(const char *path, const void *bytes, size_t length, struct stat *st, bool *same,
                                     struct err *err)
{
	struct buf old = {0};
	int fd = open(path, OPEN_FLAGS);

	*same = false;
	if (fd < 0 && is_absent(errno))
		return FILE_ABSENT;
	if (fd < 0)
		return fail(err, path, "open the file");
	enum file_answer answer = stat_regular(fd, path, st, err);

	if (answer == FILE_OK && (uintmax_t)st->st_size == length)
		answer = read_all(fd, path, st, length + 1, &old, err);
	*same = answer == FILE_OK && old.data != NULL && old.length == length && memcmp(old.data, bytes, length) == 0;
	close(fd);
	buf_free(&old);
	return answer;
}

static int replace(const char *path, const void *bytes, size_t length, struct wanted wanted, struct err *err)
{
	struct buf name = {0};
	struct stat st;
	bool same;
	enum file_answer there = compare_with(path, length == 0 ? "" : bytes, length, &st, &same, err);

	if (there == FILE_ERROR)
		return -1;
	if (same)
		return 0;
	int fd = create_temporary(path, &name, err), answer = -1;

	if (fd >= 0) {
		int held = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the duplicate descriptor keeps the lock until the rename */

		if (wanted.mode == 0 && there == FILE_OK)
			wanted.mode = st.st_mode & 0777;
		answer = fill_temporary(fd, path, bytes, length, wanted, err);
		if (answer == 0 && rename(name.data, path) != 0)
			answer = err_errno(err, "%s: cannot replace the file", path);
		if (answer != 0)
			unlink(name.data);
		if (held >= 0)
			close(held);
	}
	buf_free(&name);
	return answer == 0 ? 1 : -1;
}

int file_replace(const char *path, const void *bytes, size_t length, struct err *err)
{
	return replace(path, bytes, length, (struct wanted){.durable = true}, err);
}

int file_replace_soon(const char *path, const void *bytes, size_t length, struct err *err)
{
	return replace(path, bytes, length, (struct wanted){.durable = false}, err);
}

int file_replace_program(const char *path, const void *bytes, size_t length, struct err *err)
{
	return replace(path, bytes, length, (struct wanted){.durable = true, .mode = 0755}, err);
}

/* --- files below a root -------------------------------------------------------------------------------------- */

static int leaves_root(const char *path, struct err *err)
{
	return err_set(err, "%s: the path leads out of the dataset's folder; "
	               "move the file into that folder and use a path relative to it",
	               path);
}

/* Returns 0 if the path is relative and not empty, and has no ".." component. */
static int check_lexically(const char *path, struct err *err)
{
	if (*path == '\0')
		return err_set(err, "expected the path of a file, found an empty string");
	if (*path == '/')
		return leaves_root(path, err);
	for (const char *at = path; at != NULL; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
			return leaves_root(path, err);
	}
	return 0;
}

/* Opens a path with openat2, so the kernel itself rejects a path that leads out of `root`. Returns -1 with errno on
 * failure. */
static int open_by_kernel(int root, const char *path)
{
	struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	long fd;

	do
		fd = syscall(SYS_openat2, root, path, &how, sizeof how);
	while (fd < 0 && (errno == EINTR || errno == EAGAIN)); /* EAGAIN: a directory was renamed during the open */
	return (int)fd;
}

/* Opens one component of a path. Fails with ELOOP if the component is a symbolic link, even if a directory is
 * expected. */
static int open_step(int dir, const char *name, bool folder)
{
	struct stat st;
	int fd = openat(dir, name, OPEN_FLAGS | O_NOFOLLOW | (folder ? O_DIRECTORY : 0));

	if (fd < 0 && errno == ENOTDIR)
		errno = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
	return fd;
}

/* Opens a path on kernels before 5.6 and in sandboxes without openat2. Opens one component of the path at a time.
 * Follows no symbolic link, because the target of a link could change between the check and the open. `path` has no
 * "..". Returns -1 with errno on failure. */
static int open_by_steps(int root, const char *path)
{
	char name[NAME_MAX + 1];
	int dir = open_step(root, ".", true);

	while (dir >= 0 && *path != '\0') {
		size_t length = strcspn(path, "/"), slashes = strspn(path + length, "/");
		int fd = -1;

		memcpy(name, path, length <= NAME_MAX ? length : 0);
		name[length <= NAME_MAX ? length : 0] = '\0';
		errno = ENAMETOOLONG;
		if (length <= NAME_MAX)
			fd = open_step(dir, name, slashes > 0);
		int number = errno;

		close(dir);
		errno = number;
		dir = fd;
		path += length + slashes;
	}
	return dir;
}

static int open_beneath(int root, const char *path)
{
	int fd = open_by_kernel(root, path);

	return fd < 0 && (errno == ENOSYS || errno == EPERM) ? open_by_steps(root, path) : fd;
}

static enum file_answer map_open(int fd, const char *path, struct mapping *out, struct err *err)
{
	if (out->st.st_size == 0)
		return FILE_OK;
	if ((uintmax_t)out->st.st_size > SIZE_MAX) {
		err_set(err, "%s: the file is too large to be mapped into memory", path);
		return FILE_ERROR;
	}
	void *data = mmap(NULL, (size_t)out->st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (data == MAP_FAILED)
		return fail(err, path, "map the file");
	out->data = data;
	out->length = (size_t)out->st.st_size;
	return FILE_OK;
}

/* Passes `fd` on to the caller if it is a regular file; otherwise closes `fd`. */
static enum file_answer opened(int fd, const char *path, int *out, struct stat *st, struct err *err)
{
	enum file_answer answer = fd < 0 ? fail(err, path, "open the file") : stat_regular(fd, path, st, err);

	if (answer == FILE_OK)
		*out = fd;
	else if (fd >= 0)
		close(fd);
	return answer;
}

enum file_answer file_open_beneath(int root, const char *path, int *out, struct stat *st, struct err *err)
{
	*out = -1;
	if (check_lexically(path, err) != 0)
		return FILE_ERROR;
	int fd = open_beneath(root, path);

	if (fd < 0 && is_absent(errno))
		return FILE_ABSENT;
	if (fd < 0 && errno == EXDEV) {
		err_set(err, "%s: a symbolic link in the path leads out of the dataset's folder; replace the link with the file itself",
		        path);
		return FILE_ERROR;
	}
	if (fd < 0 && errno == ELOOP) {
		err_set(err, "%s: a symbolic link in the path cannot be followed; replace the link with the file itself", path);
		return FILE_ERROR;
	}
	return opened(fd, path, out, st, err);
}

enum file_answer file_open_without_links(int root, const char *path, int *out, struct stat *st, struct err *err)
{
	*out = -1;
	if (check_lexically(path, err) != 0)
		return FILE_ERROR;
	int fd = open_by_steps(root, path);

	if (fd < 0 && is_absent(errno))
		return FILE_ABSENT;
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR || errno == EXDEV)) {
		err_set(err, "%s: the path contains a symbolic link; replace the link with the file itself", path);
		return FILE_ERROR;
	}
	return opened(fd, path, out, st, err);
}

bool file_read_at(int fd, void *to, size_t length, int64_t offset)
{
	unsigned char *at = to;

	while (length > 0) {
		ssize_t n = pread(fd, at, length, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		length -= (size_t)n;
		offset += n;
	}
	return true;
}

bool file_each_part(int fd, int64_t offset, int64_t length, file_visit *visit, void *context)
{
	enum { PART = 1 << 20 }; /* small enough to stay in the CPU cache */
	unsigned char *part = malloc(length < PART ? (size_t)length + 1 : PART);
	bool read = true;

	if (part == NULL)
		die_no_memory();
	for (int64_t n; read && length > 0; length -= n, offset += n) {
		n = length < PART ? length : PART;
		read = file_read_at(fd, part, (size_t)n, offset);
		if (read)
			visit(part, (size_t)n, context);
	}
	free(part);
	return read;
}

static void hash_part(const unsigned char *bytes, size_t length, void *hash)
{
	hash_add(hash, bytes, length);
}

bool file_digest_open(int fd, int64_t length, struct digest *out)
{
	struct hash *hash = hash_begin();
	bool read = file_each_part(fd, 0, length, hash_part, hash);

	*out = hash_end(hash);
	return read;
}

enum file_answer file_digest_beneath(int root, const char *path, struct digest *out, struct stat *st, struct err *err)
{
	int fd;
	enum file_answer answer = file_open_beneath(root, path, &fd, st, err);

	if (answer != FILE_OK)
		return answer;
	if (!file_digest_open(fd, st->st_size, out)) {
		err_set(err, "%s: cannot read the file, or it was truncated while it was read", path);
		answer = FILE_ERROR;
	}
	close(fd);
	return answer;
}

enum file_answer file_map_beneath(int root, const char *path, struct mapping *out, struct err *err)
{
	int fd;

	*out = (struct mapping){0};
	enum file_answer answer = file_open_beneath(root, path, &fd, &out->st, err);

	if (answer != FILE_OK)
		return answer;
	answer = map_open(fd, path, out, err);
	close(fd);
	return answer;
}

void file_unmap(struct mapping *mapping)
{
	if (mapping->data != NULL)
		munmap((void *)mapping->data, mapping->length);
	*mapping = (struct mapping){0};
}

/* --- this program -------------------------------------------------------------------------------------------- */

int file_program_directory(char *out, size_t size, struct err *err)
{
	ssize_t length = readlink("/proc/self/exe", out, size);

	if (length < 0)
		return err_errno(err, "/proc/self/exe: cannot find the path of this program");
	char *slash = (size_t)length < size ? memrchr(out, '/', (size_t)length) : NULL;

	if (slash == NULL)
		return err_set(err, "/proc/self/exe: the path of this program is longer than %zu bytes", size);
	*(slash == out ? slash + 1 : slash) = '\0';
	return 0;
}
