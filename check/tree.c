#include "check/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/unsafe_character.h"

struct walk {
	int root;
	struct findings *findings;
	struct string_list files;
	const char *suffix; /* the suffix that files must have; NULL: .json or .jsonl */
	int folders; /* that were listed */
};

static bool ends_in(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);

	return length > tail && strcmp(name + length - tail, suffix) == 0;
}

static void walk_folder(struct walk *walk, const char *folder, int depth);

/* Returns whether an entry is a folder, or a link to one. Calls stat only if the entry is a link, or if the filesystem
 * does not give the type of its entries (d_type). */
static bool is_folder(const struct walk *walk, const struct dirent *entry, const char *path)
{
	struct stat st;

	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(walk->root, path, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static void walk_entry(struct walk *walk, const char *folder, const struct dirent *entry, int depth)
{
	const char *name = entry->d_name, *path = arena_printf(walk->findings->arena, "%s/%s", folder, name);

	if (*name == '.')
		return;
	if (is_folder(walk, entry, path)) {
		if (depth < TREE_DEPTH && walk->folders <= TREE_FOLDERS)
			walk_folder(walk, path, depth + 1);
	} else if (walk->suffix != NULL ? ends_in(name, walk->suffix) : ends_in(name, ".json") || ends_in(name, ".jsonl")) {
		string_list_add(&walk->files, path);
	}
}

static void walk_folder(struct walk *walk, const char *folder, int depth)
{
	int fd = openat(walk->root, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	walk->folders++;
	if (walk->folders == TREE_FOLDERS + 1)
		findings_add(walk->findings, SEVERITY_ERROR, TOPIC_LAYOUT, folder, 0,
			     "there are more than %d folders; the folders beyond this limit are not checked", TREE_FOLDERS);
	if (stream == NULL) {
		if (errno != ENOENT && errno != ENOTDIR)
			findings_add(walk->findings, SEVERITY_ERROR, TOPIC_LAYOUT, folder, 0,
				     "cannot list the folder: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(stream)) != NULL) {
		if (text_is_safe(entry->d_name))
			walk_entry(walk, folder, entry, depth);
		else
			findings_add(walk->findings, SEVERITY_ERROR, TOPIC_LAYOUT, folder, 0,
				     "the name \"%s\" has control or invisible characters; rename it",
				     err_show(entry->d_name).text);
	}
	closedir(stream);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct string_list tree_files(int root, const char *folder, const char *suffix, struct findings *findings)
{
	struct walk walk = {.root = root, .findings = findings, .suffix = suffix, .files = {.arena = findings->arena}};

	walk_folder(&walk, folder, 1);
	if (walk.files.count > 0)
		qsort(walk.files.items, (size_t)walk.files.count, sizeof *walk.files.items, compare_text);
	return walk.files;
}

int tree_split(const char *path, int most, const char **parts, struct arena *arena)
{
	int count = 0;

	while (count < most) {
		size_t length = count + 1 < most ? strcspn(path, "/") : strlen(path);

		parts[count++] = arena_copy(arena, path, length);
		if (path[length] == '\0')
			break;
		path += length + 1;
	}
	return count;
}

const char *tree_stem(const char *part, const char *suffix, struct arena *arena)
{
	return ends_in(part, suffix) ? arena_copy(arena, part, strlen(part) - strlen(suffix)) : NULL;
}
