#include "engine/git_index_files.h"

#include <time.h>

#include "dataset/safetensors.h"
#include "engine/disk_files.h"

struct index {
	struct staged *staged;
	const struct dataset *dataset; /* dataset->fd is the dataset's folder in the working tree */
};

static int64_t wall_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool holds(void *self, const struct dataset_file *file, const struct file_seen *earlier)
{
	(void)self;
	return object_name_equal(&earlier->object, file->object);
}

static int read_file(void *self, const struct dataset_file *file, size_t limit, struct buf *bytes, struct stat_check *out,
		     struct err *err)
{
	const struct index *index = self;
	int rc = staged_read(index->staged, file->path, file->object, limit, bytes, err);

	out->seen = (struct file_seen){.read_ns = wall_clock_ns(), .object = *file->object};
	out->remote = rc > 0;
	return rc != 0 ? -1 : 0;
}

/* Always returns true, because the content of a git object never changes. */
static bool unchanged(void *self, const struct dataset_file *file, const struct file_seen *earlier,
		      const struct digest *content)
{
	(void)self, (void)file, (void)earlier, (void)content;
	return true;
}

/* Returns whether the file in the working tree has the same bytes as the blob in the index. If the bytes are the same,
 * the judge reads the file in the working tree instead of a copy of the blob. */
static bool is_on_disk(const struct index *index, struct blob *blob, const struct file_seen *earlier)
{
	struct file_seen seen;
	bool same = disk_holds(index->dataset->fd, blob->path, earlier, &blob->content, &seen);

	if (same) {
		blob->stat = seen.stat;
		blob->read_ns = seen.read_ns;
	}
	return same;
}

/* Returns whether the bytes of a blob in the index can be used. */
static bool is_usable(struct blob *blob, const struct staged_blob *bytes, struct arena *arena)
{
	struct safetensors file;
	struct err err = {""};

	blob_refuse_large(blob, (int64_t)bytes->length, arena);
	if (blob->use == BLOB_TENSORS && safetensors_parse(blob->path, bytes->data, bytes->length, arena, &file, &err) < 0)
		blob->bad = arena_string(arena, err.text);
	return blob->bad == NULL;
}

/* Checks and hashes a blob of the index. */
static void hash_staged(struct blob *blob, const struct object_name *object, const struct staged_blob *bytes,
			struct arena *arena, struct file_seen *seen, bool *read)
{
	if (!is_usable(blob, bytes, arena))
		return;
	blob->content = bytes->content;
	*seen = (struct file_seen){.read_ns = wall_clock_ns(), .object = *object, .content = bytes->content};
	*read = true;
}

static void place_staged(const struct index *index, struct blob *blob, const struct staged_blob *bytes,
			 const struct file_seen *earlier, struct arena *arena)
{
	struct err err = {""};

	if (!is_on_disk(index, blob, earlier) &&
	    staged_place(index->staged, &blob->content, bytes->data, bytes->length, arena, &blob->file, &err) < 0)
		blob->missing = arena_string(arena, err.text);
}

static struct blob staged_object(const struct index *index, enum blob_use use, const char *path, const struct object_name *object,
				 const struct file_seen *earlier, bool to_run, struct arena *arena, struct file_seen *seen,
				 bool *read)
{
	struct blob blob = {.use = use, .path = arena_string(arena, path)};
	bool known = earlier != NULL && object_name_equal(&earlier->object, object);
	struct staged_blob bytes;
	struct err err = {""};

	if (known)
		blob.content = earlier->content;
	if (known && (!to_run || is_on_disk(index, &blob, earlier)))
		return blob;
	int rc = staged_blob(index->staged, path, object, &bytes, &err);

	if (rc == 0 && !known)
		hash_staged(&blob, object, &bytes, arena, seen, read);
	if (rc == 0 && to_run && blob.bad == NULL)
		place_staged(index, &blob, &bytes, earlier, arena);
	if (rc > 0)
		blob.missing = arena_string(arena, err.text);
	else if (rc < 0)
		blob.bad = arena_string(arena, err.text);
	staged_blob_free(&bytes);
	return blob;
}

static struct blob blob_at(void *self, enum blob_use use, const char *path, const struct file_seen *earlier, bool to_run, struct arena *arena,
			   struct file_seen *seen, bool *read)
{
	const struct index *index = self;
	struct object_name object;
	struct err err = {""};

	switch (staged_find(index->staged, path, &object, &err)) {
	case STAGED_FOUND:
		return staged_object(index, use, path, &object, earlier, to_run, arena, seen, read);
	case STAGED_IGNORED:
		return disk_blob(index->dataset->fd, use, path, earlier, arena, seen, read);
	default:
		return (struct blob){.use = use, .path = arena_string(arena, path), .missing = arena_string(arena, err.text)};
	}
}

static bool blob_unchanged(void *self, const struct blob *blob, const struct file_seen *earlier)
{
	const struct index *index = self;
	const struct run_files disk = disk_files(index->dataset);

	return disk.calls->blob_unchanged(disk.self, blob, earlier);
}

struct run_files git_index_files(struct staged *staged, const struct dataset *dataset, struct arena *arena)
{
	static const struct run_files_calls calls = {
	    .by_object = true,
	    .holds = holds,
	    .read = read_file,
	    .unchanged = unchanged,
	    .blob = blob_at,
	    .blob_unchanged = blob_unchanged,
	};
	struct index *index = arena_alloc(arena, sizeof *index);

	*index = (struct index){staged, dataset};
	return (struct run_files){&calls, index};
}
