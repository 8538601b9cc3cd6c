#include "commands/content.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "commands/staged.h"
#include "dataset/safetensors.h"

/* What the table holds of the files of one kind, parallel to the dataset's list. Of workload files nothing but the look
 * is wanted, and there are tens of thousands: so it is one of these two that is there, and the other NULL. */
struct seen {
	const struct dataset_file *files;
	struct file_entry *entries; /* path NULL: never seen */
	struct file_seen *looks;    /* read_ns 0: never seen */
	int count, at;              /* `at`: where the walk through the table stands */
};

struct contents {
	struct store *store;
	const struct dataset *dataset;
	struct staged *staged; /* NULL: the files are the disk's */
	struct arena *arena;
	struct seen definitions, workloads;
	struct file_entry *others; /* what else the table holds (blobs), sorted by path */
	int other_count, other_room;
	struct file_entry *noted;
	int noted_count, noted_room;
};

/* A copy of what `entry` points to, its path aside. */
static const char *const *copy_blobs(struct arena *arena, const struct file_entry *entry)
{
	const char **blobs = entry->blob_count > 0 ? arena_array(arena, (size_t)entry->blob_count, sizeof *blobs) : NULL;

	for (int i = 0; i < entry->blob_count; i++)
		blobs[i] = arena_string(arena, entry->blobs[i]);
	return blobs;
}

static void append(struct arena *arena, struct file_entry **list, int *count, int *room, const struct file_entry *entry)
{
	if (*count == *room) {
		struct file_entry *longer = arena_array(arena, (size_t)*room * 2 + 64, sizeof *longer);

		if (*count > 0)
			memcpy(longer, *list, (size_t)*count * sizeof *longer);
		*list = longer;
		*room = *room * 2 + 64;
	}
	struct file_entry *copy = &(*list)[(*count)++];

	*copy = *entry;
	copy->path = arena_string(arena, entry->path);
	copy->blobs = copy_blobs(arena, entry);
}

/* The table and the dataset's lists are sorted alike: one walk side by side. true: the entry is of a file in `seen`. */
static bool join_entry(struct seen *seen, const struct file_entry *entry, struct arena *arena)
{
	int order = -1;

	while (seen->at < seen->count && (order = strcmp(seen->files[seen->at].path, entry->path)) < 0)
		seen->at++;
	if (order != 0)
		return false;
	if (seen->entries == NULL) {
		seen->looks[seen->at] = entry->seen;
		return true;
	}
	seen->entries[seen->at] = *entry;
	seen->entries[seen->at].path = seen->files[seen->at].path;
	seen->entries[seen->at].blobs = copy_blobs(arena, entry);
	return true;
}

static void visit_entry(const struct file_entry *entry, void *context)
{
	struct contents *contents = context;

	if (!join_entry(&contents->definitions, entry, contents->arena) &&
	    !join_entry(&contents->workloads, entry, contents->arena))
		append(contents->arena, &contents->others, &contents->other_count, &contents->other_room, entry);
}

