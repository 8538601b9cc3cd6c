/* watcher - implements the functions of watcher.h, checks the root, and schedules polling. watch_dirs.c has the list of
 * watched directories, inotify_events.c reads the events, and polling.c polls directories.
 *
 * If the event queue overflows, or if another directory replaces the root, the function `rebuild` opens a new inotify
 * instance and watches all directories again. A new instance is used because it has no old events in its queue. All
 * paths are then reported as changed. */
#include "watcher/fs/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watcher/fs/inotify_events.h"
#include "watcher/fs/limits.h"
#include "watcher/fs/polling.h"
#include "watcher/fs/watch_dirs.h"

enum { AUDIT_MS = 1000, POLL_MS = 500, AWAY_MS = 100 };

/* ---- messages ------------------------------------------------------------------------------------------------- */

const char *watcher_notice(struct watcher *w)
{
	free(w->said);
	w->said = w->notices;
	if (w->said == NULL)
		return NULL;
	w->notices = w->said->next;
	return w->said->text;
}

/* ---- watching all directories again ----------------------------------------------------------------------------- */

static const char *outside_text(const struct limit *limit)
{
	return limit->outside ? " outside of this user namespace" : "";
}

static void add_limit_notice(struct watcher *w)
{
	if (w->counts.polled == 0 || w->counts.watched == 0 || w->warned_limit || w->warned_blind)
		return;
	const struct limit limit = limit_of("watches", "/proc");

	add_notice(w,
		   "the limit of inotify watches (%s is %ld) is reached, so %d of %d folders are polled twice a "
		   "second; to raise the limit, run `sudo sysctl %s=%ld`%s",
		   limit.name, limit.value, w->counts.polled, w->counts.polled + w->counts.watched, limit.name,
		   limit.value + w->counts.polled, outside_text(&limit));
	w->warned_limit = true;
}

static void open_inotify(struct watcher *w)
{
	if (w->inotify >= 0)
		close(w->inotify);
	w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->inotify >= 0 || w->warned_none)
		return;
	const char *why = strerror(errno);
	const struct limit limit = limit_of("instances", "/proc");

	add_notice(w,
		   "inotify cannot be used (%s), so all folders are polled twice a second; %s is %ld: to raise it, run "
		   "`sudo sysctl %s=%ld`%s",
		   why, limit.name, limit.value, limit.name, limit.value + 128, outside_text(&limit));
	w->warned_none = true;
}

static bool stat_root(const struct watcher *w, struct stat *st)
{
	char full[PATH_MAX];

	/* A directory counts as the root only if it has a subdirectory for the first tree ("definitions"). A root
	 * without this subdirectory is probably being copied or deleted. */
	return snprintf(full, sizeof full, "%s/%s", w->root, w->options.trees[0].path) < PATH_MAX && stat(w->root, st) == 0 &&
	       S_ISDIR(st->st_mode) && access(full, F_OK) == 0;
}

/* Opens a new inotify instance, and watches all directories again. Returns false if there is no root. */
static bool rebuild(struct watcher *w)
{
	struct stat st;

	open_inotify(w);
	watch_dirs_free(w);
	if (w->folder >= 0)
		close(w->folder);
	w->folder = -1;
	w->doubted = false;
	if (!stat_root(w, &st))
		return false;
	w->folder = open(w->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->folder < 0 || fstat(w->folder, &st) != 0)
		return false;
	w->generation += st.st_dev != w->device || st.st_ino != w->inode;
	w->device = st.st_dev;
	w->inode = st.st_ino;
	watch_dir_attach(w, NULL, 0, "", false);
	for (int i = 0; i < w->options.tree_count; i++)
		watch_dir_attach(w, &w->options.trees[i], 0, w->options.trees[i].path, false);
	add_limit_notice(w);
	return true;
}

/* Handles the case that the root no longer exists. */
static void root_away(struct watcher *w)
{
	if (!w->warned_away)
		add_notice(w, "%s no longer exists; reftest waits until it is back", w->root);
	w->warned_away = true;
	watch_dirs_free(w);
	if (w->folder >= 0)
		close(w->folder);
	w->folder = -1;
}

