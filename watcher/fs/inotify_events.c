#include "watcher/fs/inotify_events.h"

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/trace.h"
#include "watcher/fs/watch_dirs.h"

enum { EVENTS_BYTES = 64 * 1024 };

static void root_event(struct watcher *w, const struct inotify_event *event)
{
	w->doubted = true;
	for (int i = 0; i < w->options.tree_count && event->len > 0; i++)
		if (strcmp(w->options.trees[i].path, event->name) == 0)
			watch_dir_touched(w, &w->options.trees[i], 0, event->name);
}

static void watch_dir_event(struct watcher *w, const struct watch_dir *dir, const struct inotify_event *event)
{
	bool gone = (event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
	bool named = (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0 || gone;
	bool written = (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB)) != 0;
	char path[PATH_MAX];

	watch_dir_path(dir, event->name, path);
	if (path[0] == '\0')
		return;
	if ((event->mask & IN_ISDIR) == 0 && watch_dir_wants_file(dir, event->name)) {
		enum touch touch = gone ? TOUCH_GONE : written ? TOUCH_WRITTEN : TOUCH_WRITING;

		/* If the event has only these flags, the path names a regular file and not a symbolic link: a write
		 * through a link causes such an event only in the directory of the link's target. */
		if ((event->mask & ~(uint32_t)(IN_MODIFY | IN_CLOSE_WRITE)) == 0)
			settle_touch(&w->settle, path, touch, w->now_ms);
		else
			watch_dir_touch_file(w, dir, event->name, touch);
	}
	if (named && watch_dir_wants_folder(dir, event->name))
		watch_dir_touched(w, dir->tree, dir->level + 1, path);
}

/* Handles an event about the watched directory itself: it was deleted, moved or unmounted. The event is needed if the
 * directory is the target of a symbolic link, because its parent may not be watched. */
static void self_event(struct watcher *w, const struct watch_dir *dir)
{
	char path[PATH_MAX];

	if (dir->tree == NULL) {
		w->doubted = true;
		return;
	}
	snprintf(path, sizeof path, "%s", dir->path);
	watch_dir_touched(w, dir->tree, dir->level, path);
}

/* Handles the event IN_IGNORED: inotify has removed a watch, because the directory no longer exists. */
static void watch_ended(struct watcher *w, int watch)
{
	struct watch_dir *dir;

	while ((dir = watch_dir_of_watch(w, watch, 0)) != NULL) {
		const struct watched_tree *tree = dir->tree;
		int level = dir->level;
		char path[PATH_MAX];

		snprintf(path, sizeof path, "%s", dir->path);
		w->doubted = true;
		watch_dir_detach(w, path, true);
		if (tree != NULL)
			watch_dir_attach(w, tree, level, path, true);
	}
}

static void take_event(struct watcher *w, const struct inotify_event *event)
{
	struct watch_dir *dir;

	w->counts.events++;
	if ((event->mask & IN_Q_OVERFLOW) != 0) {
		w->counts.overflows++;
		trace("watcher", "the event queue overflowed");
		watcher_events_lost(w);
		return;
	}
	if ((event->mask & IN_IGNORED) != 0) {
		watch_ended(w, event->wd);
		return;
	}
	for (int nth = 0; (dir = watch_dir_of_watch(w, event->wd, nth)) != NULL; nth++) {
		trace("watcher", "%08x %s/%s", event->mask, dir->path, event->len > 0 ? event->name : "");
		if (event->len == 0 && (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) != 0)
			self_event(w, dir);
		else if (dir->tree == NULL)
			root_event(w, event);
		else if (event->len > 0)
			watch_dir_event(w, dir, event);
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
