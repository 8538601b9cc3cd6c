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

/* The walk costs a folder one openat and its entries one fstatat each, relative to the folder, so the kernel looks up
 * single names. Folders are taken in the order of their paths and so are the names in each, which leaves the whole
 * sorted without ever being sorted as one. */

/* The two parts of a path that name a definition. */
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

/* `source` says who named this root: "--root", "$REFTEST_ROOT", … */
static int take_root(const char *path, const char *source, char *root, size_t size, struct err *err)
{
	char folder[PATH_MAX];

	if (strlen(path) >= size || strlen(path) + sizeof "/definitions" > sizeof folder)
		return err_set(err, "%s names a path of %zu bytes, more than the system can open", source,
		               strlen(path));
	snprintf(folder, sizeof folder, "%s/definitions", path);
	if (!is_folder(path))
		return err_set(err, "%s: there is no such folder; %s must name a dataset", path, source);
	if (!is_folder(folder))
		return err_set(err,
		               "%s: this folder, named by %s, has no folder definitions in it, so it is no dataset",
		               path, source);
	memcpy(root, path, strlen(path) + 1);
	return 0;
}

/* The working directory is ".", its parents have their full paths. */
static int find_parent(char *root, size_t size, struct err *err)
{
	char here[PATH_MAX];

	if (is_folder("definitions"))
		return take_root(".", "the working directory", root, size, err);
	if (getcwd(here, sizeof here) == NULL)
		return err_errno(err, "cannot find out the working directory; name the dataset by --root DIR");
	for (char *slash = strrchr(here, '/'); slash != NULL; slash = strrchr(here, '/')) {
		*slash = '\0';
		if (take_root(*here == '\0' ? "/" : here, "a parent folder", root, size, NULL) == 0)
			return 0;
	}
	return err_set(err,
	               "there is no dataset here: neither the working directory nor a parent has a folder definitions; "
	               "name one by --root DIR or in $REFTEST_ROOT");
}

/* And who named it. */
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

struct files {
	struct dataset_file *list;
	size_t count, room;
};

struct problems {
	const char **list;
	size_t count, room;
};

struct scan {
	struct arena *arena;
	bool folders; /* whether each can be opened is all that is asked */
	struct files files;
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

/* Names that end up in messages, line by line. */
static bool prints(const char *name)
{
	for (; *name != '\0'; name++)
		if ((unsigned char)*name < 0x20 || *name == 0x7F)
			return false;
	return true;
}

/* "x.json" has the suffix ".json"; ".json" alone is hidden and nothing. */
static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);

	return length > tail && strcmp(name + length - tail, suffix) == 0;
}

/* An open folder, and its path relative to the root. */
struct folder {
	DIR *stream;
	const char *path;
};

/* Paths relative to the root, sorted, strings in the arena; the list itself is for the caller to free. */
struct paths {
	const char **list;
	size_t count, room;
};

/* O_NONBLOCK: a link may lead to a pipe. */
static int open_folder(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
}

/* stream NULL, with errno, if it cannot be listed. */
static struct folder list_folder(int dir, const char *name, const char *path)
{
	int fd = open_folder(dir, name);
	struct folder folder = {.stream = fd < 0 ? NULL : fdopendir(fd), .path = path};

	if (fd >= 0 && folder.stream == NULL) {
		int number = errno;

		close(fd);
		errno = number;
	}
	return folder;
}

