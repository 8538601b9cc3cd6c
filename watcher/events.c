#include "watcher/events.h"

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/trace.h"
#include "watcher/places.h"

enum { EVENTS_BYTES = 64 * 1024 };

static void root_event(struct watcher *w, const struct inotify_event *event)
{
	w->doubted = true;
	for (int i = 0; i < w->options.tree_count && event->len > 0; i++)
		if (strcmp(w->options.trees[i].path, event->name) == 0)
			place_touched(w, &w->options.trees[i], 0, event->name);
}

static void place_event(struct watcher *w, const struct place *place, const struct inotify_event *event)
{
	bool gone = (event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
	bool named = (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0 || gone;
	bool written = (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB)) != 0;
	char path[PATH_MAX];

	place_path(place, event->name, path);
	if (path[0] == '\0')
		return;
	if ((event->mask & IN_ISDIR) == 0 && place_wants_file(place, event->name)) {
		enum touch touch = gone ? TOUCH_GONE : written ? TOUCH_WRITTEN : TOUCH_WRITING;

		/* What is written to under this name is a file: of what a link leads to, its own folder would hear. */
		if ((event->mask & ~(uint32_t)(IN_MODIFY | IN_CLOSE_WRITE)) == 0)
			settle_touch(&w->settle, path, touch, w->now_ms);
		else
			place_touch_file(w, place, event->name, touch);
	}
	if (named && place_wants_folder(place, event->name))
		place_touched(w, place->tree, place->level + 1, path);
}

/* The folder itself was deleted, moved or unmounted: its parent may know (or be no folder of ours, behind a link). */
static void self_event(struct watcher *w, const struct place *place)
{
	char path[PATH_MAX];

	if (place->tree == NULL) {
		w->doubted = true;
		return;
	}
	snprintf(path, sizeof path, "%s", place->path);
	place_touched(w, place->tree, place->level, path);
}

/* Inotify has let go of a watch: the folder is no more. */
static void watch_ended(struct watcher *w, int watch)
{
	struct place *place;

	while ((place = place_of_watch(w, watch, 0)) != NULL) {
		const struct watched_tree *tree = place->tree;
		int level = place->level;
		char path[PATH_MAX];

		snprintf(path, sizeof path, "%s", place->path);
		w->doubted = true;
		place_detach(w, path, true);
		if (tree != NULL)
			place_attach(w, tree, level, path, true);
	}
}

static void take_event(struct watcher *w, const struct inotify_event *event)
{
	struct place *place;

	w->counts.events++;
	if ((event->mask & IN_Q_OVERFLOW) != 0) {
		w->counts.overflows++;
		trace("watcher", "the queue of events overflowed");
		watcher_lose_track(w);
		return;
	}
	if ((event->mask & IN_IGNORED) != 0) {
		watch_ended(w, event->wd);
		return;
	}
	for (int nth = 0; (place = place_of_watch(w, event->wd, nth)) != NULL; nth++) {
		trace("watcher", "%08x %s/%s", event->mask, place->path, event->len > 0 ? event->name : "");
		if (event->len == 0 && (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) != 0)
			self_event(w, place);
		else if (place->tree == NULL)
			root_event(w, event);
		else if (event->len > 0)
			place_event(w, place, event);
	}
}

void events_read(struct watcher *w)
{
	_Alignas(struct inotify_event) char bytes[EVENTS_BYTES];
	ssize_t length;

	while (w->inotify >= 0 && (length = read(w->inotify, bytes, sizeof bytes)) > 0)
		for (char *at = bytes; at < bytes + length;) {
			const struct inotify_event *event = (const struct inotify_event *)(void *)at;

			take_event(w, event);
			at += sizeof *event + event->len;
		}
}
