/* file - whole files in, whole files out.
 *
 * Opening never blocks and never follows a stranger out of a root: pipes, devices and folders are refused, whatever
 * name they hide behind. */
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

/* Reads the regular file `path`, relative to the directory descriptor `dir` (AT_FDCWD for the working directory),
 * into `out` (replaced). More than `limit` bytes is an error that names both figures. `st`, if not NULL, gets the
 * fstat taken before the first byte was read. Not a regular file: FILE_ERROR. FILE_ABSENT leaves no sentence. */
enum file_answer file_read(int dir, const char *path, size_t limit, struct buf *out, struct stat *st, struct err *err);

/* Will each later change of the file that `path` names move a time of it? A store through a shared mapping does so only if its
 * page was clean: one that somebody has dirtied can be written again and again without a trace. So: false while anybody has
 * the file open or mapped for writing. Asked by taking a read lease for a moment, which the kernel grants only then; where it
 * grants none to us (another's file, a filesystem without leases), by writing dirty pages out, after which they are clean.
 * Holds for what is read of the file from now on, and for changes made from now on; `st` tells which file it is true of. */
bool file_shows_changes(int dir, const char *path, struct stat *st);

/* Makes `path` hold these bytes by temporary file, fsync and rename in the same directory, only if they differ.
 * 1: replaced, 0: it held them already (mtime untouched), -1: error, and the old file is as it was. Missing parent
 * directories are made. A file keeps its permissions; a symbolic link is replaced by a file. What a process that was killed
 * left of its temporary file is removed by the next that replaces the same file. */
int file_replace(const char *path, const void *bytes, size_t length, struct err *err);

/* The same without fsync, for what can be made again: a power cut soon after may leave of it nothing, or a part. */
int file_replace_soon(const char *path, const void *bytes, size_t length, struct err *err);

/* The same as file_replace for a program: of mode 0755 from the first, so that it is never there and cannot be run. (Of a
 * file that holds these bytes already nothing is changed, its mode neither.) */
int file_replace_program(const char *path, const void *bytes, size_t length, struct err *err);

/* A whole file below the directory `root` (a descriptor), open to be read: the caller closes `fd`. `path` must be relative and
 * without "..", and no symbolic link on the way may leave `root`: such a path is FILE_ERROR with a sentence. `st` is taken
 * before the first byte is read. FILE_ABSENT leaves no sentence. */
enum file_answer file_open_beneath(int root, const char *path, int *fd, struct stat *st, struct err *err);

/* The digest of the bytes that the file had when it was opened, read a part at a time. FILE_ERROR as well if it became shorter
 * meanwhile. */
enum file_answer file_digest_beneath(int root, const char *path, struct digest *out, struct stat *st, struct err *err);

/* Reads exactly `length` bytes at `offset`. false: it cannot be read there, or ends before. */
bool file_read_at(int fd, void *to, size_t length, int64_t offset);

/* Goes over `length` bytes from `offset` on, read a part at a time into memory of our own. false as file_read_at. */
typedef void file_visit(const unsigned char *bytes, size_t length, void *context);
bool file_each_part(int fd, int64_t offset, int64_t length, file_visit *visit, void *context);

/* The same as file_open_beneath, mapped; unmap with file_unmap. (Who truncates the file while it is mapped makes the reader
 * fault, and each store to it shows: map strangers' files only where that is no harm.) */
struct mapping {
	const unsigned char *data; /* NULL when length is 0 */
	size_t length;
	struct stat st;
};
enum file_answer file_map_beneath(int root, const char *path, struct mapping *out, struct err *err);
void file_unmap(struct mapping *mapping);

/* The directory that this program's binary lies in, into `out` (no trailing slash). */
int file_program_directory(char *out, size_t size, struct err *err);

#endif
