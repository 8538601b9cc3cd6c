#include "dataset/linked_dataset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/string_list.h"
#include "base/unsafe_character.h"
#include "dataset/definition.h"

enum { NAME_BYTES = 200 }; /* the maximum length of the name or op_type of a definition */

static const char problem_file[] = "definition.json", problem_workloads[] = "workload.jsonl", problem_truth[] = "truth.py";

struct link {
	const char *path;   /* path below the root: "definitions/norm/x.json" */
	const char *target; /* absolute */
};

struct maker {
	struct arena arena;
	struct link *links; /* sorted by path when all links are known */
	size_t count, room;
	int definitions;
	struct err *err;
};

/* --- what the files are ---------------------------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);

	return length > tail && strcmp(text + length - tail, suffix) == 0;
}

static bool can_name_a_file(const char *text)
{
	return text != NULL && *text != '\0' && *text != '.' && strlen(text) <= NAME_BYTES && strchr(text, '/') == NULL &&
	       text_is_safe(text);
}

/* Returns the last component of an absolute path, without `suffix`. */
static const char *stem_of(struct maker *maker, const char *path, const char *suffix)
{
	const char *name = strrchr(path, '/') + 1;

	return ends_with(name, suffix) ? arena_copy(&maker->arena, name, strlen(name) - strlen(suffix)) : name;
}

/* Returns the folder of an absolute path; "" is the root folder. */
static const char *folder_of(struct maker *maker, const char *path)
{
	return arena_copy(&maker->arena, path, (size_t)(strrchr(path, '/') - path));
}

/* Reads a file as JSON. Returns NULL if the file is not JSON. In this case, definition_parse later reports the error
 * with its position. */
static cJSON *read_json(const char *path)
{
	struct buf bytes = {0};
	cJSON *json = NULL;

	if (file_read(AT_FDCWD, path, DEFINITION_BYTES, &bytes, NULL, NULL) == FILE_OK) {
		const struct json_text text = {.name = path, .text = bytes.data, .length = bytes.length, .first_line = 1};

		json = json_parse(&text, NULL);
	}
	buf_free(&bytes);
	return json;
}

static bool is_definition(const char *path)
{
	cJSON *json = read_json(path);
	bool is = json == NULL || (cJSON_HasObjectItem(json, "inputs") && cJSON_HasObjectItem(json, "outputs"));

	cJSON_Delete(json);
	return is;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the names of the files and folders in a folder, sorted, without hidden names. */
static struct string_list names_in(struct maker *maker, const char *path)
{
	struct string_list names = {.arena = &maker->arena};
	DIR *stream = opendir(path);
	const struct dirent *entry;

	while (stream != NULL && names.count < LINKED_FILES && (entry = readdir(stream)) != NULL)
		if (can_name_a_file(entry->d_name))
			string_list_add(&names, arena_string(&maker->arena, entry->d_name));
	if (stream != NULL)
		closedir(stream);
	if (names.count > 0)
		qsort(names.items, (size_t)names.count, sizeof *names.items, compare_texts);
	return names;
}

/* --- which links they get -------------------------------------------------------------------------------------- */

static void add_link(struct maker *maker, const char *path, const char *target)
{
	if (maker->count == maker->room) {
		struct link *more = arena_array(&maker->arena, maker->room * 2 + 64, sizeof *more);

		if (maker->count > 0)
			memcpy(more, maker->links, maker->count * sizeof *more);
		maker->links = more;
		maker->room = maker->room * 2 + 64;
	}
	maker->links[maker->count++] = (struct link){path, target};
}

static int compare_links(const void *a, const void *b)
{
	return strcmp(((const struct link *)a)->path, ((const struct link *)b)->path);
}

/* Sorts the links. Two links with the same path are an error. */
static int sort_links(struct maker *maker)
{
	if (maker->count > 0)
		qsort(maker->links, maker->count, sizeof *maker->links, compare_links);
	for (size_t i = 1; i < maker->count; i++)
		if (compare_links(&maker->links[i - 1], &maker->links[i]) == 0)
			return err_set(maker->err, "%s and %s have the same op_type and name; give one of them another name",
				       maker->links[i - 1].target, maker->links[i].target);
	return 0;
}

/* Adds the definition in the file `path`. If the file has no "op_type", the last component of `folder` is the op_type.
 * If the file has no "name", the argument `name` is the definition's name. */
static int add_definition(struct maker *maker, const char *path, const char *folder, const char *name,
			  const char *workloads, const char *truth)
{
	cJSON *json = read_json(path);
	const char *op_type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "op_type"));
	const char *own = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "name"));
	const char *last = strrchr(folder, '/') != NULL ? strrchr(folder, '/') + 1 : "";

	op_type = can_name_a_file(op_type) ? op_type : can_name_a_file(last) ? last : "definitions";
	own = can_name_a_file(own) ? own : name;
	add_link(maker, arena_printf(&maker->arena, "definitions/%s/%s.json", op_type, own), path);
	if (is_file(workloads))
		add_link(maker, arena_printf(&maker->arena, "workloads/%s/%s.jsonl", op_type, own), workloads);
	if (truth != NULL && is_file(truth))
		add_link(maker, arena_printf(&maker->arena, "truths/%s/%s.py", op_type, own), truth);
	cJSON_Delete(json);
	return maker->definitions++ < LINKED_FILES
		   ? 0
		   : err_set(maker->err, "%s: there are more than %d definitions", path, LINKED_FILES);
}

