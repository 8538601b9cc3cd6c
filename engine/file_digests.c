#include "engine/file_digests.h"

#include <stdlib.h>
#include <string.h>

/* The stored records of one kind of files (definitions, workload files, truths or approvals), in the order of the
 * dataset's list. The table of definitions uses only `entries`. The other tables use only `seen`, which has smaller
 * elements. The pointer that a table does not use is NULL. */
struct file_table {
	const struct dataset_file *files;
	struct file_entry *entries; /* a file without a record has an entry with path NULL */
	struct file_seen *seen;     /* a file without a record has an element with read_ns 0 */
	int count, at;              /* `at` is the index of the file with which join_entry continues */
};

struct file_digests {
	struct run_store records;
	struct run_files files;
	struct arena *arena;
	struct file_table definitions, workloads, truths, approvals;
	struct file_entry *others; /* the records of other files (blobs), sorted by path */
	int other_count, other_room;
	struct file_entry *noted; /* the entries that file_digests_write stores */
	int noted_count, noted_room;
};

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

/* Copies a stored record into the element of `table` with the same path. Returns false if `table` has no such path. The
 * store's records and `table` are both sorted by path, so each search starts where the previous search ended. */
static bool join_entry(struct file_table *table, const struct file_entry *entry, struct arena *arena)
{
	int order = -1;

	while (table->at < table->count && (order = strcmp(table->files[table->at].path, entry->path)) < 0)
		table->at++;
	if (order != 0)
		return false;
	if (table->entries == NULL) {
		table->seen[table->at] = entry->seen;
		return true;
	}
	table->entries[table->at] = *entry;
	table->entries[table->at].path = table->files[table->at].path;
	table->entries[table->at].blobs = copy_blobs(arena, entry);
	return true;
}

/* Copies a record that belongs to no workload file into the table of its kind or, if it has none, into `others`. This
 * function must not use the table of workload files, because another thread may be filling that table. */
static void visit_other(const struct file_entry *entry, void *context)
{
	struct file_digests *digests = context;

	if (!join_entry(&digests->definitions, entry, digests->arena) &&
	    !join_entry(&digests->truths, entry, digests->arena) &&
	    !join_entry(&digests->approvals, entry, digests->arena))
		append(digests->arena, &digests->others, &digests->other_count, &digests->other_room, entry);
}

static void visit_entry(const struct file_entry *entry, void *context)
{
	struct file_digests *digests = context;

	if (!join_entry(&digests->workloads, entry, digests->arena))
		visit_other(entry, digests);
}

/* With at least this many workload files, a second thread reads their records. With fewer files, starting the second
 * thread costs more time than the thread saves. */
enum { APART_FILES = 1000 };

/* The data of the second thread, which reads the records of workload files. The two threads share no data. The second
 * thread allocates in `arena`. The first thread reads all other records, and allocates in the arena of struct
 * file_digests. */
struct apart {
	struct file_table *workloads;
	struct arena arena;
	struct file_entry *others; /* records below workloads/ that belong to no workload file of the dataset */
	int other_count, other_room;
};

static void visit_apart(const struct file_entry *entry, void *context)
{
	struct apart *apart = context;

	if (!join_entry(apart->workloads, entry, &apart->arena))
		append(&apart->arena, &apart->others, &apart->other_count, &apart->other_room, entry);
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct file_entry *)a)->path, ((const struct file_entry *)b)->path);
}

/* Reads all records. A second thread reads the records below workloads/. */
static int read_all_apart(struct file_digests *digests, struct err *err)
{
	struct apart apart = {.workloads = &digests->workloads};
	const struct file_visitor inside = {visit_apart, &apart}, others = {visit_other, digests};
	int rc = digests->records.calls->each_file_apart(digests->records.self, "workloads/", &inside, &others, err);

	for (int i = 0; i < apart.other_count; i++)
		append(digests->arena, &digests->others, &digests->other_count, &digests->other_room, &apart.others[i]);
	if (apart.other_count > 0)
		qsort(digests->others, (size_t)digests->other_count, sizeof *digests->others, compare_entries);
	arena_free(&apart.arena);
	return rc;
}

static int each_file(struct file_digests *digests, const char *prefix, struct err *err)
{
	return digests->records.calls->each_file(digests->records.self, prefix, visit_entry, digests, err);
}

