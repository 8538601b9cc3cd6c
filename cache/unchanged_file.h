/* unchanged_file - finds out, without reading a file, whether the file still has the content that an earlier run read.
 *
 * A file counts as unchanged if it has the same stat (inode, size, mtime, ctime) as in the earlier run, and if this
 * stat can be trusted. A stat can be trusted if every write after the earlier read would have changed it. Two kinds of
 * write can leave a stat unchanged:
 * - a write within the same tick of the filesystem's clock as the read (git calls such an entry "racily clean"),
 * - a write through a shared mapping whose pages were already dirty, and on tmpfs any write through a shared mapping
 *   (file_shows_changes in base/file.h).
 * A file whose stat cannot be trusted is read again. */
#ifndef REFTEST_CACHE_UNCHANGED_FILE_H
#define REFTEST_CACHE_UNCHANGED_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "dataset/dataset.h"

struct file_seen {
	struct file_stat stat;
	int64_t read_ns; /* wall-clock time just before the file was read; 0: the stat is never trusted */
	struct digest content;
	struct object_name object; /* git's object id of this content, if git's index had an entry for this path */
};

/* A stat is trusted only if the file was last changed at least this many milliseconds before it was read. */
enum { UNCHANGED_FILE_RACY_MS = 2000 };

/* Returns true if a file that now has the stat `now` certainly still has the content that `seen` records. */
bool file_seen_holds(const struct file_seen *seen, const struct file_stat *now);

/* Returns whether `earlier` proves that the file `path` in the directory `dir` has `content`. `earlier` is NULL if
 * nothing is known about the file. If the file exists and `content` is the digest in `earlier`, sets `seen` to the
 * present stat of the file and to the time of the read in `earlier`. */
bool file_seen_proves(int dir, const char *path, const struct file_seen *earlier, const struct digest *content,
		      struct file_seen *seen);

/* What file_reading_begin collects just before a file is read. */
struct file_reading {
	int64_t ns;
	bool shows; /* true if every later change of the file will change its stat */
	struct stat st;
};
struct file_reading file_reading_begin(int dir, const char *path);

/* Returns the time of the read, for file_seen.read_ns. `st` is the stat of the file that was read. Returns 0 if a
 * change of the file may leave its stat unchanged, or if `st` differs from the stat that file_reading_begin found. */
int64_t file_reading_time(const struct file_reading *reading, const struct stat *st);

#endif