static void read_rows(struct contents *contents, const struct seen *seen, struct err *err)
{
	for (int i = 0; i < seen->count; i++)
		store_each_file(contents->store, seen->files[i].path, visit_entry, contents, err);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The rows of some definitions, of their workload files, and of the blobs that those named. A row is found by its path
 * as a prefix; what else begins so is passed over, for both lists are walked in order. */
static void read_some(struct contents *contents, struct err *err)
{
	struct arena scratch = {0};
	int room = 0, count = 0;

	read_rows(contents, &contents->definitions, err);
	read_rows(contents, &contents->workloads, err);
	contents->other_count = 0;
	for (int i = 0; i < contents->definitions.count; i++)
		room += contents->definitions.entries[i].blob_count;
	const char **blobs = arena_array(&scratch, (size_t)room, sizeof *blobs);

	for (int i = 0; i < contents->definitions.count; i++)
		for (int k = 0; k < contents->definitions.entries[i].blob_count; k++)
			blobs[count++] = contents->definitions.entries[i].blobs[k];
	qsort(blobs, (size_t)count, sizeof *blobs, compare_text);
	for (int i = 0; i < count; i++)
		if (i == 0 || strcmp(blobs[i - 1], blobs[i]) != 0)
			store_each_file(contents->store, blobs[i], visit_entry, contents, err);
	arena_free(&scratch);
}

struct contents *contents_open(struct store *store, const struct dataset *dataset, struct staged *staged,
			       struct arena *arena, struct err *err)
{
	struct contents *contents = arena_alloc(arena, sizeof *contents);

	*contents = (struct contents){.store = store, .dataset = dataset, .staged = staged, .arena = arena};
	contents->definitions = (struct seen){
	    .files = dataset->definitions, .count = dataset->definition_count,
	    .entries = arena_array(arena, (size_t)dataset->definition_count, sizeof(struct file_entry)),
	};
	contents->workloads = (struct seen){
	    .files = dataset->workloads, .count = dataset->workload_count,
	    .looks = arena_array(arena, (size_t)dataset->workload_count, sizeof(struct file_seen)),
	};
	if (store != NULL && dataset->some)
		read_some(contents, err);
	else if (store != NULL && store_each_file(store, "", visit_entry, contents, err) < 0)
		return NULL;
	return contents;
}

static int compare_entry(const void *path, const void *entry)
{
	return strcmp(path, ((const struct file_entry *)entry)->path);
}

static int compare_file(const void *path, const void *file)
{
	return strcmp(path, ((const struct dataset_file *)file)->path);
}

/* NULL: never seen. */
static const struct file_seen *look_at(const struct seen *seen, const struct dataset_file *file)
{
	const struct file_seen *look =
	    seen->entries != NULL ? &seen->entries[file - seen->files].seen : &seen->looks[file - seen->files];

	return look->read_ns == 0 ? NULL : look;
}

static const struct file_seen *look_in(const struct seen *seen, const char *path)
{
	const struct dataset_file *file =
	    seen->count == 0 ? NULL : bsearch(path, seen->files, (size_t)seen->count, sizeof *file, compare_file);

	return file == NULL ? NULL : look_at(seen, file);
}

/* The earlier look at any path of the table; NULL: never seen. */
static const struct file_seen *look_at_path(const struct contents *contents, const char *path)
{
	const struct file_seen *look = look_in(&contents->definitions, path);
	const struct file_entry *other = NULL;

	if (look == NULL)
		look = look_in(&contents->workloads, path);
	if (look == NULL && contents->other_count > 0)
		other = bsearch(path, contents->others, (size_t)contents->other_count, sizeof *other, compare_entry);
	return other != NULL ? &other->seen : look;
}

static bool is_definition(const struct contents *contents, const struct dataset_file *file)
{
	return file >= contents->definitions.files && file < contents->definitions.files + contents->definitions.count;
}

static const struct file_seen *look_of(const struct contents *contents, const struct dataset_file *file)
{
	return look_at(is_definition(contents, file) ? &contents->definitions : &contents->workloads, file);
}

const struct file_entry *contents_entry(const struct contents *contents, const struct dataset_file *definition)
{
	const struct file_entry *entry = &contents->definitions.entries[definition - contents->definitions.files];

	return entry->path == NULL ? NULL : entry;
}

static int64_t wall_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What a file is about to be read under: when, and whether a later change of it would show in its stat. */
struct reading {
	int64_t ns;
	bool shows;
	struct stat st;
};

static struct reading reading_begins(int dir, const char *path)
{
	struct reading reading = {.ns = wall_clock_ns()};

	reading.shows = file_shows_changes(dir, path, &reading.st);
	return reading;
}

/* When the file was read, for file_seen_holds; 0, a time at which no stat proves anything: a change may leave no trace, or
 * the file that was read (its stat is `st`) is not the one that was asked about. */
static int64_t reading_time(const struct reading *reading, const struct stat *st)
{
	return reading->shows && reading->st.st_ino == st->st_ino && reading->st.st_dev == st->st_dev ? reading->ns : 0;
}

/* Is the file what an earlier look saw, as far as can be told without reading it? */
static bool look_holds(const struct contents *contents, const struct dataset_file *file,
		       const struct file_seen *earlier)
{
	if (contents->staged != NULL)
		return object_name_equal(&earlier->object, &file->object);
	return !contents->dataset->some && file_seen_holds(earlier, &file->stat);
}

static int read_disk(struct contents *contents, const struct dataset_file *file, size_t limit, struct buf *bytes,
		     struct look *out, struct err *err)
{
	struct stat st;
	struct reading reading = reading_begins(contents->dataset->fd, file->path);
	enum file_answer answer = file_read(contents->dataset->fd, file->path, limit, bytes, &st, err);

	out->absent = answer == FILE_ABSENT;
	if (out->absent)
		return err_set(err, "%s: it vanished while it was looked at", file->path);
	if (answer != FILE_OK)
		return -1;
	out->seen.stat = file_stat_of(&st);
	out->seen.read_ns = reading_time(&reading, &st);
	return 0;
}

/* A row of the table serves both sources: where the content is the one that was seen before, what is known of it from
 * the other side stays true. */
static void keep_other_side(const struct contents *contents, const struct file_seen *earlier, struct file_seen *seen)
{
	if (earlier == NULL || !digest_equal(&earlier->content, &seen->content))
		return;
	if (contents->staged == NULL) {
		seen->object = earlier->object;
	} else {
		seen->stat = earlier->stat;
		seen->read_ns = earlier->read_ns;
	}
}

int contents_look(struct contents *contents, const struct dataset_file *file, size_t limit, bool need_bytes,
                  struct buf *bytes, struct look *out, struct err *err)
{
	const struct file_seen *earlier = look_of(contents, file);

	buf_clear(bytes);
	if (!need_bytes && earlier != NULL && look_holds(contents, file, earlier)) {
		*out = (struct look){.seen = *earlier};
		return 0;
	}
	*out = (struct look){.read = true, .seen = {.read_ns = wall_clock_ns(), .object = file->object}};
	int rc = contents->staged != NULL
		     ? staged_read(contents->staged, file->path, &file->object, limit, bytes, err)
		     : read_disk(contents, file, limit, bytes, out, err);

	out->remote = rc > 0;
	if (rc != 0)
		return -1;
	out->seen.content = digest_of(bytes->data, bytes->length);
	keep_other_side(contents, earlier, &out->seen);
	return 0;
}

static void blob_problem(struct blob *blob, enum safetensors_answer answer, const struct err *err, struct arena *arena)
{
	const char *sentence = arena_string(arena, err->text);

	if (answer == SAFETENSORS_MISSING || answer == SAFETENSORS_POINTER)
		blob->missing = sentence;
	else
		blob->bad = sentence;
}

/* Reads, checks and hashes a blob, and notes what was seen. */
static void read_blob(struct contents *contents, struct blob *blob, struct arena *arena)
{
	struct safetensors file;
	struct err err = {""};
	struct file_entry entry = {.path = blob->path};
	struct reading reading = reading_begins(contents->dataset->fd, blob->path);
	enum safetensors_answer answer = safetensors_open(contents->dataset->fd, blob->path, arena, &file, &err);

	if (answer != SAFETENSORS_OK) {
		blob_problem(blob, answer, &err, arena);
		return;
	}
	bool whole = safetensors_digest(&file, &blob->content, NULL);

	blob->stat = entry.seen.stat = file_stat_of(&file.st);
	blob->read_ns = entry.seen.read_ns = reading_time(&reading, &file.st);
	safetensors_close(&file);
	if (!whole) {
		blob->missing = arena_printf(arena, "%s: cannot read it, or it became shorter meanwhile", blob->path);
		return;
	}
	entry.seen.content = blob->content;
	keep_other_side(contents, look_at_path(contents, blob->path), &entry.seen);
	contents_note(contents, &entry);
}

static struct blob disk_blob(struct contents *contents, const char *path, struct arena *arena)
{
	struct blob blob = {.path = arena_string(arena, path)};
	const struct file_seen *earlier = look_at_path(contents, path);
	struct stat st;

	if (earlier != NULL && fstatat(contents->dataset->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
		struct file_stat now = file_stat_of(&st);

		if (file_seen_holds(earlier, &now)) {
			blob.content = earlier->content;
			blob.stat = now;
			blob.read_ns = earlier->read_ns;
			return blob;
		}
	}
	read_blob(contents, &blob, arena);
	return blob;
}

/* Does the file at `path` hold this content? Reads it unless its stat, which `seen` gets with the time of the reading,
 * proves it. */
static bool disk_holds(const struct contents *contents, const char *path, const struct digest *content,
		       struct file_seen *seen)
{
	const struct file_seen *earlier = look_at_path(contents, path);
	struct digest now;
	struct stat st;

	if (earlier != NULL && digest_equal(&earlier->content, content) &&
	    fstatat(contents->dataset->fd, path, &st, 0) == 0) {
		*seen = (struct file_seen){.stat = file_stat_of(&st), .read_ns = earlier->read_ns};
		if (file_seen_holds(earlier, &seen->stat))
			return true;
	}
	struct reading reading = reading_begins(contents->dataset->fd, path);

	if (file_digest_beneath(contents->dataset->fd, path, &now, &st, NULL) != FILE_OK)
		return false;
	seen->stat = file_stat_of(&st);
	seen->read_ns = reading_time(&reading, &st);
	return digest_equal(&now, content);
}

/* The same of a tensor file in the working tree, and what is to be known of it later. */
static bool disk_holds_blob(const struct contents *contents, struct blob *blob)
{
	struct file_seen seen;
	bool holds = disk_holds(contents, blob->path, &blob->content, &seen);

	if (holds) {
		blob->stat = seen.stat;
		blob->read_ns = seen.read_ns;
	}
	return holds;
}

/* Checks and hashes what the index holds, and notes it. */
static void hash_staged(struct contents *contents, struct blob *blob, const struct object_name *object,
			const struct staged_blob *bytes, struct arena *arena)
{
	struct file_entry entry = {.path = blob->path, .seen = {.read_ns = wall_clock_ns(), .object = *object}};
	struct safetensors file;
	struct err err = {""};

	if (safetensors_parse(blob->path, bytes->data, bytes->length, arena, &file, &err) < 0) {
		blob->bad = arena_string(arena, err.text);
		return;
	}
	blob->content = entry.seen.content = bytes->content;
	keep_other_side(contents, look_at_path(contents, blob->path), &entry.seen);
	contents_note(contents, &entry);
}

/* What stands in the working tree does, if it is the same. */
static void place_staged(struct contents *contents, struct blob *blob, const struct staged_blob *bytes,
			 struct arena *arena)
{
	struct err err = {""};

	if (!disk_holds_blob(contents, blob) &&
	    staged_place(contents->staged, &blob->content, bytes->data, bytes->length, arena, &blob->file, &err) < 0)
		blob->missing = arena_string(arena, err.text);
}

static struct blob index_blob(struct contents *contents, const char *path, const struct object_name *object,
			      bool to_run, struct arena *arena)
{
	struct blob blob = {.path = arena_string(arena, path)};
	const struct file_seen *earlier = look_at_path(contents, path);
	bool known = earlier != NULL && object_name_equal(&earlier->object, object);
	struct staged_blob bytes;
	struct err err = {""};

	if (known)
		blob.content = earlier->content;
	if (known && (!to_run || disk_holds_blob(contents, &blob)))
		return blob;
	int rc = staged_blob(contents->staged, path, object, &bytes, &err);

	if (rc == 0 && !known)
		hash_staged(contents, &blob, object, &bytes, arena);
	if (rc == 0 && to_run && blob.bad == NULL)
		place_staged(contents, &blob, &bytes, arena);
	if (rc > 0)
		blob.missing = arena_string(arena, err.text);
	else if (rc < 0)
		blob.bad = arena_string(arena, err.text);
	staged_blob_free(&bytes);
	return blob;
}

struct blob contents_blob(struct contents *contents, const char *path, bool to_run, struct arena *arena)
{
	struct object_name object;
	struct err err = {""};

	if (contents->staged == NULL)
		return disk_blob(contents, path, arena);
	switch (staged_find(contents->staged, path, &object, &err)) {
	case STAGED_FOUND:
		return index_blob(contents, path, &object, to_run, arena);
	case STAGED_IGNORED:
		return disk_blob(contents, path, arena);
	default:
		return (struct blob){.path = arena_string(arena, path), .missing = arena_string(arena, err.text)};
	}
}

bool contents_unchanged(struct contents *contents, const struct dataset_file *file, const struct digest *content)
{
	struct file_seen seen;

	return contents->staged != NULL || disk_holds(contents, file->path, content, &seen);
}

/* The judge reads tensors by their path, whenever a case's turn comes. What was replaced and put back meanwhile has
 * other times, if only another ctime. (Its inode says nothing: filesystems in user space number files as they come.) */
static bool stood_still(const struct file_stat *then, const struct file_stat *now)
{
	return then->size == now->size && then->mtime_ns == now->mtime_ns && then->ctime_ns == now->ctime_ns;
}

bool contents_blob_unchanged(struct contents *contents, const struct blob *blob)
{
	const struct file_seen then = {.stat = blob->stat, .read_ns = blob->read_ns};
	struct file_seen seen;
	struct stat st;

	if (blob->file != NULL)
		return disk_holds(contents, blob->file, &blob->content, &seen);
	if (fstatat(contents->dataset->fd, blob->path, &st, 0) != 0)
		return false;
	struct file_stat now = file_stat_of(&st);

	return stood_still(&then.stat, &now) &&
	       (file_seen_holds(&then, &now) || disk_holds(contents, blob->path, &blob->content, &seen));
}

static bool same_look(const struct file_seen *a, const struct file_seen *b)
{
	return memcmp(&a->stat, &b->stat, sizeof a->stat) == 0 && a->read_ns == b->read_ns &&
	       memcmp(&a->object, &b->object, sizeof a->object) == 0 && digest_equal(&a->content, &b->content);
}

/* Does the table hold the entry as it is? */
static bool entry_is_known(const struct contents *contents, const struct file_entry *entry)
{
	const struct file_seen *look = look_at_path(contents, entry->path);
	const struct dataset_file *file = bsearch(entry->path, contents->definitions.files,
	                                          (size_t)contents->definitions.count, sizeof *file, compare_file);
	const struct file_entry *old = file == NULL ? NULL : contents_entry(contents, file);

	if (look == NULL || !same_look(look, &entry->seen))
		return false;
	if (old == NULL)
		return !entry->has_summary;
	return old->has_summary == entry->has_summary && old->blob_count == entry->blob_count &&
	       (!entry->has_summary || memcmp(&old->summary, &entry->summary, sizeof old->summary) == 0);
}

void contents_note(struct contents *contents, const struct file_entry *entry)
{
	if (contents->store == NULL || entry_is_known(contents, entry))
		return;
	append(contents->arena, &contents->noted, &contents->noted_count, &contents->noted_room, entry);
}

int contents_write(struct contents *contents, struct err *err)
{
	if (contents->noted_count == 0 || !store_writable(contents->store))
		return 0;
	return store_put_files(contents->store, contents->noted, contents->noted_count, NULL, 0, err);
}
