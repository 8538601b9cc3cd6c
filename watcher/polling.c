#include "watcher/polling.h"

#include <dirent.h>
#include <unistd.h>

#include "watcher/places.h"

/* Folders that came or went below a polled one. */
static void poll_folders(struct watcher *w, const char *path)
{
	const struct place *place = place_find(w, path);
	int fd = place == NULL ? -1 : place_open(w, place);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (stream == NULL && fd >= 0)
		close(fd);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		char child[PATH_MAX];

		place_path(place, entry->d_name, child);
		if (child[0] != '\0' && place_wants_folder(place, entry->d_name) && may_be_folder(entry))
			place_touched(w, place->tree, place->level + 1, child);
	}
	if (stream != NULL)
		closedir(stream);
}

/* The paths of the places that `wanted` picks: the list may change under whoever walks it. */
static int paths_of_places(const struct watcher *w, bool (*wanted)(const struct place *place), struct arena *arena,
                           const char ***paths)
{
	int count = 0, room = w->counts.watched + w->counts.polled;

	*paths = arena_array(arena, (size_t)room, sizeof **paths);
	for (const struct place *place = w->places; place != NULL && count < room; place = place->next)
		if (wanted(place))
			(*paths)[count++] = arena_string(arena, place->path);
	return count;
}

static bool is_polled(const struct place *place)
{
	return place->watch < 0 && place->tree != NULL;
}

/* A place whose end no event may tell of. */
static bool is_unsure(const struct place *place)
{
	return place->tree != NULL && (place->link || place->watch < 0);
}

void polling_look(struct watcher *w)
{
	struct arena arena = {0};
	const char **paths;
	int count = paths_of_places(w, is_polled, &arena, &paths);

	for (int i = 0; i < count; i++) {
		struct place *place = place_find(w, paths[i]);

		if (place == NULL || !place_still_there(w, place))
			continue; /* the audit below sees to it */
		if (place->level < place->tree->depth)
			poll_folders(w, paths[i]);
		place = place_find(w, paths[i]);
		if (place != NULL)
			place_look(w, place, true);
	}
	arena_free(&arena);
}

void polling_audit(struct watcher *w)
{
	struct arena arena = {0};
	const char **paths;
	int count = paths_of_places(w, is_unsure, &arena, &paths);

	for (int i = 0; i < count; i++) {
		const struct place *place = place_find(w, paths[i]);

		if (place != NULL)
			place_touched(w, place->tree, place->level, paths[i]);
	}
	for (int i = 0; i < w->options.tree_count; i++)
		place_touched(w, &w->options.trees[i], 0, w->options.trees[i].path);
	arena_free(&arena);
}
