#include "dataset/dataset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/unsafe_character.h"

/* The scan calls openat once for each directory and fstatat once for each entry. Each call passes a directory
 * descriptor and a single name, because the kernel resolves one name faster than a path. The scan visits directories in
 * the order of their paths and sorts the names in each directory, so the list of all paths is already sorted. */

/* The parts of the path of a definition or workload file. */
struct pair {
	const char *op_type, *name;
	size_t op_length, name_length;
};

/* --- finding the root ---------------------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Uses `path` as the root. `source` is the option or environment variable that `path` comes from: "--root",
 * "$REFTEST_ROOT", … */
static int take_root(const char *path, const char *source, char *root, size_t size, struct err *err)
{
	char folder[PATH_MAX];

	if (strlen(path) >= size || strlen(path) + sizeof "/definitions" > sizeof folder)
		return err_set(err, "the path in %s has %zu bytes, more than the system allows", source,
		               strlen(path));
	snprintf(folder, sizeof folder, "%s/definitions", path);
	if (!is_folder(path))
		return err_set(err, "%s: there is no such folder; %s must name a dataset", path, source);
	if (!is_folder(folder))
		return err_set(err,
		               "%s: this folder, named by %s, is not a dataset: it contains no folder definitions/",
		               path, source);
	memcpy(root, path, strlen(path) + 1);
	return 0;
}

/* Finds the working directory or its nearest parent that contains a dataset. Returns "." for the working directory, and
 * the full path for a parent folder. */
static int find_parent(char *root, size_t size, struct err *err)
{
	char here[PATH_MAX];

	if (is_folder("definitions"))
		return take_root(".", "the working directory", root, size, err);
	if (getcwd(here, sizeof here) == NULL)
		return err_errno(err, "cannot determine the working directory; pass the dataset with --root DIR");
	for (char *slash = strrchr(here, '/'); slash != NULL; slash = strrchr(here, '/')) {
		*slash = '\0';
		if (take_root(*here == '\0' ? "/" : here, "a parent folder", root, size, NULL) == 0)
			return 0;
	}
	return err_set(err,
	               "no dataset found: neither the working directory nor a parent folder contains definitions/; "
	               "pass one with --root DIR or $REFTEST_ROOT");
}

const char *dataset_around(const char *full, const char **below, struct arena *arena)
{
	for (size_t length = strlen(full);; length--) {
		const char *root = arena_copy(arena, full, length > 0 ? length : 1);

		if (is_folder(arena_printf(arena, "%s/definitions", root))) {
			*below = full[length] == '\0' ? "." : full + length + 1;
			return root;
		}
		while (length > 0 && full[length - 1] != '/')
			length--;
		if (length <= 1)
			return NULL;
	}
}

/* Returns the root that the user set, or NULL. Sets `source` to the option or environment variable that the root comes
 * from. */
static const char *named_root(const char *given, const char **source)
{
	static const char *const sources[] = {"$REFTEST_ROOT", "$FIB_DATASET_PATH"};

	*source = "--root";
	for (size_t i = 0; given == NULL && i < sizeof sources / sizeof *sources; i++) {
		const char *value = getenv(sources[i] + 1);

		*source = sources[i];
		given = value != NULL && *value != '\0' ? value : NULL;
	}
	return given;
}

const char *dataset_named_root(const char *given)
{
	const char *source;

	return named_root(given, &source);
}

int dataset_find_root(const char *given, char *root, size_t size, struct err *err)
{
	const char *source, *named = named_root(given, &source);

	return named != NULL ? take_root(named, source, root, size, err) : find_parent(root, size, err);
}

/* --- the walk ------------------------------------------------------------------------------------------------ */

struct run_files {
	struct dataset_file *list;
	size_t count, room;
};

struct problems {
	const char **list;
	size_t count, room;
};

struct scan {
	struct arena *arena;
	bool folders; /* if true, only check that each directory can be opened */
	struct run_files files;
	struct problems problems;
};

static void *grow(void *list, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return list;
	*room = *room == 0 ? 64 : *room * 2;
	list = realloc(list, *room * size);
	if (list == NULL)
		die_no_memory();
	return list;
}