static void read_rows(struct file_digests *digests, const struct file_table *table, struct err *err)
{
	for (int i = 0; i < table->count; i++)
		each_file(digests, table->files[i].path, err);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Reads the records of some definitions, of their workload files, truths and approvals, and of the blobs that the
 * records of the definitions name. For each path, the store returns all records whose paths begin with this path.
 * join_entry skips those with longer paths. */
static void read_some(struct file_digests *digests, struct err *err)
{
	struct arena scratch = {0};
	int room = 0, count = 0;

	read_rows(digests, &digests->definitions, err);
	read_rows(digests, &digests->workloads, err);
	read_rows(digests, &digests->truths, err);
	read_rows(digests, &digests->approvals, err);
	digests->other_count = 0;
	for (int i = 0; i < digests->definitions.count; i++)
		room += digests->definitions.entries[i].blob_count;
	const char **blobs = arena_array(&scratch, (size_t)room, sizeof *blobs);

	for (int i = 0; i < digests->definitions.count; i++)
		for (int k = 0; k < digests->definitions.entries[i].blob_count; k++)
			blobs[count++] = digests->definitions.entries[i].blobs[k];
	qsort(blobs, (size_t)count, sizeof *blobs, compare_text);
	for (int i = 0; i < count; i++)
		if (i == 0 || strcmp(blobs[i - 1], blobs[i]) != 0)
			each_file(digests, blobs[i], err);
	arena_free(&scratch);
}

static struct file_table file_table(const struct dataset_file *files, int count, struct arena *arena)
{
	return (struct file_table){
	    .files = files,
	    .count = count,
	    .seen = count > 0 ? arena_array(arena, (size_t)count, sizeof(struct file_seen)) : NULL,
	};
}

struct file_digests *file_digests_open(struct run_store records, const struct dataset *dataset, struct run_files files,
				struct arena *arena, struct err *err)
{
	struct file_digests *digests = arena_alloc(arena, sizeof *digests);

	*digests = (struct file_digests){.records = records, .files = files, .arena = arena};
	digests->definitions = (struct file_table){
	    .files = dataset->definitions,
	    .count = dataset->definition_count,
	    .entries = arena_array(arena, (size_t)dataset->definition_count, sizeof(struct file_entry)),
	};
	digests->workloads = file_table(dataset->workloads, dataset->workload_count, arena);
	digests->truths = file_table(dataset->truths, dataset->truth_count, arena);
	digests->approvals = file_table(dataset->approvals, dataset->approval_count, arena);
	if (records.calls == NULL)
		return digests;
	if (dataset->some)
		return read_some(digests, err), digests;
	bool apart = dataset->workload_count >= APART_FILES && records.calls->each_file_apart != NULL;

	return (apart ? read_all_apart(digests, err) : each_file(digests, "", err)) < 0 ? NULL : digests;
}

static int compare_entry(const void *path, const void *entry)
{
	return strcmp(path, ((const struct file_entry *)entry)->path);
}

static int compare_file(const void *path, const void *file)
{
	return strcmp(path, ((const struct dataset_file *)file)->path);
}

/* Returns the stored record of a file in the table, or NULL if there is none. */
static const struct file_seen *record_of(const struct file_table *table, const struct dataset_file *file)
{
	const struct file_seen *stat_check =
	    table->entries != NULL ? &table->entries[file - table->files].seen : &table->seen[file - table->files];

	return stat_check->read_ns == 0 ? NULL : stat_check;
}

static const struct file_seen *record_in(const struct file_table *table, const char *path)
{
	const struct dataset_file *file =
	    table->count == 0 ? NULL : bsearch(path, table->files, (size_t)table->count, sizeof *file, compare_file);

	return file == NULL ? NULL : record_of(table, file);
}

/* Returns the stored record of a file, or NULL if there is none. The file may be a definition file, a workload file, a
 * truth, an approval or a blob. */
static const struct file_seen *record_at_path(const struct file_digests *digests, const char *path)
{
	const struct file_seen *stat_check = record_in(&digests->definitions, path);
	const struct file_entry *other = NULL;

	if (stat_check == NULL)
		stat_check = record_in(&digests->workloads, path);
	if (stat_check == NULL)
		stat_check = record_in(&digests->truths, path);
	if (stat_check == NULL)
		stat_check = record_in(&digests->approvals, path);
	if (stat_check == NULL && digests->other_count > 0)
		other = bsearch(path, digests->others, (size_t)digests->other_count, sizeof *other, compare_entry);
	return other != NULL ? &other->seen : stat_check;
}

static bool is_in(const struct file_table *table, const struct dataset_file *file)
{
	return table->count > 0 && file >= table->files && file < table->files + table->count;
}

static const struct file_seen *record_of_file(const struct file_digests *digests, const struct dataset_file *file)
{
	const struct file_table *table = is_in(&digests->definitions, file) ? &digests->definitions
					 : is_in(&digests->truths, file)    ? &digests->truths
					 : is_in(&digests->approvals, file) ? &digests->approvals
									   : &digests->workloads;

	return record_of(table, file);
}

const struct file_entry *file_digests_entry(const struct file_digests *digests, const struct dataset_file *definition)
{
	const struct file_entry *entry = &digests->definitions.entries[definition - digests->definitions.files];

	return entry->path == NULL ? NULL : entry;
}

/* A stored record has two parts: the stat of the file on disk, and the object name in git's index. A run sets only one
 * part, because it reads either the disk or the index. If the content is unchanged, this function copies the other part
 * from the earlier record. */
static void merge_other_source(const struct file_seen *earlier, struct file_seen *seen)
{
	if (earlier == NULL || !digest_equal(&earlier->content, &seen->content))
		return;
	if (seen->object.length == 0) {
		seen->object = earlier->object;
	} else {
		seen->stat = earlier->stat;
		seen->read_ns = earlier->read_ns;
	}
}

int file_digests_check(struct file_digests *digests, const struct dataset_file *file, size_t limit, bool need_bytes,
		     struct buf *bytes, struct stat_check *out, struct err *err)
{
	const struct run_files files = digests->files;
	const struct file_seen *earlier = record_of_file(digests, file);

	buf_clear(bytes);
	if (!need_bytes && earlier != NULL && files.calls->holds(files.self, file, earlier)) {
		*out = (struct stat_check){.seen = *earlier};
		return 0;
	}
	*out = (struct stat_check){.read = true};
	if (files.calls->read(files.self, file, limit, bytes, out, err) != 0)
		return -1;
	out->seen.content = digest_of(bytes->data, bytes->length);
	merge_other_source(earlier, &out->seen);
	return 0;
}

struct blob file_digests_blob(struct file_digests *digests, enum blob_use use, const char *path, bool to_run,
			      struct arena *arena)
{
	const struct file_seen *earlier = record_at_path(digests, path);
	struct file_entry entry = {0};
	bool read = false;
	struct blob blob =
	    digests->files.calls->blob(digests->files.self, use, path, earlier, to_run, arena, &entry.seen, &read);

	if (read) {
		entry.path = blob.path;
		merge_other_source(earlier, &entry.seen);
		file_digests_note(digests, &entry);
	}
	return blob;
}

bool file_digests_unchanged(struct file_digests *digests, const struct dataset_file *file, const struct digest *content)
{
	return digests->files.calls->unchanged(digests->files.self, file, record_of_file(digests, file), content);
}

bool file_digests_blob_unchanged(struct file_digests *digests, const struct blob *blob)
{
	return digests->files.calls->blob_unchanged(digests->files.self, blob, record_at_path(digests, blob->path));
}

static bool same_record(const struct file_seen *a, const struct file_seen *b)
{
	return memcmp(&a->stat, &b->stat, sizeof a->stat) == 0 && a->read_ns == b->read_ns &&
	       memcmp(&a->object, &b->object, sizeof a->object) == 0 && digest_equal(&a->content, &b->content);
}

/* Returns whether the store already has an equal entry. */
static bool entry_is_known(const struct file_digests *digests, const struct file_entry *entry)
{
	const struct file_seen *stat_check = record_at_path(digests, entry->path);
	const struct dataset_file *file = bsearch(entry->path, digests->definitions.files,
						  (size_t)digests->definitions.count, sizeof *file, compare_file);
	const struct file_entry *old = file == NULL ? NULL : file_digests_entry(digests, file);

	if (stat_check == NULL || !same_record(stat_check, &entry->seen))
		return false;
	if (old == NULL)
		return !entry->has_summary;
	return old->has_summary == entry->has_summary && old->blob_count == entry->blob_count &&
	       (!entry->has_summary || memcmp(&old->summary, &entry->summary, sizeof old->summary) == 0);
}

void file_digests_note(struct file_digests *digests, const struct file_entry *entry)
{
	if (digests->records.calls == NULL || entry_is_known(digests, entry))
		return;
	append(digests->arena, &digests->noted, &digests->noted_count, &digests->noted_room, entry);
}

int file_digests_write(struct file_digests *digests, struct err *err)
{
	if (digests->noted_count == 0 || !digests->records.calls->writable(digests->records.self))
		return 0;
	return digests->records.calls->put_files(digests->records.self, digests->noted, digests->noted_count, err);
}