/* Adds the definition of a problem, i.e. of a folder with a file definition.json. */
static int add_problem(struct maker *maker, const char *folder)
{
	return add_definition(maker, arena_printf(&maker->arena, "%s/%s", folder, problem_file), folder_of(maker, folder),
			      strrchr(folder, '/') + 1, arena_printf(&maker->arena, "%s/%s", folder, problem_workloads),
			      arena_printf(&maker->arena, "%s/%s", folder, problem_truth));
}

static bool is_problem(struct maker *maker, const char *folder)
{
	return is_file(arena_printf(&maker->arena, "%s/%s", folder, problem_file));
}

bool linked_dataset_is_problem(const char *folder)
{
	struct maker maker = {0};
	bool is = is_problem(&maker, folder);

	arena_free(&maker.arena);
	return is;
}

bool linked_dataset_has_problems(const char *folder)
{
	struct maker maker = {0};
	struct string_list names = names_in(&maker, folder);
	bool has = is_problem(&maker, folder);

	for (int i = 0; i < names.count && !has; i++)
		has = is_problem(&maker, arena_printf(&maker.arena, "%s/%s", folder, names.items[i]));
	arena_free(&maker.arena);
	return has;
}

static int add_file(struct maker *maker, const char *path)
{
	if (strcmp(strrchr(path, '/') + 1, problem_file) == 0)
		return add_problem(maker, folder_of(maker, path));
	const char *folder = folder_of(maker, path), *stem = stem_of(maker, path, ".json");

	return add_definition(maker, path, folder, stem, arena_printf(&maker->arena, "%s/%s.jsonl", folder, stem),
			      NULL);
}

/* Adds the definitions of a folder. If the folder has a file definition.json, adds only this definition. Otherwise adds
 * the definition.json of each subfolder that has one, and each file in the folder that is a definition. */
static int add_folder(struct maker *maker, const char *folder)
{
	int before = maker->definitions;

	if (is_problem(maker, folder))
		return add_problem(maker, folder);
	struct string_list names = names_in(maker, folder);

	for (int i = 0; i < names.count; i++) {
		const char *path = arena_printf(&maker->arena, "%s/%s", folder, names.items[i]);
		int rc = is_folder(path) ? is_problem(maker, path) ? add_problem(maker, path) : 0
					 : ends_with(path, ".json") && is_file(path) && is_definition(path) ? add_file(maker, path) : 0;

		if (rc < 0)
			return -1;
	}
	if (maker->definitions == before)
		return err_set(maker->err,
			       "%s: the folder is not a dataset (it contains no folder definitions/), and it contains neither definitions "
			       "(*.json) nor problems (*/definition.json)", folder);
	return 0;
}

/* --- the links themselves -------------------------------------------------------------------------------------- */

/* Creates the folder that contains `path`, and the parents of this folder. */
static int make_folders(const char *path, struct err *err)
{
	char folder[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		if (snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path) >= (int)sizeof folder)
			return err_set(err, "%s: the path is too long", path);
		if (mkdir(folder, 0700) != 0 && errno != EEXIST)
			return err_errno(err, "%s: cannot create the folder", folder);
	}
	return 0;
}