static void problem(struct scan *scan, const char *sentence)
{
	struct problems *problems = &scan->problems;

	problems->list = grow(problems->list, problems->count, &problems->room, sizeof *problems->list);
	problems->list[problems->count++] = sentence;
}

static void problem_errno(struct scan *scan, const char *path, const char *doing)
{
	struct err err;

	err_errno(&err, "%s: cannot %s", path, doing);
	problem(scan, arena_string(scan->arena, err.text));
}

/* Returns true if the name is a non-empty stem followed by the suffix. (".json" alone is the name of a hidden file.) */
static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);

	return length > tail && strcmp(name + length - tail, suffix) == 0;
}

/* An open directory, its path relative to the root, and the last component of that path. */
struct folder {
	DIR *stream;
	const char *path, *name;
	size_t length; /* length of the path in bytes */
};

/* The name of an entry of a directory: the position of the name in `entries.names`, and its sort key. The names in a
 * directory often share a long prefix, so the key is the eight bytes of the name after this prefix. Only names with
 * equal keys must be compared as strings. */
struct entry {
	uint64_t key;
	uint32_t at, length;
};

/* The names in one directory that the scan looks for. To avoid misses of the CPU's caches, `names` stores all names in
 * one buffer, and the paths are allocated in sorted order. The caller frees `list` and `names`. */
struct entries {
	struct entry *list;
	size_t count, room;
	struct buf names; /* each name ends in a null byte */
};

/* Opens a directory. Without O_NONBLOCK, openat could block if the name is a link to a pipe. */
static int open_folder(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
}

/* Opens a directory for listing. If the directory cannot be listed, `stream` is NULL and errno says why. */
static struct folder list_folder(int dir, const char *name, const char *path)
{
	int fd = open_folder(dir, name);
	struct folder folder = {
	    .stream = fd < 0 ? NULL : fdopendir(fd), .path = path, .name = name, .length = strlen(path)};

	if (fd >= 0 && folder.stream == NULL) {
		int number = errno;

		close(fd);
		errno = number;
	}
	return folder;
}

static const char *name_of(const struct entries *entries, size_t i)
{
	return (const char *)entries->names.data + entries->list[i].at;
}

/* Returns the length of the prefix that all names share. */
static size_t common_bytes(const struct entries *entries)
{
	const char *first = name_of(entries, 0);
	size_t same = entries->list[0].length;

	for (size_t i = 1; i < entries->count; i++) {
		const char *name = name_of(entries, i);

		for (size_t k = 0; k < same; k++)
			if (name[k] != first[k])
				same = k;
	}
	return same;
}

/* Returns the first eight bytes of a text as a number. The numbers of two texts have the same order as the texts, or
 * are equal. */
static uint64_t key_of(const char *text)
{
	uint64_t key = 0;

	for (size_t i = 0; i < sizeof key; i++) {
		key = key << 8 | (unsigned char)*text;
		text += *text != '\0';
	}
	return key;
}

/* One pass of a stable radix sort: sorts by one byte of the key. */
static void sort_by_byte(const struct entry *from, struct entry *to, size_t count, int shift)
{
	size_t at[256] = {0}, before = 0;

	for (size_t i = 0; i < count; i++)
		at[from[i].key >> shift & 255]++;
	for (size_t i = 0; i < 256; i++) {
		size_t these = at[i];

		at[i] = before;
		before += these;
	}
	for (size_t i = 0; i < count; i++)
		to[at[from[i].key >> shift & 255]++] = from[i];
}

static int compare_names(const void *a, const void *b, void *names)
{
	return strcmp((const char *)names + ((const struct entry *)a)->at, (const char *)names + ((const struct entry *)b)->at);
}

/* Sorts entries. A radix sort with two buffers sorts by one byte of the key after the other, from the last byte to the
 * first. A comparison sort then orders the entries with equal keys. */
