/* file - reads and replaces whole files.
 *
 * Opening a file never blocks: all functions reject pipes, devices and directories, even behind a symbolic link. A
 * function with a parameter `root` opens no file outside of that directory. */
#ifndef REFTEST_BASE_FILE_H
#define REFTEST_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

enum file_answer { FILE_ERROR = -1, FILE_ABSENT = 0, FILE_OK = 1 };

/* Reads the regular file `path` and replaces the contents of `out`. `path` is relative to the directory descriptor
 * `dir` (AT_FDCWD for the working directory). If the file has more than `limit` bytes, returns FILE_ERROR, and the
 * message gives the file's size and the limit. If `st` is not NULL, calls fstat before the first read and stores the
 * result in `st`. If `path` is not a regular file, returns FILE_ERROR. If there is no file `path`, returns FILE_ABSENT
 * without a message. */
enum file_answer file_read(int dir, const char *path, size_t limit, struct buf *out, struct stat *st, struct err *err);

/* Writes all bytes to a descriptor, which may be a pipe or a socket. Returns false and sets errno on error. If the
 * process ignores SIGPIPE, a write to a pipe without a reader is also an error. */
bool file_write_all(int fd, const void *bytes, size_t length);

/* Returns true if every later change to the contents of the file `path` also changes one of the file's timestamps. A
 * write through a shared mapping changes a timestamp only if the page is clean. Further writes to the same page, which
 * is then dirty, leave the timestamps unchanged. The function therefore returns false while any process has the file
 * open or mapped for writing. To find out whether a process has the file open for writing, the function briefly takes a
 * read lease. The kernel grants a read lease only if no process has the file open for writing. The kernel may also
 * refuse the lease because the file belongs to another user or the filesystem has no leases. In this case, the function
 * writes out the dirty pages, which makes them clean. On a filesystem in memory (tmpfs, ramfs, hugetlbfs), a write
 * through a shared mapping may leave the timestamps unchanged even if the page is clean, so the function returns false
 * for every file there. Stores the file's stat in `st`. */
bool file_shows_changes(int dir, const char *path, struct stat *st);

/* Replaces the contents of the file `path` with `bytes`, unless the file already has these contents. Writes a temporary
 * file in the same directory, syncs it, and renames it to `path`. Returns 1 if the file was replaced. Returns 0 if the
 * file already had these contents; its mtime then stays the same. Returns -1 on error; the old file then stays in
 * place. Creates missing parent directories. The file keeps its permissions. If `path` is a symbolic link, the new file
 * replaces the link and not the target of the link. If a process is killed, the next process that replaces the same
 * file removes the leftover temporary file. */
int file_replace(const char *path, const void *bytes, size_t length, struct err *err);

/* Replaces a file as file_replace does, but without fsync. A power failure soon afterwards may therefore lose all or
 * part of the file. Use this function only for files that can be generated again. */
int file_replace_soon(const char *path, const void *bytes, size_t length, struct err *err);

/* The same as file_replace, for an executable file. The temporary file has mode 0755 before it is renamed to `path`, so
 * no process finds `path` without execute permission. A file that already has these contents keeps its mode. */
int file_replace_program(const char *path, const void *bytes, size_t length, struct err *err);

/* Opens a file below the directory `root` (a descriptor) for reading; the caller closes `fd`. Returns FILE_ERROR with a
 * message if `path` is absolute or contains "..", or if a symbolic link in it leads out of `root`. Stores the file's
 * stat in `st`. If there is no file `path`, returns FILE_ABSENT without a message. */
enum file_answer file_open_beneath(int root, const char *path, int *fd, struct stat *st, struct err *err);

/* Opens a file like file_open_beneath, but follows no symbolic link at all. `path` must contain neither "." nor
 * "..". */
enum file_answer file_open_without_links(int root, const char *path, int *fd, struct stat *st, struct err *err);

/* file_digest_open and file_digest_beneath read a file chunk by chunk and compute the digest of its bytes.
 * file_digest_open reads the open file `fd`, and returns false in the same cases as file_read_at. file_digest_beneath
 * opens the file like file_open_beneath. file_digest_beneath also returns FILE_ERROR if another process truncates the
 * file during the call. */
bool file_digest_open(int fd, int64_t size, struct digest *out);
enum file_answer file_digest_beneath(int root, const char *path, struct digest *out, struct stat *st, struct err *err);

/* Reads exactly `length` bytes at `offset`. Returns false after a read error, or if the file ends before `offset +
 * length`. */
bool file_read_at(int fd, void *to, size_t length, int64_t offset);

/* Reads `length` bytes that begin at `offset`. Reads them in chunks into a private buffer, and calls `visit` for each
 * chunk. Returns false in the same cases as file_read_at. */
typedef void file_visit(const unsigned char *bytes, size_t length, void *context);
bool file_each_part(int fd, int64_t offset, int64_t length, file_visit *visit, void *context);

/* Opens a file like file_open_beneath and maps it. The caller unmaps it with file_unmap. If another process truncates
 * the file, a read of the mapping raises SIGBUS. If another process writes to the file, the mapping shows the changes.
 * Map an untrusted file only where SIGBUS and changing contents do no harm. */
struct mapping {
	const unsigned char *data; /* NULL if length is 0 */
	size_t length;
	struct stat st;
};
enum file_answer file_map_beneath(int root, const char *path, struct mapping *out, struct err *err);
void file_unmap(struct mapping *mapping);

/* Writes to `out` the path of the directory that contains this program's binary, without a trailing slash. */
int file_program_directory(char *out, size_t size, struct err *err);

#endif
