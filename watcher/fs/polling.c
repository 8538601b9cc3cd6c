#include "watcher/fs/polling.h"

#include <dirent.h>
#include <unistd.h>

#include "watcher/fs/watch_dirs.h"

/* Finds subdirectories of a polled directory that are new or were replaced. */
static void poll_folders(struct watcher *w, const char *path)
{
	const struct watch_dir *dir = watch_dir_find(w, path);
	int fd = dir == NULL ? -1 : watch_dir_open(w, dir);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (stream == NULL && fd >= 0)
		close(fd);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		char child[PATH_MAX];

		watch_dir_path(dir, entry->d_name, child);
		if (child[0] != '\0' && watch_dir_wants_folder(dir, entry->d_name) && may_be_folder(entry))
			watch_dir_touched(w, dir->tree, dir->level + 1, child);
	}
	if (stream != NULL)
		closedir(stream);
}

/* Copies the paths of the watched directories for which `wanted` returns true. Returns the number of paths. The caller
 * iterates over this copy, because the list of directories may change during the iteration. */
static int paths_of_watch_dirs(const struct watcher *w, bool (*wanted)(const struct watch_dir *dir), struct arena *arena,
			   const char ***paths)
{
	int count = 0, room = w->counts.watched + w->counts.polled;

	*paths = arena_array(arena, (size_t)room, sizeof **paths);
	for (const struct watch_dir *dir = w->dirs; dir != NULL && count < room; dir = dir->next)
		if (wanted(dir))
			(*paths)[count++] = arena_string(arena, dir->path);
	return count;
}

static bool is_polled(const struct watch_dir *dir)
{
	return dir->watch < 0 && dir->tree != NULL;
}

/* Returns whether the directory can be removed or replaced without an inotify event. */
static bool is_unsure(const struct watch_dir *dir)
{
	return dir->tree != NULL && (dir->link || dir->watch < 0);
}

void polling_look(struct watcher *w)
{
	struct arena arena = {0};
	const char **paths;
	int count = paths_of_watch_dirs(w, is_polled, &arena, &paths);

	for (int i = 0; i < count; i++) {
		struct watch_dir *dir = watch_dir_find(w, paths[i]);

		if (dir == NULL || !watch_dir_still_there(w, dir))
			continue; /* polling_audit handles a directory that was removed or replaced */
		if (dir->level < dir->tree->depth)
			poll_folders(w, paths[i]);
		dir = watch_dir_find(w, paths[i]);
		if (dir != NULL)
			watch_dir_look(w, dir, true);
	}
	arena_free(&arena);
}

void polling_audit(struct watcher *w)
{
	struct arena arena = {0};
	const char **paths;
	int count = paths_of_watch_dirs(w, is_unsure, &arena, &paths);

	for (int i = 0; i < count; i++) {
		const struct watch_dir *dir = watch_dir_find(w, paths[i]);

		if (dir != NULL)
			watch_dir_touched(w, dir->tree, dir->level, paths[i]);
	}
	for (int i = 0; i < w->options.tree_count; i++)
		watch_dir_touched(w, &w->options.trees[i], 0, w->options.trees[i].path);
	arena_free(&arena);
}