static void sort_entries(struct entries *entries)
{
	struct entry *list = entries->list, *other = malloc(entries->count * sizeof *other);
	size_t same = common_bytes(entries);

	if (other == NULL)
		die_no_memory();
	for (size_t i = 0; i < entries->count; i++)
		list[i].key = key_of(name_of(entries, i) + same);
	for (int shift = 0; shift < 64; shift += 16) {
		sort_by_byte(list, other, entries->count, shift);
		sort_by_byte(other, list, entries->count, shift + 8);
	}
	free(other);
	for (size_t i = 0, end; i < entries->count; i = end) {
		for (end = i + 1; end < entries->count && list[end].key == list[i].key;)
			end++;
		if (end > i + 1)
			qsort_r(&list[i], end - i, sizeof *list, compare_names, entries->names.data);
	}
}

/* Returns true if the entry is a directory (`suffix` NULL) or a file with this suffix, or if it may be one because its
 * type is unknown. */
static bool is_candidate(const struct dirent *entry, const char *suffix)
{
	bool unsure = entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;

	if (entry->d_name[0] == '.')
		return false;
	return suffix == NULL ? entry->d_type == DT_DIR || unsure
	                      : entry->d_type != DT_DIR && has_suffix(entry->d_name, suffix);
}

/* Adds a name. The name of a directory (`suffix` NULL) ends in '/' until the names are sorted. The '/' gives
 * directories the same order as the paths of the files in them: "a-b/" comes before "a/". */
static void add_name(struct entries *entries, const char *name, const char *suffix)
{
	size_t length = strlen(name), at = entries->names.length;

	if (at > UINT32_MAX / 2)
		die_no_memory();
	entries->list = grow(entries->list, entries->count, &entries->room, sizeof *entries->list);
	entries->list[entries->count++] = (struct entry){.at = (uint32_t)at, .length = (uint32_t)length};
	buf_add(&entries->names, name, length);
	buf_add(&entries->names, suffix == NULL ? "/" : "", suffix == NULL ? 2 : 1);
}

/* Returns the sorted names of the directories (`suffix` NULL) or of the files with this suffix in `folder`. */
static struct entries read_folder(struct scan *scan, struct folder folder, const char *suffix)
{
	struct entries entries = {0};
	const struct dirent *entry;

	for (errno = 0; (entry = readdir(folder.stream)) != NULL; errno = 0) {
		if (!is_candidate(entry, suffix))
			continue;
		if (text_is_safe(entry->d_name))
			add_name(&entries, entry->d_name, suffix);
		else
			problem(scan,
				arena_printf(scan->arena,
					     "%s/%s: ignored, because the name has control or invisible characters; rename it",
					     folder.path, err_show(entry->d_name).text));
	}
	if (errno != 0)
		problem_errno(scan, folder.path, "list the whole folder");
	if (entries.count > 1)
		sort_entries(&entries);
	return entries;
}

static void free_entries(struct entries *entries)
{
	free(entries->list);
	buf_free(&entries->names);
}

/* Allocates two strings, one after the other in memory: "FOLDER/NAME", and NAME without `suffix`. Copies bytes, because
 * printf would be slow for tens of thousands of paths. */
static char *make_path(struct arena *arena, struct folder folder, const char *name, size_t length, const char *suffix)
{
	size_t stem = length - strlen(suffix);
	char *path = arena_alloc(arena, folder.length + 1 + length + 1 + stem + 1), *to = path + folder.length + 1;

	memcpy(path, folder.path, folder.length);
	path[folder.length] = '/';
	memcpy(to, name, length);
	memcpy(to + length + 1, name, stem);
	return path;
}

/* Makes room for `more` files at once, so that the list is copied only once. */
static void reserve_files(struct run_files *files, size_t more)
{
	size_t room = files->count + more > 2 * files->room ? files->count + more : 2 * files->room;

	if (files->count + more <= files->room)
		return;
	files->list = realloc(files->list, room * sizeof *files->list);
	files->room = room;
	if (files->list == NULL)
		die_no_memory();
}

