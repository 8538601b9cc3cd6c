#include "commands/content.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "dataset/safetensors.h"

struct contents {
	struct store *store;
	const struct dataset *dataset;
	struct arena *arena;
	const struct file_entry *entries; /* sorted by path */
	int count;
	const struct file_entry **of_definition, **of_workload; /* parallel to the dataset's files; NULL: never seen */
	struct file_entry *noted;
	int noted_count, noted_room;
};

/* Both lists are sorted by path: one walk side by side. */
static const struct file_entry **join_entries(const struct contents *contents, const struct dataset_file *files, int count)
{
	const struct file_entry **out = arena_array(contents->arena, (size_t)count, sizeof *out);
	int at = 0;

	for (int i = 0; i < count; i++) {
		int order = -1;

		while (at < contents->count && (order = strcmp(contents->entries[at].path, files[i].path)) < 0)
			at++;
		out[i] = at < contents->count && order == 0 ? &contents->entries[at] : NULL;
	}
	return out;
}

struct contents *contents_open(struct store *store, const struct dataset *dataset, struct arena *arena, struct err *err)
{
	struct contents *contents = arena_alloc(arena, sizeof *contents);

	*contents = (struct contents){.store = store, .dataset = dataset, .arena = arena};
	if (store != NULL)
		contents->count = store_files(store, "", arena, &contents->entries, err);
	if (contents->count < 0)
		return NULL;
	contents->of_definition = join_entries(contents, dataset->definitions, dataset->definition_count);
	contents->of_workload = join_entries(contents, dataset->workloads, dataset->workload_count);
	return contents;
}

static int compare_entry(const void *path, const void *entry)
{
	return strcmp(path, ((const struct file_entry *)entry)->path);
}

static const struct file_entry *entry_of_path(const struct contents *contents, const char *path)
{
	return contents->count == 0 ? NULL : bsearch(path, contents->entries, (size_t)contents->count,
	                                             sizeof *contents->entries, compare_entry);
}

const struct file_entry *contents_entry(const struct contents *contents, const struct dataset_file *file)
{
	const struct dataset *dataset = contents->dataset;

	if (file >= dataset->definitions && file < dataset->definitions + dataset->definition_count)
		return contents->of_definition[file - dataset->definitions];
	return contents->of_workload[file - dataset->workloads];
}

static int64_t wall_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int contents_look(struct contents *contents, const struct dataset_file *file, size_t limit, bool need_bytes,
                  struct buf *bytes, struct look *out, struct err *err)
{
	const struct file_entry *entry = contents_entry(contents, file);
	struct stat st;

	buf_clear(bytes);
	if (!need_bytes && entry != NULL && file_seen_holds(&entry->seen, &file->stat)) {
		*out = (struct look){entry->seen, false};
		return 0;
	}
	out->read = true;
	out->seen.read_ns = wall_clock_ns();
	enum file_answer answer = file_read(contents->dataset->fd, file->path, limit, bytes, &st, err);

	if (answer == FILE_ABSENT)
		return err_set(err, "%s: it vanished while it was looked at", file->path);
	if (answer != FILE_OK)
		return -1;
	out->seen.stat = file_stat_of(&st);
	out->seen.content = digest_of(bytes->data, bytes->length);
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

/* Maps, checks and hashes a blob, and notes what was seen. */
static void read_blob(struct contents *contents, struct blob *blob, struct arena *arena)
{
	struct safetensors file;
	struct err err = {""};
	struct file_entry entry = {.path = blob->path, .seen.read_ns = wall_clock_ns()};
	enum safetensors_answer answer = safetensors_open(contents->dataset->fd, blob->path, arena, &file, &err);

	if (answer != SAFETENSORS_OK) {
		blob_problem(blob, answer, &err, arena);
		return;
	}
	blob->content = digest_of(file.mapping.data, file.mapping.length);
	entry.seen.stat = file_stat_of(&file.mapping.st);
	entry.seen.content = blob->content;
	safetensors_close(&file);
	contents_note(contents, &entry);
}

struct blob contents_blob(struct contents *contents, const char *path, struct arena *arena)
{
	struct blob blob = {.path = arena_string(arena, path)};
	const struct file_entry *entry = entry_of_path(contents, path);
	struct stat st;

	if (entry != NULL && fstatat(contents->dataset->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
		struct file_stat now = file_stat_of(&st);

		if (file_seen_holds(&entry->seen, &now)) {
			blob.content = entry->seen.content;
			return blob;
		}
	}
	read_blob(contents, &blob, arena);
	return blob;
}

bool contents_unchanged(struct contents *contents, const char *path, const struct digest *content)
{
	struct mapping mapping;
	const struct file_entry *entry = entry_of_path(contents, path);
	struct stat st;

	if (entry != NULL && digest_equal(&entry->seen.content, content) &&
	    fstatat(contents->dataset->fd, path, &st, 0) == 0) {
		struct file_stat now = file_stat_of(&st);

		if (file_seen_holds(&entry->seen, &now))
			return true;
	}
	if (file_map_beneath(contents->dataset->fd, path, &mapping, NULL) != FILE_OK)
		return false;
	struct digest now = digest_of(mapping.data, mapping.length);

	file_unmap(&mapping);
	return digest_equal(&now, content);
}

static bool entry_is_known(struct contents *contents, const struct file_entry *entry)
{
	const struct file_entry *old = entry_of_path(contents, entry->path);

	return old != NULL && memcmp(&old->seen.stat, &entry->seen.stat, sizeof old->seen.stat) == 0 &&
	       old->seen.read_ns == entry->seen.read_ns && digest_equal(&old->seen.content, &entry->seen.content) &&
	       old->has_summary == entry->has_summary && old->blob_count == entry->blob_count &&
	       (!entry->has_summary || memcmp(&old->summary, &entry->summary, sizeof old->summary) == 0);
}

void contents_note(struct contents *contents, const struct file_entry *entry)
{
	if (contents->store == NULL || entry_is_known(contents, entry))
		return;
	if (contents->noted_count == contents->noted_room) {
		int room = contents->noted_room * 2 + 64;
		struct file_entry *noted = arena_array(contents->arena, (size_t)room, sizeof *noted);

		if (contents->noted_count > 0)
			memcpy(noted, contents->noted, (size_t)contents->noted_count * sizeof *noted);
		contents->noted = noted;
		contents->noted_room = room;
	}
	struct file_entry *copy = &contents->noted[contents->noted_count++];
	const char **blobs = arena_array(contents->arena, (size_t)entry->blob_count, sizeof *blobs);

	*copy = *entry;
	copy->path = arena_string(contents->arena, entry->path);
	for (int i = 0; i < entry->blob_count; i++)
		blobs[i] = arena_string(contents->arena, entry->blobs[i]);
	copy->blobs = blobs;
}

int contents_write(struct contents *contents, struct err *err)
{
	if (contents->noted_count == 0 || !store_writable(contents->store))
		return 0;
	return store_put_files(contents->store, contents->noted, contents->noted_count, NULL, 0, err);
}
