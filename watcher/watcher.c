/* Places and turns. A place is one folder as a path leads to it; two links to one folder are two places with one watch.
 * Whatever is too tangled to follow step by step (an overflow, another root) ends in `rebuild`: every watch made anew
 * on a fresh inotify, so that nothing old is left in the queue, and everything told as changed. */
#include "watcher/watcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/trace.h"
#include "watcher/shelf.h"

enum { AUDIT_MS = 1000, POLL_MS = 500, AWAY_MS = 100, WATCH_BUCKETS = 1024, EVENTS_BYTES = 64 * 1024 };

/* EXCL_UNLINK: what is written to a file that has lost its name is nobody's business. */
static const uint32_t mask = IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                             IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;

struct place {
	struct place *next, *next_of_watch;
	const struct watched_tree *tree; /* NULL: the root */
	int level;                       /* 0: the tree's own folder */
	int watch;                       /* inotify's descriptor; -1: polled */
	bool link;                       /* its name is a symbolic link */
	dev_t device;
	ino_t inode;
	struct shelf *shelf;             /* of a polled one */
	char path[];                     /* relative to the root, "" is the root */
};

/* A symbolic link to a file, or to nothing yet: the folder that it leads to may be nobody's. */
struct linked {
	struct linked *next;
	const struct watched_tree *tree; /* should it come to lead to a folder: whose, and how far down; NULL: a file's */
	int level;
	struct stat st;
	char path[];
};

struct notice {
	struct notice *next;
	char text[];
};

struct watcher {
	struct watcher_options options;
	char *root;         /* owned */
	int inotify;        /* -1: none to be had, everything is polled */
	int folder;         /* the root's descriptor; -1: it is away */
	dev_t device;
	ino_t inode;
	bool doubted;       /* look whether the root is still the root */
	bool told_away, told_limit, told_blind, told_none;
	int generation;
	struct place *places;
	struct place *by_watch[WATCH_BUCKETS];
	struct linked *linked;
	struct settle settle; /* the path "" stands for everything */
	struct notice *notices, *said;
	struct watcher_counts counts;
	int64_t now_ms, audit_ms, poll_ms;
};

/* ---- sentences ------------------------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void notice(struct watcher *w, const char *format, ...)
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

/* ---- names ---------------------------------------------------------------------------------------------------- */

static bool name_counts(const struct place *place, const char *name)
{
	const struct watched_tree *tree = place->tree;

	if (tree == NULL || place->level < tree->files_from)
		return false;
	if (tree->suffix == NULL)
		return true;
	size_t length = strlen(name), tail = strlen(tree->suffix);

	return name[0] != '.' && length > tail && strcmp(name + length - tail, tree->suffix) == 0;
}

/* May a name in this place be a folder that is to be watched? */
static bool folder_counts(const struct place *place, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || place->tree == NULL)
		return false;
	return place->level < place->tree->depth && (name[0] != '.' || place->tree->suffix == NULL);
}

static void path_of(const struct place *place, const char *name, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s%s%s", place->path, place->path[0] != '\0' ? "/" : "", name) >= PATH_MAX)
		path[0] = '\0'; /* nothing that the system could open */
}

/* ---- links to files -------------------------------------------------------------------------------------------- */

static bool is_link(const struct watcher *w, const char *path)
{
	struct stat st;

	return fstatat(w->folder, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static void note_link(struct watcher *w, const struct watched_tree *tree, int level, const char *path)
{
	size_t length = strlen(path) + 1;
	struct linked *linked = w->linked;

	while (linked != NULL && strcmp(linked->path, path) != 0)
		linked = linked->next;
	if (linked == NULL) {
		linked = calloc(1, sizeof *linked + length);
		if (linked == NULL)
			die_no_memory();
		memcpy(linked->path, path, length);
		linked->next = w->linked;
		w->linked = linked;
	}
	linked->tree = tree;
	linked->level = level;
	if (fstatat(w->folder, path, &linked->st, 0) != 0)
		linked->st = (struct stat){0};
}

static bool same_stat(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size && a->st_mode == b->st_mode &&
	       memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) == 0 &&
	       memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim) == 0;
}

