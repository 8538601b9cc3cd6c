#include "engine/named_files.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dataset/dataset.h"
#include "dataset/linked_dataset.h"

/* Returns whether a name is a path that exists. In a dataset, a plain word is the name of a definition, even if a file
 * with this name is in the working directory. */
static bool is_path(const char *name, bool in_dataset)
{
	struct stat st;
	size_t length = strlen(name);
	bool looks = strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		     (length > 5 && strcmp(name + length - 5, ".json") == 0);

	return (looks || !in_dataset) && stat(name, &st) == 0;
}

/* If `path` is an existing file of a dataset that belongs to a definition, returns the root of the dataset, and sets
 * `below` to the path relative to this root. Otherwise returns NULL. */
static const char *dataset_of(const char *path, const char **below, struct arena *arena)
{
	char full[PATH_MAX], unused[PATH_MAX];

	if (realpath(path, full) == NULL)
		return NULL;
	const char *root = dataset_around(arena_string(arena, full), below, arena);

	return root != NULL && dataset_definition_path(*below, unused, sizeof unused) ? root : NULL;
}

/* Returns whether the path `root` leads to the folder `full`. `root` may be relative and may contain symbolic links;
 * `full` is an absolute path without links. */
static bool is_same_folder(const char *root, const char *full)
{
	char whole[PATH_MAX];

	return realpath(root, whole) != NULL && strcmp(whole, full) == 0;
}

/* Sets program->root to `root`, a dataset that contains every named file. */
static int take_dataset(struct program *program, const char *root, const char **names, const char *const *below, int count,
			struct err *err)
{
	if (dataset_find_root(NULL, program->root, sizeof program->root, NULL) == 0 && is_same_folder(program->root, root))
		return 0;
	if (strlen(root) >= sizeof program->root)
		return err_set(err, "%s: the path is too long", root);
	memcpy(program->root, root, strlen(root) + 1);
	memcpy(names, below, (size_t)count * sizeof *names);
	return 0;
}

int named_files_root(struct program *program, const char **names, int *count, struct arena *arena, struct err *err)
{
	const char **below = arena_array(arena, (size_t)*count + 1, sizeof *below), *root = NULL;
	char here[PATH_MAX];
	int paths = 0, inside = 0;

	if (program->root[0] != '\0' || dataset_named_root(program->root_given) != NULL)
		return 0;
	bool in_dataset = *count > 0 && dataset_find_root(NULL, here, sizeof here, NULL) == 0;

	for (int i = 0; i < *count; i++) {
		if (!is_path(names[i], in_dataset))
			continue;
		const char *found = dataset_of(names[i], &below[i], arena);

		paths++;
		inside += found != NULL && (root == NULL || strcmp(found, root) == 0);
		root = found != NULL && root == NULL ? found : root;
	}
	if (paths == 0)
		return 0;
	if (paths < *count || (inside > 0 && inside < paths))
		return inside == paths ? 0
				       : err_set(err, "names of definitions, files of a dataset and files outside a dataset cannot be combined; "
						      "files of two datasets cannot be combined either; run one command for "
						      "each kind and each dataset");
	if (inside == paths)
		return take_dataset(program, root, names, below, *count, err);
	int made = linked_dataset_make(names, *count, program->root, sizeof program->root, err);

	*count = 0;
	return made;
}
