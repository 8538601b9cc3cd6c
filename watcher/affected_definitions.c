#include "watcher/affected_definitions.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/dataset.h"
#include "engine/solution_truth.h"
#include "watcher/server.h"

static void add_path(struct path_list *list, const char *path)
{
	if (list->count == list->room) {
		int room = list->room * 2 + 64;
		const char **longer = arena_array(list->arena, (size_t)room, sizeof *longer);

		if (list->count > 0)
			memcpy(longer, list->items, (size_t)list->count * sizeof *longer);
		list->items = longer;
		list->room = room;
	}
	list->items[list->count++] = arena_string(list->arena, path);
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void path_list_sort(struct path_list *list)
{
	int kept = 0;

	if (list->count > 1)
		qsort(list->items, (size_t)list->count, sizeof *list->items, compare_paths);
	for (int i = 0; i < list->count; i++)
		if (kept == 0 || strcmp(list->items[kept - 1], list->items[i]) != 0)
			list->items[kept++] = list->items[i];
	list->count = kept;
}

/* Adds all definitions in `known` that belong to `folder`, which may be "definitions/x/", "workloads/x/", "truths/x/"
 * or "approved/x/". Adds all definitions if `folder` is below "solutions/". Some of these definitions may already be
 * deleted. */
static void add_folder(const struct last_statuses *known, const char *folder, struct path_list *list)
{
	const bool solutions = is_solution_path(folder);
	const char *rest = solutions ? "/" : strchr(folder, '/');
	const char **paths;

	if (!solutions && strncmp(folder, "definitions/", 12) != 0 && strncmp(folder, "workloads/", 10) != 0 &&
	    strncmp(folder, "truths/", 7) != 0 && strncmp(folder, "approved/", 9) != 0)
		return;
	int count = last_statuses_paths(known, arena_printf(list->arena, "definitions%s", rest),
				       list->arena, &paths);

	for (int i = 0; i < count; i++)
		add_path(list, paths[i]);
}

void affected_definitions_add(const struct last_statuses *known, const char *path, struct path_list *list)
{
	char definition[PATH_MAX];

	if (path[strlen(path) - 1] == '/')
		add_folder(known, path, list);
	else if (dataset_definition_path(path, definition, sizeof definition) ||
		 solution_definition_path(path, definition, sizeof definition))
		add_path(list, definition);
}

/* The context of check_entry, a callback that searches for definitions whose workload lines name a changed blob. */
struct blob_question {
	const struct changes *changes;
	struct path_list *list;
};

/* Returns whether `changed` is the blob, or a folder ("folder/") that contains it. */
static bool names_blob(const char *blob, const char *changed)
{
	size_t length = strlen(changed);

	return changed[length - 1] == '/' ? strncmp(blob, changed, length) == 0 : strcmp(blob, changed) == 0;
}

/* Returns whether the path may name a blob, or a folder that contains blobs. A blob may lie anywhere below the root. */
static bool may_be_blob(const char *path)
{
	char definition[PATH_MAX];

	if (strncmp(path, "blob/", 5) == 0)
		return true;
	return path[strlen(path) - 1] != '/' && strcmp(path, SERVER_COOKIE) != 0 && strncmp(path, "tests/", 6) != 0 &&
	       !dataset_definition_path(path, definition, sizeof definition);
}

static void check_entry(const struct file_entry *entry, void *context)
{
	const struct blob_question *question = context;

	for (int i = 0; i < entry->blob_count; i++)
		for (int k = 0; k < question->changes->count; k++)
			if (names_blob(entry->blobs[i], question->changes->paths[k])) {
				add_path(question->list, entry->path);
				return;
			}
}

bool affected_definitions_add_blobs(struct store *store, const struct changes *changes, struct path_list *list)
{
	struct blob_question question = {changes, list};
	bool any = false;

	for (int i = 0; i < changes->count; i++)
		any = any || may_be_blob(changes->paths[i]);
	if (!any)
		return true;
	return store != NULL && store_each_file(store, "definitions/", check_entry, &question, NULL) == 0;
}