/* Checks that the path of the root still leads to the watched directory. If the path leads to another directory,
 * watches this directory. If there is no directory at the path, waits for one. */
static void audit_root(struct watcher *w)
{
	struct stat st;

	w->doubted = false;
	if (!stat_root(w, &st)) {
		if (w->folder >= 0)
			root_away(w);
		return;
	}
	if (w->folder >= 0 && st.st_dev == w->device && st.st_ino == w->inode)
		return;
	if (!rebuild(w))
		return;
	if (w->warned_away)
		add_notice(w, "%s is back", w->root);
	w->warned_away = false;
	watcher_events_lost(w);
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

static bool is_polling(const struct watcher *w)
{
	return w->counts.polled > 0 && w->folder >= 0;
}

int64_t watcher_deadline(const struct watcher *w)
{
	int64_t deadline = settle_deadline(&w->settle);

	deadline = w->audit_ms < deadline ? w->audit_ms : deadline;
	return is_polling(w) && w->poll_ms < deadline ? w->poll_ms : deadline;
}

void watcher_turn(struct watcher *w, int64_t now_ms)
{
	w->now_ms = now_ms;
	events_read(w);
	bool look = is_polling(w) && now_ms >= w->poll_ms, audit = look || now_ms >= w->audit_ms;

	if (w->doubted || audit)
		audit_root(w);
	if (look && w->folder >= 0)
		polling_look(w);
	if (look)
		w->poll_ms = now_ms + POLL_MS;
	if (audit && w->folder >= 0) {
		polling_audit(w);
		links_audit(w);
	}
	if (audit)
		w->audit_ms = now_ms + (w->folder >= 0 ? AUDIT_MS : AWAY_MS);
	if (w->folder < 0 && w->audit_ms > now_ms + AWAY_MS)
		w->audit_ms = now_ms + AWAY_MS;
}

/* ---- the interface ---------------------------------------------------------------------------------------------- */

/* Returns whether the file at `path` is complete. Returns false for the path "", which stands for all paths, so that it
 * settles only after SETTLE_MS without events. */
static bool is_complete(const char *path, void *context)
{
	const struct watcher *w = context;

	return path[0] != '\0' && w->options.complete(path, w->options.context);
}

bool watcher_changes(struct watcher *w, int64_t now_ms, struct arena *arena, struct changes *out)
{
	*out = (struct changes){0};
	if (w->folder < 0 || settle_deadline(&w->settle) > now_ms)
		return false;
	out->count = settle_turn(&w->settle, now_ms, is_complete, w, arena, &out->paths);
	if (out->count > 0 && out->paths[0][0] == '\0') {
		out->everything = true;
		out->count = 0;
		if (!rebuild(w))
			audit_root(w);
	}
	return out->everything || out->count > 0;
}

int watcher_fd(const struct watcher *w)
{
	return w->inotify;
}

void watcher_follow(struct watcher *w, const char *path)
{
	link_follow(w, path);
}

void watcher_hurry(struct watcher *w)
{
	w->poll_ms = w->audit_ms = 0;
}

int watcher_pending(const struct watcher *w)
{
	return w->settle.count;
}

bool watcher_has_root(const struct watcher *w)
{
	return w->folder >= 0;
}

int watcher_generation(const struct watcher *w)
{
	return w->generation;
}

struct watcher_counts watcher_counts(const struct watcher *w)
{
	return w->counts;
}

struct watcher *watcher_open(const struct watcher_options *options, struct err *err)
{
	struct watcher *w = calloc(1, sizeof *w);

	if (w == NULL || (w->root = strdup(options->root)) == NULL)
		die_no_memory();
	w->options = *options;
	w->inotify = w->folder = -1;
	if (rebuild(w))
		return w;
	err_errno(err, "%s: cannot watch the folder", options->root);
	watcher_close(w);
	return NULL;
}

void watcher_close(struct watcher *w)
{
	watch_dirs_free(w);
	settle_free(&w->settle);
	if (w->inotify >= 0)
		close(w->inotify);
	if (w->folder >= 0)
		close(w->folder);
	while (watcher_notice(w) != NULL)
		;
	free(w->root);
	free(w);
}
