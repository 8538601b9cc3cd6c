#include "engine/disk_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "dataset/workload.h"
#include "dataset/lfs_pointer.h"
#include "dataset/safetensors.h"

void blob_refuse_large(struct blob *blob, int64_t size, struct arena *arena)
{
	if (blob->use != BLOB_TENSORS && size > READ_FILE_BYTES)
		blob->bad = arena_printf(arena, "%s: the file has %lld bytes, more than the limit of %d for files in \"reads\"",
					 blob->path, (long long)size, READ_FILE_BYTES);
}

static bool holds(void *self, const struct dataset_file *file, const struct file_seen *earlier)
{
	const struct dataset *dataset = self;

	return !dataset->some && file_seen_holds(earlier, &file->stat);
}

static int read_file(void *self, const struct dataset_file *file, size_t limit, struct buf *bytes, struct stat_check *out,
		     struct err *err)
{
	const struct dataset *dataset = self;
	struct stat st;
	struct file_reading reading = file_reading_begin(dataset->fd, file->path);
	enum file_answer answer = file_read(dataset->fd, file->path, limit, bytes, &st, err);

	out->absent = answer == FILE_ABSENT;
	if (out->absent)
		return err_set(err, "%s: the file was removed before it could be read; run reftest again", file->path);
	if (answer != FILE_OK)
		return -1;
	out->seen.stat = file_stat_of(&st);
	out->seen.read_ns = file_reading_time(&reading, &st);
	return 0;
}

bool disk_holds(int dir, const char *path, const struct file_seen *earlier, const struct digest *content,
		struct file_seen *seen)
{
	struct digest now;
	struct stat st;

	if (file_seen_proves(dir, path, earlier, content, seen))
		return true;
	struct file_reading reading = file_reading_begin(dir, path);

	if (file_digest_beneath(dir, path, &now, &st, NULL) != FILE_OK)
		return false;
	seen->stat = file_stat_of(&st);
	seen->read_ns = file_reading_time(&reading, &st);
	return digest_equal(&now, content);
}

static bool unchanged(void *self, const struct dataset_file *file, const struct file_seen *earlier,
		      const struct digest *content)
{
	const struct dataset *dataset = self;
	struct file_seen seen;
	struct buf bytes = {0};

	if (file_seen_proves(dataset->fd, file->path, earlier, content, &seen))
		return true;
	/* This call follows links that lead out of the dataset, as read_file does, because folders of op types may be
	 * links. */
	bool read = file_read(dataset->fd, file->path, WORKLOAD_BYTES, &bytes, NULL, NULL) == FILE_OK;
	struct digest now = digest_of(bytes.data, bytes.length);

	buf_free(&bytes);
	return read && digest_equal(&now, content);
}

/* Opens a file that a reference reads. If the file cannot be opened, or if references may not read it, writes the
 * reason to the blob. */
static int open_declared(int dir, struct blob *blob, struct stat *st, struct arena *arena)
{
	char head[LFS_POINTER_HEAD];
	struct err err = {""};
	int fd;
	enum file_answer answer = file_open_without_links(dir, blob->path, &fd, st, &err);

	if (answer == FILE_ABSENT)
		err_set(&err, "%s: the file does not exist, but the definition lists it in \"reads\"", blob->path);
	if (answer != FILE_OK) {
		blob->bad = arena_string(arena, err.text);
		return -1;
	}
	if (st->st_size >= (int64_t)sizeof head && file_read_at(fd, head, sizeof head, 0) &&
	    lfs_pointer_begins(head, sizeof head))
		blob->missing = arena_printf(arena, "%s: this file is a Git LFS pointer; fetch its content with: %s",
					     blob->path, lfs_fetch_command(arena, blob->path));
	return fd;
}

/* Checks and hashes a file that a definition lists in "reads". */
static void read_declared(int dir, struct blob *blob, struct arena *arena, struct file_seen *seen, bool *read)
{
	struct stat st;
	struct file_reading reading = file_reading_begin(dir, blob->path);
	int fd = open_declared(dir, blob, &st, arena);

	if (fd >= 0 && blob->missing == NULL) {
		blob_refuse_large(blob, st.st_size, arena);
		*read = blob->bad == NULL && file_digest_open(fd, st.st_size, &blob->content);
		if (!*read && blob->bad == NULL)
			blob->bad = arena_printf(arena, "%s: the file cannot be read, or it was truncated during the read",
						 blob->path);
		blob->stat = file_stat_of(&st);
		blob->read_ns = file_reading_time(&reading, &st);
		*seen = (struct file_seen){.stat = blob->stat, .read_ns = blob->read_ns, .content = blob->content};
	}
	if (fd >= 0)
		close(fd);
}