static int compare_files(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Folders sort as what is in them does, with a '/' behind: "a-b/" comes before "a/". */
static int compare_folders(const void *a, const void *b)
{
	const char *left = *(const char *const *)a, *right = *(const char *const *)b;
	size_t same = 0;

	while (left[same] != '\0' && left[same] == right[same])
		same++;
	unsigned char l = left[same] == '\0' ? '/' : (unsigned char)left[same];
	unsigned char r = right[same] == '\0' ? '/' : (unsigned char)right[same];

	return (l > r) - (l < r);
}

/* May the entry be what is looked for: a folder (`suffix` NULL), or a file with this suffix? */
static bool is_candidate(const struct dirent *entry, const char *suffix)
{
	bool unsure = entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;

	if (entry->d_name[0] == '.')
		return false;
	return suffix == NULL ? entry->d_type == DT_DIR || unsure
	                      : entry->d_type != DT_DIR && has_suffix(entry->d_name, suffix);
}

/* "FOLDER/NAME", by hand: there are tens of thousands, and printf takes as long as the kernel does. */
static const char *join(struct arena *arena, const char *folder, const char *name)
{
	size_t length = strlen(folder), tail = strlen(name);
	char *path = arena_alloc(arena, length + 1 + tail + 1);

	memcpy(path, folder, length);
	path[length] = '/';
	memcpy(path + length + 1, name, tail);
	return path;
}

static struct paths read_folder(struct scan *scan, struct folder folder, const char *suffix)
{
	struct paths paths = {0};
	const struct dirent *entry;

	for (errno = 0; (entry = readdir(folder.stream)) != NULL; errno = 0) {
		if (!is_candidate(entry, suffix))
			continue;
		if (!prints(entry->d_name)) {
			problem(scan,
			        arena_printf(scan->arena,
			                     "%s/%s: the name has control characters, so this is left out; rename it",
			                     folder.path, err_show(entry->d_name).text));
			continue;
		}
		paths.list = grow(paths.list, paths.count, &paths.room, sizeof *paths.list);
		paths.list[paths.count++] = join(scan->arena, folder.path, entry->d_name);
	}
	if (errno != 0)
		problem_errno(scan, folder.path, "list the whole folder");
	if (paths.count > 1)
		qsort(paths.list, paths.count, sizeof *paths.list, suffix == NULL ? compare_folders : compare_files);
	return paths;
}

static const char *last_name(const char *path)
{
	return strrchr(path, '/') + 1;
}

static void add_file(struct scan *scan, struct folder folder, const char *path, const char *suffix)
{
	const char *name = last_name(path);
	struct files *files = &scan->files;
	int fd = dirfd(folder.stream);
	struct stat st;

	if (fstatat(fd, name, &st, 0) != 0) {
		if (errno != ENOENT || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) /* else it is just gone */
			problem_errno(scan, path, "look at the file");
		return;
	}
	if (S_ISDIR(st.st_mode))
		return;
	files->list = grow(files->list, files->count, &files->room, sizeof *files->list);
	files->list[files->count++] = (struct dataset_file){
	    .op_type = last_name(folder.path),
	    .name = arena_copy(scan->arena, name, strlen(name) - strlen(suffix)),
	    .path = path,
	    .stat = file_stat_of(&st),
	};
}

static void scan_op_type(struct scan *scan, int dir, const char *path, const char *suffix)
{
	struct folder folder = list_folder(dir, last_name(path), path);

	if (folder.stream == NULL) {
		if (errno != ENOTDIR && errno != ENOENT)
			problem_errno(scan, path, "open the folder");
		return;
	}
	struct paths files = {0};

	if (!scan->folders)
		files = read_folder(scan, folder, suffix);

	for (size_t i = 0; i < files.count; i++)
		add_file(scan, folder, files.list[i], suffix);
	free(files.list);
	closedir(folder.stream);
}

/* `kind`: "definitions" or "workloads". `required`: its absence is told too. */
static void scan_kind(struct scan *scan, int root, const char *kind, const char *suffix, bool required)
{
	struct folder folder = list_folder(root, kind, kind);

	if (folder.stream == NULL) {
		if (required || errno != ENOENT)
			problem_errno(scan, kind, "open the folder");
		return;
	}
	struct paths folders = read_folder(scan, folder, NULL);

	for (size_t i = 0; i < folders.count; i++)
		scan_op_type(scan, dirfd(folder.stream), folders.list[i], suffix);
	free(folders.list);
	closedir(folder.stream);
}

/* The walk of one kind, as a thread is given it. Nothing is shared with the other. */
struct walk {
	struct scan scan;
	int root;
	const char *kind, *suffix;
	bool required; /* its absence is told too */
};

static void *walk_kind(void *argument)
{
	struct walk *walk = argument;

	scan_kind(&walk->scan, walk->root, walk->kind, walk->suffix, walk->required);
	return NULL;
}

static const struct dataset_file *finish_files(struct scan *scan, int *count)
{
	struct dataset_file *files = arena_array(scan->arena, scan->files.count, sizeof *files);

	if (scan->files.count > 0)
		memcpy(files, scan->files.list, scan->files.count * sizeof *files);
	*count = (int)scan->files.count;
	free(scan->files.list);
	return files;
}

static void finish_problems(struct dataset *out, struct scan *first, struct scan *second, struct arena *arena)
{
	size_t count = first->problems.count + second->problems.count;
	const char **problems = arena_array(arena, count, sizeof *problems);

	for (size_t i = 0; i < count; i++)
		problems[i] = i < first->problems.count ? first->problems.list[i]
		                                        : second->problems.list[i - first->problems.count];
	out->problems = problems;
	out->problem_count = (int)count;
	free(first->problems.list);
	free(second->problems.list);
}

/* Order of "op_type/name.json" in two paths below different folders: what follows the first '/', without the 'l'. */
static int compare_pair(const struct dataset_file *definition, const struct dataset_file *workload)
{
	const char *a = strchr(definition->path, '/') + 1, *b = strchr(workload->path, '/') + 1;
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

static const struct dataset_file *find_workload(const struct dataset *dataset, const struct dataset_file *definition)
{
	char path[sizeof "workloads//.jsonl" + 2 * NAME_MAX];
	int length = snprintf(path, sizeof path, "workloads/%s/%s.jsonl", definition->op_type, definition->name);

	if (dataset->workload_count == 0 || length < 0 || (size_t)length >= sizeof path)
		return NULL;
	return bsearch(path, dataset->workloads, (size_t)dataset->workload_count, sizeof *dataset->workloads,
	               compare_path);
}

/* Both lists are sorted alike, so one walk side by side pairs them; but for names with ".json" inside, which the 'l'
 * sorts otherwise. Whoever is alone after the walk is therefore looked for. */
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
		return err_set(err, "the path of the dataset has %zu bytes, more than the system can open",
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
	struct walk definitions = {{.arena = arena}, out->fd, "definitions", ".json", true};
	struct walk workloads = {{.arena = &out->workload_memory}, out->fd, "workloads", ".jsonl", false};
	bool threaded = pthread_create(&thread, NULL, walk_kind, &workloads) == 0;

	walk_kind(&definitions);
	if (threaded)
		pthread_join(thread, NULL);
	else
		walk_kind(&workloads);
	out->definitions = finish_files(&definitions.scan, &out->definition_count);
	out->workloads = finish_files(&workloads.scan, &out->workload_count);
	finish_problems(out, &definitions.scan, &workloads.scan, arena);
	pair_files(out, arena);
	return 0;
}

/* --- some of it ---------------------------------------------------------------------------------------------- */

/* "KIND/op_type/name.SUFFIX": where op_type and name begin, and how long they are. */
static bool split_path(const char *path, const char *kind, const char *suffix, struct pair *out)
{
	size_t head = strlen(kind), length = strlen(path), tail = strlen(suffix);

	if (strncmp(path, kind, head) != 0 || path[head] != '/' || !prints(path))
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

	if (!split_path(path, "definitions", ".json", &pair) && !split_path(path, "workloads", ".jsonl", &pair))
		return false;
	int length = snprintf(out, size, "definitions/%.*s/%.*s.json", (int)pair.op_length, pair.op_type,
	                      (int)pair.name_length, pair.name);

	return length > 0 && (size_t)length < size;
}

/* One file by its path; false: it is not there, or no file. */
static bool look_at_file(const struct dataset *dataset, const char *path, const struct pair *pair, struct arena *arena,
                         struct dataset_file *out)
{
	struct stat st;

	if (fstatat(dataset->fd, path, &st, 0) != 0 || S_ISDIR(st.st_mode))
		return false;
	*out = (struct dataset_file){.op_type = arena_copy(arena, pair->op_type, pair->op_length),
	                             .name = arena_copy(arena, pair->name, pair->name_length),
	                             .path = arena_string(arena, path), .stat = file_stat_of(&st)};
	return true;
}

int dataset_some(const char *root, const char *const *paths, int count, struct arena *arena, struct dataset *out,
                 struct err *err)
{
	if (open_root(root, out, err) < 0)
		return -1;
	struct dataset_file *definitions = arena_array(arena, (size_t)count, sizeof *definitions);
	struct dataset_file *workloads = arena_array(arena, (size_t)count, sizeof *workloads);
	struct pair pair;

	for (int i = 0; i < count; i++) {
		if (!split_path(paths[i], "definitions", ".json", &pair) ||
		    !look_at_file(out, paths[i], &pair, arena, &definitions[out->definition_count]))
			continue;
		const char *path = arena_printf(arena, "workloads/%.*s/%.*s.jsonl", (int)pair.op_length, pair.op_type,
		                                (int)pair.name_length, pair.name);

		out->definition_count++;
		out->workload_count += look_at_file(out, path, &pair, arena, &workloads[out->workload_count]);
	}
	qsort(workloads, (size_t)out->workload_count, sizeof *workloads, compare_file_paths);
	out->definitions = definitions;
	out->workloads = workloads;
	out->some = true;
	pair_files(out, arena);
	return 0;
}

void dataset_look_at_folders(struct dataset *dataset, struct arena *arena)
{
	struct scan definitions = {.arena = arena, .folders = true}, workloads = definitions;

	scan_kind(&definitions, dataset->fd, "definitions", ".json", true);
	scan_kind(&workloads, dataset->fd, "workloads", ".jsonl", false);
	finish_problems(dataset, &definitions, &workloads, arena);
}

/* --- what somebody else lists -------------------------------------------------------------------------------- */

/* Appends the file if its path is one of this kind. */
static bool take_listed(const struct listed_file *file, const char *kind, const char *suffix, struct arena *arena,
			struct dataset_file *files, int *count)
{
	struct pair pair;

	if (!split_path(file->path, kind, suffix, &pair))
		return false;
	files[(*count)++] = (struct dataset_file){.op_type = arena_copy(arena, pair.op_type, pair.op_length),
						  .name = arena_copy(arena, pair.name, pair.name_length),
						  .path = file->path,
						  .object = file->object};
	return true;
}

int dataset_listed(const char *root, const struct listed_file *files, int count, struct arena *arena,
		   struct dataset *out, struct err *err)
{
	if (open_root(root, out, err) < 0)
		return -1;
	struct dataset_file *definitions = arena_array(arena, (size_t)count, sizeof *definitions);
	struct dataset_file *workloads = arena_array(arena, (size_t)count, sizeof *workloads);

	for (int i = 0; i < count; i++)
		if (!take_listed(&files[i], "definitions", ".json", arena, definitions, &out->definition_count))
			take_listed(&files[i], "workloads", ".jsonl", arena, workloads, &out->workload_count);
	out->definitions = definitions;
	out->workloads = workloads;
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
	arena_free(&dataset->workload_memory);
}

const struct dataset_file *dataset_workload(const struct dataset *dataset, const struct dataset_file *definition)
{
	return dataset->workload_of[definition - dataset->definitions];
}

/* Unsigned, so that a time beyond the year 2262 wraps instead of overflowing: it still tells two times apart. */
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