/* Makes `link` a symbolic link to `target`. Another process may safely make the same link at the same time. */
static int make_link(struct maker *maker, const char *link, const char *target)
{
	char now[PATH_MAX];
	ssize_t length = readlink(link, now, sizeof now);

	if (length == (ssize_t)strlen(target) && memcmp(now, target, (size_t)length) == 0)
		return 0;
	const char *fresh = arena_printf(&maker->arena, "%s.%ld~", link, (long)getpid());

	if (make_folders(link, maker->err) < 0)
		return -1;
	unlink(fresh);
	if (symlink(target, fresh) != 0 || rename(fresh, link) != 0)
		return err_errno(maker->err, "%s: cannot create the link", link);
	return 0;
}

/* Removes the links in the folder `kind` (such as "definitions") that earlier calls of linked_dataset_make made, but
 * the present call did not. */
static void remove_others(struct maker *maker, const char *root, const char *kind)
{
	struct string_list folders = names_in(maker, arena_printf(&maker->arena, "%s/%s", root, kind));

	for (int i = 0; i < folders.count; i++) {
		const char *folder = arena_printf(&maker->arena, "%s/%s", kind, folders.items[i]);
		struct string_list files = names_in(maker, arena_printf(&maker->arena, "%s/%s", root, folder));

		for (int k = 0; k < files.count; k++) {
			const struct link link = {.path = arena_printf(&maker->arena, "%s/%s", folder, files.items[k])};

			if (bsearch(&link, maker->links, maker->count, sizeof link, compare_links) == NULL)
				unlink(arena_printf(&maker->arena, "%s/%s", root, link.path));
		}
	}
}

/* Writes the path of the linked dataset for `paths` to `root`. For a given cache folder, this path depends only on
 * `paths`, so a later run with the same paths finds the cache of this run. */
static int name_root(const struct string_list *paths, char *root, size_t size, struct err *err)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool own = cache != NULL && *cache == '/';
	struct hash *hash = hash_begin();
	char hex[DIGEST_HEX];
	struct digest digest;

	for (int i = 0; i < paths->count; i++)
		hash_add(hash, paths->items[i], strlen(paths->items[i]) + 1);
	digest = hash_end(hash);
	digest_hex(&digest, hex);
	if (!own && (home == NULL || *home != '/'))
		return err_set(err, "these definitions are in no dataset, and neither $XDG_CACHE_HOME nor $HOME names a folder for "
				    "their verdicts; set one of these variables");
	if (snprintf(root, size, "%s%s/reftest/linked/%.16s", own ? cache : home, own ? "" : "/.cache", hex) >= (int)size)
		return err_set(err, "the path of the cache folder is too long");
	return 0;
}

static int make_links(struct maker *maker, const char *root)
{
	if (make_folders(arena_printf(&maker->arena, "%s/definitions/", root), maker->err) < 0)
		return -1;
	remove_others(maker, root, "definitions");
	remove_others(maker, root, "workloads");
	remove_others(maker, root, "truths");
	for (size_t i = 0; i < maker->count; i++)
		if (make_link(maker, arena_printf(&maker->arena, "%s/%s", root, maker->links[i].path), maker->links[i].target) < 0)
			return -1;
	return maker->definitions;
}

bool linked_dataset_is_root(const char *root)
{
	static const char folder[] = "/reftest/linked/";
	const char *slash = strrchr(root, '/');
	size_t head = sizeof folder - 2; /* without the last slash */

	return slash != NULL && (size_t)(slash - root) >= head && strncmp(slash - head, folder, head + 1) == 0 &&
	       strlen(slash + 1) == 16 && strspn(slash + 1, "0123456789abcdef") == 16;
}

int linked_dataset_make(const char *const *paths, int count, char *root, size_t size, struct err *err)
{
	struct maker maker = {.err = err};
	struct string_list whole = {.arena = &maker.arena};
	char full[PATH_MAX];
	int rc = 0;

	for (int i = 0; i < count && rc == 0; i++) {
		if (realpath(paths[i], full) == NULL) {
			rc = err_errno(err, "%s: cannot read it", paths[i]);
			break;
		}
		string_list_add(&whole, arena_string(&maker.arena, full));
		rc = is_folder(full) ? add_folder(&maker, whole.items[i]) : add_file(&maker, whole.items[i]);
	}
	if (rc == 0)
		rc = sort_links(&maker) < 0 || name_root(&whole, root, size, err) < 0 ? -1 : make_links(&maker, root);
	arena_free(&maker.arena);
	return rc;
}