static void folder_touched(struct watcher *w, const struct watched_tree *tree, int level, const char *path);

static void audit_links(struct watcher *w)
{
	for (struct linked **at = &w->linked; *at != NULL;) {
		struct linked *linked = *at;
		struct stat st = {0};

		if (!is_link(w, linked->path)) { /* whatever made it a file, or nothing, was told */
			*at = linked->next;
			free(linked);
			continue;
		}
		if (fstatat(w->folder, linked->path, &st, 0) != 0)
			st = (struct stat){0};
		at = &linked->next;
		if (same_stat(&st, &linked->st))
			continue;
		linked->st = st;
		if (!S_ISDIR(st.st_mode))
			settle_touch(&w->settle, linked->path, TOUCH_WRITTEN, w->now_ms);
		else if (linked->tree != NULL)
			folder_touched(w, linked->tree, linked->level, linked->path);
	}
}

static void touch_file(struct watcher *w, const struct place *place, const char *name, enum touch touch)
{
	char path[PATH_MAX];

	path_of(place, name, path);
	if (path[0] == '\0')
		return;
	if (touch != TOUCH_GONE && is_link(w, path)) {
		note_link(w, NULL, 0, path);
		touch = TOUCH_WRITTEN; /* a link is never half made */
	}
	settle_touch(&w->settle, path, touch, w->now_ms);
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

static struct place **bucket_of(struct watcher *w, int watch)
{
	return &w->by_watch[(unsigned)watch % WATCH_BUCKETS];
}

static struct place *find_place(const struct watcher *w, const char *path)
{
	struct place *place = w->places;

	while (place != NULL && strcmp(place->path, path) != 0)
		place = place->next;
	return place;
}

static bool watch_is_used(struct watcher *w, int watch)
{
	const struct place *place = *bucket_of(w, watch);

	while (place != NULL && place->watch != watch)
		place = place->next_of_watch;
	return place != NULL;
}

/* `gone`: inotify has let go of the watch itself. */
static void free_place(struct watcher *w, struct place *place, bool gone)
{
	if (place->watch >= 0) {
		struct place **at = bucket_of(w, place->watch);

		while (*at != place)
			at = &(*at)->next_of_watch;
		*at = place->next_of_watch;
		if (!gone && !watch_is_used(w, place->watch))
			inotify_rm_watch(w->inotify, place->watch);
	}
	shelf_free(place->shelf);
	*(place->watch >= 0 ? &w->counts.watched : &w->counts.polled) -= 1;
	free(place);
}

/* Filesystems of which the kernel does not hear who else writes to them. */
static bool is_blind(const char *full)
{
	static const long blind[] = {
	    NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, FUSE_SUPER_MAGIC, V9FS_MAGIC, AFS_SUPER_MAGIC, AFS_FS_MAGIC, CODA_SUPER_MAGIC,
	    CEPH_SUPER_MAGIC, OCFS2_SUPER_MAGIC, NCP_SUPER_MAGIC, 0xFE534D42 /* SMB2 */, 0xFF534D42 /* CIFS */,
	    0x01161970 /* GFS2 */, 0x0BD00BD0 /* Lustre */, 0x47504653 /* GPFS */, 0x786F4256 /* VirtualBox shares */,
	    0xBACBACBC /* VMware shares */, 0x7C7C6673 /* Parallels shares */,
	};
	struct statfs fs;

	if (statfs(full, &fs) != 0)
		return false;
	for (size_t i = 0; i < sizeof blind / sizeof *blind; i++)
		if (((unsigned long)fs.f_type & 0xFFFFFFFFu) == (unsigned long)blind[i])
			return true;
	return false;
}

/* The watch of a folder; -1: it has to be polled, -2: it is no folder, or none that can be opened. */
static int add_watch(struct watcher *w, const char *full)
{
	if (w->options.poll || w->inotify < 0)
		return -1;
	if (is_blind(full)) {
		if (!w->told_blind)
			notice(w, "%s lies on a filesystem whose changes inotify does not hear of (network, FUSE or shared): such "
			          "folders are polled twice a second instead", full);
		w->told_blind = true;
		return -1;
	}
	int watch = -1;

	errno = ENOSPC;
	if (w->options.watch_limit == 0 || w->counts.watched < w->options.watch_limit)
		watch = inotify_add_watch(w->inotify, full, mask);
	if (watch >= 0 || errno == ENOSPC || errno == ENOMEM)
		return watch;
	return -2;
}

static void attach_below(struct watcher *w, struct place *place, bool announce);

/* Does a link lead back to a folder above it? */
static bool is_loop(const struct watcher *w, const char *path, const struct stat *st)
{
	for (const struct place *place = w->places; place != NULL; place = place->next) {
		size_t length = strlen(place->path);

		if (place->inode == st->st_ino && place->device == st->st_dev && strncmp(place->path, path, length) == 0 &&
		    (length == 0 || path[length] == '/'))
			return true;
	}
	return false;
}

/* Watches the folder at `path`, if there is one, and those below it. `announce`: what it holds is told as touched. */
static void attach(struct watcher *w, const struct watched_tree *tree, int level, const char *path, bool announce)
{
	char full[2 * PATH_MAX];
	size_t length = strlen(path) + 1;
	struct stat st, own;

	snprintf(full, sizeof full, "%s/%s", w->root, path);
	bool link = lstat(full, &own) == 0 && S_ISLNK(own.st_mode);

	if (link && (stat(full, &st) != 0 || !S_ISDIR(st.st_mode))) {
		note_link(w, tree, level, path);
		return;
	}
	if (link && is_loop(w, path, &st))
		return;
	int watch = add_watch(w, full);

	if (watch == -2 || stat(full, &st) != 0 || !S_ISDIR(st.st_mode))
		return;
	struct place *place = calloc(1, sizeof *place + length);

	if (place == NULL)
		die_no_memory();
	*place = (struct place){.tree = tree, .level = level, .watch = watch, .link = link, .device = st.st_dev,
	                        .inode = st.st_ino};
	memcpy(place->path, path, length);
	place->next = w->places;
	w->places = place;
	if (watch >= 0) {
		place->next_of_watch = *bucket_of(w, watch);
		*bucket_of(w, watch) = place;
	}
	*(watch >= 0 ? &w->counts.watched : &w->counts.polled) += 1;
	trace("watcher", "%s %s", watch >= 0 ? "watching" : "polling", full);
	if (tree != NULL)
		attach_below(w, place, announce);
}

/* Forgets the place and those below it; what was in them may be gone. */
static void detach(struct watcher *w, const char *path, bool gone)
{
	size_t length = strlen(path);
	char folder[PATH_MAX + 1];
	bool any = false;

	for (struct place **at = &w->places; *at != NULL;) {
		struct place *place = *at;

		if (strncmp(place->path, path, length) != 0 || (place->path[length] != '\0' && place->path[length] != '/')) {
			at = &place->next;
			continue;
		}
		*at = place->next;
		free_place(w, place, gone && place->path[length] == '\0');
		any = true;
	}
	snprintf(folder, sizeof folder, "%s/", path);
	if (any)
		settle_touch(&w->settle, folder, TOUCH_GONE, w->now_ms);
}

/* What shelf_look is told with. */
struct looking {
	struct watcher *watcher;
	const struct place *place;
};

static bool looking_wants(const char *name, void *context)
{
	const struct looking *looking = context;

	return name_counts(looking->place, name);
}

static void looking_tells(const char *name, enum touch touch, void *context)
{
	const struct looking *looking = context;

	touch_file(looking->watcher, looking->place, name, touch);
}

static int open_place(const struct watcher *w, const struct place *place)
{
	return openat(w->folder, place->path[0] == '\0' ? "." : place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
}

static void look_at_shelf(struct watcher *w, struct place *place, bool announce)
{
	struct looking looking = {w, place};
	int fd = open_place(w, place);

	if (fd < 0)
		return;
	shelf_look(&place->shelf, fd, announce, looking_wants, looking_tells, &looking);
	close(fd);
}

static bool may_be_folder(const struct dirent *entry)
{
	return entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
}

static void attach_below(struct watcher *w, struct place *place, bool announce)
{
	int fd = open_place(w, place);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (stream == NULL && fd >= 0)
		close(fd);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		char path[PATH_MAX];

		path_of(place, entry->d_name, path);
		if (path[0] == '\0')
			continue;
		if (folder_counts(place, entry->d_name) && may_be_folder(entry))
			attach(w, place->tree, place->level + 1, path, announce);
		if (place->watch < 0 || entry->d_type == DT_DIR || !name_counts(place, entry->d_name))
			continue;
		if (announce)
			touch_file(w, place, entry->d_name, TOUCH_WRITTEN);
		else if (entry->d_type != DT_REG && is_link(w, path))
			note_link(w, NULL, 0, path);
	}
	if (stream != NULL)
		closedir(stream);
	if (place->watch < 0)
		look_at_shelf(w, place, announce);
}

/* ---- everything anew -------------------------------------------------------------------------------------------- */

static void free_places(struct watcher *w)
{
	while (w->places != NULL) {
		struct place *place = w->places;

		w->places = place->next;
		shelf_free(place->shelf);
		free(place);
	}
	while (w->linked != NULL) {
		struct linked *linked = w->linked;

		w->linked = linked->next;
		free(linked);
	}
	memset(w->by_watch, 0, sizeof w->by_watch);
	w->counts.watched = w->counts.polled = 0;
}

static long sysctl_of(const char *name)
{
	char path[128], text[32];
	FILE *file;
	long value = 0;

	snprintf(path, sizeof path, "/proc/sys/fs/inotify/%s", name);
	file = fopen(path, "re");
	if (file != NULL && fgets(text, sizeof text, file) != NULL)
		value = strtol(text, NULL, 10);
	if (file != NULL)
		fclose(file);
	return value;
}

static void tell_limit(struct watcher *w)
{
	if (w->counts.polled == 0 || w->counts.watched == 0 || w->told_limit || w->told_blind)
		return;
	long limit = sysctl_of("max_user_watches");

	notice(w, "the limit of inotify watches is reached: fs.inotify.max_user_watches is %ld, and %d of %d folders are "
	          "polled twice a second instead; `sudo sysctl fs.inotify.max_user_watches=%ld` makes room for all",
	       limit, w->counts.polled, w->counts.polled + w->counts.watched, limit + w->counts.polled);
	w->told_limit = true;
}

static void open_inotify(struct watcher *w)
{
	if (w->inotify >= 0)
		close(w->inotify);
	w->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->inotify >= 0 || w->told_none)
		return;
	long limit = sysctl_of("max_user_instances");

	notice(w, "inotify cannot be used (%s): fs.inotify.max_user_instances is %ld; all folders are polled twice a second "
	          "instead; `sudo sysctl fs.inotify.max_user_instances=%ld` makes room", strerror(errno), limit, limit + 128);
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
	free_places(w);
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
	attach(w, NULL, 0, "", false);
	for (int i = 0; i < w->options.tree_count; i++)
		attach(w, &w->options.trees[i], 0, w->options.trees[i].path, false);
	tell_limit(w);
	return true;
}