/* Adds the file `name` in `folder`; reserve_files has made room for it. `length` is the length of the name. */
static void add_file(struct scan *scan, struct folder folder, const char *name, size_t length, const char *suffix)
{
	const char *path = make_path(scan->arena, folder, name, length, suffix);
	struct run_files *files = &scan->files;
	int fd = dirfd(folder.stream);
	struct stat st;

	if (fstatat(fd, name, &st, 0) != 0) {
		/* Report a broken link, but not a file that was removed after the directory was read; both cause
		 * ENOENT. */
		if (errno != ENOENT || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			problem_errno(scan, path, "stat the file");
		return;
	}
	if (S_ISDIR(st.st_mode))
		return;
	files->list[files->count++] = (struct dataset_file){
	    .op_type = folder.name,
	    .name = path + folder.length + 1 + length + 1,
	    .path = path,
	    .stat = file_stat_of(&st),
	    .has_hard_links = st.st_nlink > 1,
	};
}

/* Scans the directory of one op type. `name` is the last component of `path`. */
static void scan_op_type(struct scan *scan, int dir, const char *name, const char *path, const char *suffix)
{
	struct folder folder = list_folder(dir, name, path);

	if (folder.stream == NULL) {
		if (errno != ENOTDIR && errno != ENOENT)
			problem_errno(scan, path, "open the folder");
		return;
	}
	struct entries files = {0};

	if (!scan->folders)
		files = read_folder(scan, folder, suffix);

	reserve_files(&scan->files, files.count);
	for (size_t i = 0; i < files.count; i++)
		add_file(scan, folder, name_of(&files, i), files.list[i].length, suffix);
	free_entries(&files);
	closedir(folder.stream);
}

/* Scans one kind of files: "definitions", "workloads", "truths" or "approved". If `required`, a missing directory is
 * reported. */
static void scan_kind(struct scan *scan, int root, const char *kind, const char *suffix, bool required)
{
	struct folder folder = list_folder(root, kind, kind);

	if (folder.stream == NULL) {
		if (required || errno != ENOENT)
			problem_errno(scan, kind, "open the folder");
		return;
	}
	struct entries folders = read_folder(scan, folder, NULL);

	for (size_t i = 0; i < folders.count; i++) {
		const char *path = make_path(scan->arena, folder, name_of(&folders, i), folders.list[i].length, "");

		scan_op_type(scan, dirfd(folder.stream), path + folder.length + 1, path, suffix);
	}
	free_entries(&folders);
	closedir(folder.stream);
}

/* One kind of files that a thread scans. The two threads of dataset_scan share no data. */
struct walk {
	struct scan scan;
	int root;
	const char *kind, *suffix;
	bool required; /* if true, a missing directory is reported */
	struct walk *next; /* the kind that the same thread scans next; NULL: none */
};

static void *walk_kind(void *argument)
{
	for (struct walk *walk = argument; walk != NULL; walk = walk->next)
		scan_kind(&walk->scan, walk->root, walk->kind, walk->suffix, walk->required);
	return NULL;
}

/* Returns the list of files, and sets `owned` to the same pointer. The caller frees it. The list is not copied, because
 * it may have tens of thousands of entries. */
static const struct dataset_file *finish_files(struct scan *scan, int *count, void **owned)
{
	*owned = scan->files.list;
	*count = (int)scan->files.count;
	return scan->files.list != NULL ? scan->files.list : arena_array(scan->arena, 0, sizeof *scan->files.list);
}

static void finish_problems(struct dataset *out, struct scan *const *scans, int scan_count, struct arena *arena)
{
	size_t count = 0;

	for (int i = 0; i < scan_count; i++)
		count += scans[i]->problems.count;
	const char **problems = arena_array(arena, count, sizeof *problems);

	for (int i = 0; i < scan_count; i++) {
		for (size_t k = 0; k < scans[i]->problems.count; k++)
			problems[out->problem_count++] = scans[i]->problems.list[k];
		free(scans[i]->problems.list);
	}
	out->problems = problems;
}

/* Compares "op_type/name.json" of a definition with "op_type/name.jsonl" of a workload file, and ignores the 'l' at the
 * end. */
static int compare_pair(const struct dataset_file *definition, const struct dataset_file *workload)
{
	const char *a = definition->path + sizeof "definitions", *b = workload->path + sizeof "workloads";
	size_t length_a = strlen(a), length_b = strlen(b) - 1;
	int order = memcmp(a, b, length_a < length_b ? length_a : length_b);

	return order != 0 ? order : (length_a > length_b) - (length_a < length_b);
}

static int compare_path(const void *path, const void *file)
{
	return strcmp(path, ((const struct dataset_file *)file)->path);
}

static int compare_file_paths(const void *a, const void *b)
{
	return strcmp(((const struct dataset_file *)a)->path, ((const struct dataset_file *)b)->path);
}

/* Finds the definition's file in the folder `kind`, for example its workload file in "workloads" (`suffix` ".jsonl").
 * Returns NULL if the definition has no such file. */
static const struct dataset_file *find_file_of(const struct dataset_file *definition, const char *kind, const char *suffix,
					       const struct dataset_file *files, int count)
{
	char path[sizeof "workloads//.jsonl" + 2 * NAME_MAX];
	int length = count == 0 ? -1 : snprintf(path, sizeof path, "%s/%s/%s%s", kind, definition->op_type,
						definition->name, suffix);

	if (length < 0 || (size_t)length >= sizeof path)
		return NULL;
	return bsearch(path, files, (size_t)count, sizeof *files, compare_path);
}

static const struct dataset_file *find_workload(const struct dataset *dataset, const struct dataset_file *definition)
{
	return find_file_of(definition, "workloads", ".jsonl", dataset->workloads, dataset->workload_count);
}

/* Pairs definitions with workload files. The lists of definitions and of workload files have the same order, so one
 * merge pairs them. The order differs only for names such as "a" and "a.json": "a.json" sorts before "a.json.json", but
 * "a.jsonl" sorts after "a.json.jsonl". If the merge finds no workload file for a definition, the file is therefore
 * looked up separately. */
static void pair_files(struct dataset *out, struct arena *arena)
{
	const struct dataset_file **pairs = arena_array(arena, (size_t)out->definition_count, sizeof *pairs);
	int at = 0;

	for (int i = 0; i < out->definition_count; i++) {
		int order = 1;

		while (at < out->workload_count &&
		       (order = compare_pair(&out->definitions[i], &out->workloads[at])) > 0)
			at++;
		pairs[i] = at < out->workload_count && order == 0 ? &out->workloads[at]
		                                                  : find_workload(out, &out->definitions[i]);
	}
	out->workload_of = pairs;
}

static int open_root(const char *root, struct dataset *out, struct err *err)
{
	*out = (struct dataset){.fd = -1};
	if (strlen(root) >= sizeof out->root)
		return err_set(err, "the path of the dataset has %zu bytes, more than the system allows",
		               strlen(root));
	memcpy(out->root, root, strlen(root) + 1);
	out->fd = open_folder(AT_FDCWD, root);
	return out->fd < 0 ? err_errno(err, "%s: cannot open the dataset's folder", root) : 0;
}

int dataset_scan(const char *root, struct arena *arena, struct dataset *out, struct err *err)
{
	pthread_t thread;

	if (open_root(root, out, err) < 0)
		return -1;
	struct walk definitions = {{.arena = arena}, out->fd, "definitions", ".json", true, NULL};
	struct walk approvals = {{.arena = &out->workload_memory}, out->fd, "approved", ".json", false, NULL};
	struct walk truths = {{.arena = &out->workload_memory}, out->fd, "truths", ".py", false, &approvals};
	struct walk workloads = {{.arena = &out->workload_memory}, out->fd, "workloads", ".jsonl", false, &truths};
	bool threaded = pthread_create(&thread, NULL, walk_kind, &workloads) == 0;

	walk_kind(&definitions);
	if (threaded)
		pthread_join(thread, NULL);
	else
		walk_kind(&workloads);
	out->definitions = finish_files(&definitions.scan, &out->definition_count, &out->walked[0]);
	out->workloads = finish_files(&workloads.scan, &out->workload_count, &out->walked[1]);
	out->truths = finish_files(&truths.scan, &out->truth_count, &out->walked[2]);
	out->approvals = finish_files(&approvals.scan, &out->approval_count, &out->walked[3]);
	finish_problems(out, (struct scan *[]){&definitions.scan, &workloads.scan, &truths.scan, &approvals.scan}, 4, arena);
	pair_files(out, arena);
	return 0;
}

/* --- selected files ------------------------------------------------------------------------------------------ */

/* Splits "KIND/op_type/name.SUFFIX": finds where op_type and name begin, and how long they are. */
static bool split_path(const char *path, const char *kind, const char *suffix, struct pair *out)
{
	size_t head = strlen(kind), length = strlen(path), tail = strlen(suffix);

	if (strncmp(path, kind, head) != 0 || path[head] != '/' || !text_is_safe(path))
		return false;
	out->op_type = path + head + 1;
	out->op_length = strcspn(out->op_type, "/");
	out->name = out->op_type + out->op_length + 1;
	if (out->op_length == 0 || out->op_type[out->op_length] != '/' || out->op_type[0] == '.' || out->name[0] == '.' ||
	    strchr(out->name, '/') != NULL || !has_suffix(out->name, suffix))
		return false;
	out->name_length = length - (size_t)(out->name - path) - tail;
	return true;
}

bool dataset_definition_path(const char *path, char *out, size_t size)
{
	struct pair pair;

	if (!split_path(path, "definitions", ".json", &pair) && !split_path(path, "workloads", ".jsonl", &pair) &&
	    !split_path(path, "truths", ".py", &pair) && !split_path(path, "approved", ".json", &pair))
		return false;
	int length = snprintf(out, size, "definitions/%.*s/%.*s.json", (int)pair.op_length, pair.op_type,
	                      (int)pair.name_length, pair.name);

	return length > 0 && (size_t)length < size;
}

/* Adds one file by its path. Returns false if the path does not exist or is not a file. */
static bool look_at_file(const struct dataset *dataset, const char *path, const struct pair *pair, struct arena *arena,
                         struct dataset_file *out)
{
	struct stat st;

	if (fstatat(dataset->fd, path, &st, 0) != 0 || S_ISDIR(st.st_mode))
		return false;
	*out = (struct dataset_file){.op_type = arena_copy(arena, pair->op_type, pair->op_length),
	                             .name = arena_copy(arena, pair->name, pair->name_length),
	                             .path = arena_string(arena, path), .stat = file_stat_of(&st),
				     .has_hard_links = st.st_nlink > 1};
	return true;
}

int dataset_some(const char *root, const char *const *paths, int count, struct arena *arena, struct dataset *out,
                 struct err *err)
{
	if (open_root(root, out, err) < 0)
		return -1;
	struct dataset_file *definitions = arena_array(arena, (size_t)count, sizeof *definitions);
	struct dataset_file *workloads = arena_array(arena, (size_t)count, sizeof *workloads);
	struct dataset_file *truths = arena_array(arena, (size_t)count, sizeof *truths);
	struct dataset_file *approvals = arena_array(arena, (size_t)count, sizeof *approvals);
	struct pair pair;

	for (int i = 0; i < count; i++) {
		if (!split_path(paths[i], "definitions", ".json", &pair) ||
		    !look_at_file(out, paths[i], &pair, arena, &definitions[out->definition_count]))
			continue;
		const char *path = arena_printf(arena, "workloads/%.*s/%.*s.jsonl", (int)pair.op_length, pair.op_type,
		                                (int)pair.name_length, pair.name);
		const char *truth = arena_printf(arena, "truths/%.*s/%.*s.py", (int)pair.op_length, pair.op_type,
						 (int)pair.name_length, pair.name);
		const char *approval = arena_printf(arena, "approved/%.*s/%.*s.json", (int)pair.op_length, pair.op_type,
						    (int)pair.name_length, pair.name);

		out->definition_count++;
		out->workload_count += look_at_file(out, path, &pair, arena, &workloads[out->workload_count]);
		out->truth_count += look_at_file(out, truth, &pair, arena, &truths[out->truth_count]);
		out->approval_count += look_at_file(out, approval, &pair, arena, &approvals[out->approval_count]);
	}
	qsort(workloads, (size_t)out->workload_count, sizeof *workloads, compare_file_paths);
	qsort(truths, (size_t)out->truth_count, sizeof *truths, compare_file_paths);
	qsort(approvals, (size_t)out->approval_count, sizeof *approvals, compare_file_paths);
	out->definitions = definitions;
	out->workloads = workloads;
	out->truths = truths;
	out->approvals = approvals;
	out->some = true;
	pair_files(out, arena);
	return 0;
}

void dataset_look_at_folders(struct dataset *dataset, struct arena *arena)
{
	struct scan definitions = {.arena = arena, .folders = true}, workloads = definitions, truths = definitions,
		    approvals = definitions;

	scan_kind(&definitions, dataset->fd, "definitions", ".json", true);
	scan_kind(&workloads, dataset->fd, "workloads", ".jsonl", false);
	scan_kind(&truths, dataset->fd, "truths", ".py", false);
	scan_kind(&approvals, dataset->fd, "approved", ".json", false);
	dataset->problem_count = 0;
	finish_problems(dataset, (struct scan *[]){&definitions, &workloads, &truths, &approvals}, 4, arena);
}

/* --- files listed by the caller ------------------------------------------------------------------------------ */

/* Appends the file if its path is below the folder `kind` and ends in `suffix`. */
static bool take_listed(const struct listed_file *file, const char *kind, const char *suffix, struct arena *arena,
			struct dataset_file *files, int *count)
{
	struct pair pair;

	if (!split_path(file->path, kind, suffix, &pair))
		return false;
	files[(*count)++] = (struct dataset_file){.op_type = arena_copy(arena, pair.op_type, pair.op_length),
						  .name = arena_copy(arena, pair.name, pair.name_length),
						  .path = file->path,
						  .object = &file->object};
	return true;
}

int dataset_listed(const char *root, const struct listed_file *files, int count, struct arena *arena,
		   struct dataset *out, struct err *err)
{
	if (open_root(root, out, err) < 0)
		return -1;
	struct dataset_file *definitions = arena_array(arena, (size_t)count, sizeof *definitions);
	struct dataset_file *workloads = arena_array(arena, (size_t)count, sizeof *workloads);
	struct dataset_file *truths = arena_array(arena, (size_t)count, sizeof *truths);
	struct dataset_file *approvals = arena_array(arena, (size_t)count, sizeof *approvals);

	for (int i = 0; i < count; i++)
		if (!take_listed(&files[i], "definitions", ".json", arena, definitions, &out->definition_count) &&
		    !take_listed(&files[i], "workloads", ".jsonl", arena, workloads, &out->workload_count) &&
		    !take_listed(&files[i], "truths", ".py", arena, truths, &out->truth_count))
			take_listed(&files[i], "approved", ".json", arena, approvals, &out->approval_count);
	out->definitions = definitions;
	out->workloads = workloads;
	out->truths = truths;
	out->approvals = approvals;
	out->listed = true;
	pair_files(out, arena);
	return 0;
}

bool object_name_equal(const struct object_name *a, const struct object_name *b)
{
	return a->length > 0 && a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

void dataset_close(struct dataset *dataset)
{
	if (dataset->fd >= 0)
		close(dataset->fd);
	dataset->fd = -1;
	for (size_t i = 0; i < sizeof dataset->walked / sizeof *dataset->walked; i++) {
		free(dataset->walked[i]);
		dataset->walked[i] = NULL;
	}
	arena_free(&dataset->workload_memory);
}

const struct dataset_file *dataset_workload(const struct dataset *dataset, const struct dataset_file *definition)
{
	return dataset->workload_of[definition - dataset->definitions];
}

const struct dataset_file *dataset_truth(const struct dataset *dataset, const struct dataset_file *definition)
{
	return find_file_of(definition, "truths", ".py", dataset->truths, dataset->truth_count);
}

const struct dataset_file *dataset_approval(const struct dataset *dataset, const struct dataset_file *definition)
{
	return find_file_of(definition, "approved", ".json", dataset->approvals, dataset->approval_count);
}

/* The arithmetic is unsigned, so that a time after the year 2262 wraps around instead of causing undefined behavior. */
static int64_t nanoseconds(const struct timespec *time)
{
	return (int64_t)((uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec);
}

struct file_stat file_stat_of(const struct stat *st)
{
	return (struct file_stat){
	    .inode = st->st_ino,
	    .size = (uint64_t)st->st_size,
	    .mtime_ns = nanoseconds(&st->st_mtim),
	    .ctime_ns = nanoseconds(&st->st_ctim),
	};
}