/* Reads, checks and hashes a tensor file. */
static void read_blob(int dir, struct blob *blob, struct arena *arena, struct file_seen *seen, bool *read)
{
	struct safetensors file;
	struct err err = {""};
	struct file_reading reading = file_reading_begin(dir, blob->path);
	enum safetensors_answer answer = safetensors_open(dir, blob->path, arena, &file, &err);

	if (answer == SAFETENSORS_MISSING || answer == SAFETENSORS_POINTER)
		blob->missing = arena_string(arena, err.text);
	else if (answer != SAFETENSORS_OK)
		blob->bad = arena_string(arena, err.text);
	if (answer != SAFETENSORS_OK)
		return;
	*read = safetensors_digest(&file, &blob->content, NULL);
	blob->stat = file_stat_of(&file.st);
	blob->read_ns = file_reading_time(&reading, &file.st);
	safetensors_close(&file);
	if (!*read)
		blob->missing = arena_printf(arena, "%s: the file cannot be read, or it was truncated during the read",
					     blob->path);
	*seen = (struct file_seen){.stat = blob->stat, .read_ns = blob->read_ns, .content = blob->content};
}

struct blob disk_blob(int dir, enum blob_use use, const char *path, const struct file_seen *earlier, struct arena *arena,
		      struct file_seen *seen, bool *read)
{
	struct blob blob = {.use = use, .path = arena_string(arena, path)};
	struct stat st;

	if (earlier != NULL && fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
		struct file_stat now = file_stat_of(&st);

		if (file_seen_holds(earlier, &now)) {
			blob.content = earlier->content;
			blob.stat = now;
			blob.read_ns = earlier->read_ns;
			blob_refuse_large(&blob, (int64_t)now.size, arena);
			return blob;
		}
	}
	(use != BLOB_TENSORS ? read_declared : read_blob)(dir, &blob, arena, seen, read);
	return blob;
}

static struct blob blob_at(void *self, enum blob_use use, const char *path, const struct file_seen *earlier, bool to_run, struct arena *arena,
			   struct file_seen *seen, bool *read)
{
	const struct dataset *dataset = self;

	(void)to_run; /* a case reads the file itself when it runs, so no copy is needed */
	return disk_blob(dataset->fd, use, path, earlier, arena, seen, read);
}

/* Returns whether size, mtime and ctime are equal. The judge reads a tensor file by its path when the case runs. If the
 * file was replaced and then restored between the two stats, its size and mtime may be the same again, but its ctime
 * differs. Inode numbers are not compared, because they may change at any time on a FUSE filesystem. */
static bool same_times(const struct file_stat *then, const struct file_stat *now)
{
	return then->size == now->size && then->mtime_ns == now->mtime_ns && then->ctime_ns == now->ctime_ns;
}

static bool blob_unchanged(void *self, const struct blob *blob, const struct file_seen *earlier)
{
	const struct dataset *dataset = self;
	const struct file_seen then = {.stat = blob->stat, .read_ns = blob->read_ns};
	struct file_seen seen;
	struct stat st;

	if (blob->file != NULL)
		return disk_holds(dataset->fd, blob->file, NULL, &blob->content, &seen);
	if (fstatat(dataset->fd, blob->path, &st, 0) != 0)
		return false;
	struct file_stat now = file_stat_of(&st);

	return same_times(&then.stat, &now) && (file_seen_holds(&then, &now) ||
						disk_holds(dataset->fd, blob->path, earlier, &blob->content, &seen));
}

struct run_files disk_files(const struct dataset *dataset)
{
	static const struct run_files_calls calls = {
	    .holds = holds,
	    .read = read_file,
	    .unchanged = unchanged,
	    .blob = blob_at,
	    .blob_unchanged = blob_unchanged,
	};

	return (struct run_files){&calls, (void *)(uintptr_t)dataset}; /* the cast drops const, but none of the calls
								        * writes to the dataset */
}