/* Everything will be told once it is quiet; a queue that overflowed may do so again at once. */
static void lose_track(struct watcher *w)
{
	settle_touch(&w->settle, "", TOUCH_WRITING, w->now_ms);
}

static void root_away(struct watcher *w)
{
	if (!w->told_away)
		notice(w, "%s is gone; waiting for it to come back", w->root);
	w->told_away = true;
	free_places(w);
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
		notice(w, "%s is back", w->root);
	w->told_away = false;
	lose_track(w);
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

/* Is the folder of this place still what its path leads to? */
static bool still_there(const struct watcher *w, const struct place *place)
{
	struct stat st;

	return fstatat(w->folder, place->path, &st, 0) == 0 && S_ISDIR(st.st_mode) && st.st_dev == place->device &&
	       st.st_ino == place->inode;
}

/* A name that may be a folder's came, went or changed. */
static void folder_touched(struct watcher *w, const struct watched_tree *tree, int level, const char *path)
{
	const struct place *place = find_place(w, path);

	if (place != NULL && still_there(w, place))
		return;
	if (place != NULL)
		detach(w, path, false);
	attach(w, tree, level, path, true);
}

static void root_event(struct watcher *w, const struct inotify_event *event)
{
	w->doubted = true;
	for (int i = 0; i < w->options.tree_count && event->len > 0; i++)
		if (strcmp(w->options.trees[i].path, event->name) == 0)
			folder_touched(w, &w->options.trees[i], 0, event->name);
}

static void place_event(struct watcher *w, const struct place *place, const struct inotify_event *event)
{
	bool gone = (event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
	bool named = (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0 || gone;
	bool written = (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB)) != 0;
	char path[PATH_MAX];

	path_of(place, event->name, path);
	if (path[0] == '\0')
		return;
	if ((event->mask & IN_ISDIR) == 0 && name_counts(place, event->name))
		touch_file(w, place, event->name, gone ? TOUCH_GONE : written ? TOUCH_WRITTEN : TOUCH_WRITING);
	if (named && folder_counts(place, event->name))
		folder_touched(w, place->tree, place->level + 1, path);
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
	folder_touched(w, place->tree, place->level, path);
}

static struct place *place_of_watch(struct watcher *w, int watch, int nth)
{
	struct place *place = *bucket_of(w, watch);

	for (; place != NULL; place = place->next_of_watch)
		if (place->watch == watch && nth-- == 0)
			return place;
	return NULL;
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
		detach(w, path, true);
		if (tree != NULL)
			attach(w, tree, level, path, true);
	}
}

static void take_event(struct watcher *w, const struct inotify_event *event)
{
	struct place *place;

	w->counts.events++;
	if ((event->mask & IN_Q_OVERFLOW) != 0) {
		w->counts.overflows++;
		trace("watcher", "the queue of events overflowed");
		lose_track(w);
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

static void read_events(struct watcher *w)
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

/* ---- time ------------------------------------------------------------------------------------------------------- */

/* Folders that came or went below a polled one. */
static void poll_folders(struct watcher *w, const char *path)
{
	const struct place *place = find_place(w, path);
	int fd = place == NULL ? -1 : open_place(w, place);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (stream == NULL && fd >= 0)
		close(fd);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		char child[PATH_MAX];

		path_of(place, entry->d_name, child);
		if (child[0] != '\0' && folder_counts(place, entry->d_name) && may_be_folder(entry))
			folder_touched(w, place->tree, place->level + 1, child);
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

static void poll_places(struct watcher *w)
{
	struct arena arena = {0};
	const char **paths;
	int count = paths_of_places(w, is_polled, &arena, &paths);

	for (int i = 0; i < count; i++) {
		struct place *place = find_place(w, paths[i]);

		if (place == NULL || !still_there(w, place))
			continue; /* the audit below sees to it */
		if (place->level < place->tree->depth)
			poll_folders(w, paths[i]);
		place = find_place(w, paths[i]);
		if (place != NULL)
			look_at_shelf(w, place, true);
	}
	arena_free(&arena);
}

static void audit_places(struct watcher *w)
{
	struct arena arena = {0};
	const char **paths;
	int count = paths_of_places(w, is_unsure, &arena, &paths);

	for (int i = 0; i < count; i++) {
		const struct place *place = find_place(w, paths[i]);

		if (place != NULL)
			folder_touched(w, place->tree, place->level, paths[i]);
	}
	for (int i = 0; i < w->options.tree_count; i++)
		folder_touched(w, &w->options.trees[i], 0, w->options.trees[i].path);
	arena_free(&arena);
}

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
	read_events(w);
	bool look = is_polling(w) && now_ms >= w->poll_ms, audit = look || now_ms >= w->audit_ms;

	if (w->doubted || audit)
		audit_root(w);
	if (look && w->folder >= 0)
		poll_places(w);
	if (look)
		w->poll_ms = now_ms + POLL_MS;
	if (audit && w->folder >= 0) {
		audit_places(w);
		audit_links(w);
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
	free_places(w);
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
