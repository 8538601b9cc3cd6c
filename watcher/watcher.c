/* Turns, the root, and beginning anew. Whatever is too tangled to follow step by step (an overflow, another root) ends in
 * `rebuild`: every watch made anew on a fresh inotify, so that nothing old is left in the queue, and everything told as
 * changed. What the folders are is in places.c, what inotify says of them in events.c, what it cannot say in polling.c. */
#include "watcher/watcher.h"

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

#include "watcher/events.h"
#include "watcher/limits.h"
#include "watcher/places.h"
#include "watcher/polling.h"

enum { AUDIT_MS = 1000, POLL_MS = 500, AWAY_MS = 100 };

struct notice {
	struct notice *next;
	char text[];
};

/* ---- sentences ------------------------------------------------------------------------------------------------ */

void watcher_say(struct watcher *w, const char *format, ...)
{
	struct notice *new = malloc(sizeof *new + sizeof(struct err)), **end = &w->notices;
	va_list args;

	if (new == NULL)
		die_no_memory();
	va_start(args, format);
	vsnprintf(new->text, sizeof(struct err), format, args);
	va_end(args);
	new->next = NULL;
	while (*end != NULL)
		end = &(*end)->next;
	*end = new;
}

const char *watcher_notice(struct watcher *w)
{
	free(w->said);
	w->said = w->notices;
	if (w->said == NULL)
		return NULL;
	w->notices = w->said->next;
	return w->said->text;
}

/* ---- everything anew -------------------------------------------------------------------------------------------- */

static const char *where(const struct limit *limit)
{
	return limit->outside ? " outside of this user namespace" : "";
}

static void tell_limit(struct watcher *w)
{
	if (w->counts.polled == 0 || w->counts.watched == 0 || w->told_limit || w->told_blind)
		return;
	const struct limit limit = limit_of("watches", "/proc");

	watcher_say(w, "the limit of inotify watches is reached: %s is %ld, and %d of %d folders are polled twice a second instead; "
	               "`sudo sysctl %s=%ld`%s makes room for all", limit.name, limit.value, w->counts.polled,
	            w->counts.polled + w->counts.watched, limit.name, limit.value + w->counts.polled, where(&limit));
	w->told_limit = true;
}

static void open_inotify(struct watcher *w)
{
	if (w->inotify >= 0)
		close(w->inotify);
	w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->inotify >= 0 || w->told_none)
		return;
	const char *why = strerror(errno);
	const struct limit limit = limit_of("instances", "/proc");

	watcher_say(w, "inotify cannot be used (%s): %s is %ld; all folders are polled twice a second instead; `sudo sysctl "
	               "%s=%ld`%s makes room", why, limit.name, limit.value, limit.name, limit.value + 128, where(&limit));
	w->told_none = true;
}

static bool look_at_root(const struct watcher *w, struct stat *st)
{
	char full[PATH_MAX];

	/* A dataset without its first tree is none: somebody is about to delete it, or has just begun to copy it. */
	return snprintf(full, sizeof full, "%s/%s", w->root, w->options.trees[0].path) < PATH_MAX && stat(w->root, st) == 0 &&
	       S_ISDIR(st->st_mode) && access(full, F_OK) == 0;
}

/* Makes every watch anew. false: there is no root. */
static bool rebuild(struct watcher *w)
{
	struct stat st;

	open_inotify(w);
	places_free(w);
	if (w->folder >= 0)
		close(w->folder);
	w->folder = -1;
	w->doubted = false;
	if (!look_at_root(w, &st))
		return false;
	w->folder = open(w->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->folder < 0 || fstat(w->folder, &st) != 0)
		return false;
	w->generation += st.st_dev != w->device || st.st_ino != w->inode;
	w->device = st.st_dev;
	w->inode = st.st_ino;
	place_attach(w, NULL, 0, "", false);
	for (int i = 0; i < w->options.tree_count; i++)
		place_attach(w, &w->options.trees[i], 0, w->options.trees[i].path, false);
	tell_limit(w);
	return true;
}

/* Everything will be told once it is quiet; a queue that overflowed may do so again at once. */
void watcher_lose_track(struct watcher *w)
{
	settle_touch(&w->settle, "", TOUCH_WRITING, w->now_ms);
}

static void root_away(struct watcher *w)
{
	if (!w->told_away)
		watcher_say(w, "%s is gone; waiting for it to come back", w->root);
	w->told_away = true;
	places_free(w);
	if (w->folder >= 0)
		close(w->folder);
	w->folder = -1;
}

/* Is the root still the folder that is watched, and does it still stand where it did? */
static void audit_root(struct watcher *w)
{
	struct stat st;

	w->doubted = false;
	if (!look_at_root(w, &st)) {
		if (w->folder >= 0)
			root_away(w);
		return;
	}
	if (w->folder >= 0 && st.st_dev == w->device && st.st_ino == w->inode)
		return;
	if (!rebuild(w))
		return;
	if (w->told_away)
		watcher_say(w, "%s is back", w->root);
	w->told_away = false;
	watcher_lose_track(w);
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

/* ---- the face --------------------------------------------------------------------------------------------------- */

/* Of the path that stands for everything time alone decides. */
static bool is_ripe(const char *path, void *context)
{
	const struct watcher *w = context;

	return path[0] != '\0' && w->options.ripe(path, w->options.context);
}

bool watcher_changes(struct watcher *w, int64_t now_ms, struct arena *arena, struct changes *out)
{
	*out = (struct changes){0};
	if (w->folder < 0 || settle_deadline(&w->settle) > now_ms)
		return false;
	out->count = settle_turn(&w->settle, now_ms, is_ripe, w, arena, &out->paths);
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
	places_free(w);
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
