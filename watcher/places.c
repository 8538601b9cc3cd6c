#include "watcher/places.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/trace.h"

/* As git has it: a write within the same tick of the filesystem's clock leaves the same stat. */
enum { RACY_SECONDS = 2 };

/* EXCL_UNLINK: what is written to a file that has lost its name is nobody's business. */
static const uint32_t mask = IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                             IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;

/* ---- names ---------------------------------------------------------------------------------------------------- */

bool place_wants_file(const struct place *place, const char *name)
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
bool place_wants_folder(const struct place *place, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || place->tree == NULL)
		return false;
	return place->level < place->tree->depth && (name[0] != '.' || place->tree->suffix == NULL);
}

void place_path(const struct place *place, const char *name, char path[PATH_MAX])
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

/* Takes its stat; zeros: nothing is there. */
static void stat_linked(const struct watcher *w, struct linked *linked)
{
	if (fstatat(w->folder, linked->path, &linked->st, 0) != 0)
		linked->st = (struct stat){0};
	linked->racy = linked->followed && linked->st.st_ctim.tv_sec + RACY_SECONDS >= time(NULL);
}

static struct linked *find_link(const struct watcher *w, const char *path)
{
	struct linked *linked = w->linked;

	while (linked != NULL && strcmp(linked->path, path) != 0)
		linked = linked->next;
	return linked;
}

static void note_link(struct watcher *w, const struct watched_tree *tree, int level, const char *path)
{
	size_t length = strlen(path) + 1;
	struct linked *linked = find_link(w, path);

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
	stat_linked(w, linked);
}

void link_follow(struct watcher *w, const char *path)
{
	struct linked *linked = find_link(w, path);

	if (w->folder < 0 || (linked != NULL && linked->followed))
		return;
	note_link(w, NULL, 0, path);
	linked = find_link(w, path);
	linked->followed = true;
	stat_linked(w, linked);
}

static bool same_stat(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size && a->st_mode == b->st_mode &&
	       memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) == 0 &&
	       memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim) == 0;
}

void links_audit(struct watcher *w)
{
	for (struct linked **at = &w->linked; *at != NULL;) {
		struct linked *linked = *at;
		const struct stat before = linked->st;
		const bool racy = linked->racy;

		if (!linked->followed && !is_link(w, linked->path)) { /* whatever made it a file, or nothing, was told */
			*at = linked->next;
			free(linked);
			continue;
		}
		stat_linked(w, linked);
		at = &linked->next;
		if (same_stat(&before, &linked->st) && !racy)
			continue;
		if (!S_ISDIR(linked->st.st_mode))
			settle_touch(&w->settle, linked->path, TOUCH_WRITTEN, w->now_ms);
		else if (linked->tree != NULL)
			place_touched(w, linked->tree, linked->level, linked->path);
	}
}

void place_touch_file(struct watcher *w, const struct place *place, const char *name, enum touch touch)
{
	char path[PATH_MAX];

	place_path(place, name, path);
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

struct place *place_find(const struct watcher *w, const char *path)
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

/* Filesystems of which the kernel does not hear who else writes to them. An overlay is none: what is written through it is
 * heard, and to write to its layers beneath it is not allowed (Documentation/filesystems/overlayfs.rst). */
static bool is_blind(const char *full)
{
	static const long blind[] = {
	    NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, FUSE_SUPER_MAGIC, V9FS_MAGIC, AFS_SUPER_MAGIC, AFS_FS_MAGIC, CODA_SUPER_MAGIC,
	    CEPH_SUPER_MAGIC, OCFS2_SUPER_MAGIC, NCP_SUPER_MAGIC, 0xFE534D42 /* SMB2 */, 0xFF534D42 /* CIFS */,
	    0x01161970 /* GFS2 */, 0x0BD00BD0 /* Lustre */, 0x47504653 /* GPFS */, 0x786F4256 /* VirtualBox shares */,
	    0xBACBACBC /* VMware shares */, 0x7C7C6673 /* Parallels shares */,
	    0x61756673 /* AUFS */, 0x19830326 /* BeeGFS */, 0x20030528 /* OrangeFS */, 0xAAD7AAEA /* PanFS */,
	    0xBEEFDEAD /* StorNext */, 0x61636673 /* ACFS */, 0xA501FCF5 /* VxFS */,
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
			watcher_say(w, "%s lies on a filesystem whose changes inotify does not hear of (network, FUSE or shared): such "
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
void place_attach(struct watcher *w, const struct watched_tree *tree, int level, const char *path, bool announce)
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
void place_detach(struct watcher *w, const char *path, bool gone)
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

	return place_wants_file(looking->place, name);
}

static void looking_tells(const char *name, enum touch touch, void *context)
{
	const struct looking *looking = context;

	place_touch_file(looking->watcher, looking->place, name, touch);
}

int place_open(const struct watcher *w, const struct place *place)
{
	return openat(w->folder, place->path[0] == '\0' ? "." : place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
}

void place_look(struct watcher *w, struct place *place, bool announce)
{
	struct looking looking = {w, place};
	int fd = place_open(w, place);

	if (fd < 0)
		return;
	shelf_look(&place->shelf, fd, announce, looking_wants, looking_tells, &looking);
	close(fd);
}

bool may_be_folder(const struct dirent *entry)
{
	return entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
}

static void attach_below(struct watcher *w, struct place *place, bool announce)
{
	int fd = place_open(w, place);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (stream == NULL && fd >= 0)
		close(fd);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		char path[PATH_MAX];

		place_path(place, entry->d_name, path);
		if (path[0] == '\0')
			continue;
		if (place_wants_folder(place, entry->d_name) && may_be_folder(entry))
			place_attach(w, place->tree, place->level + 1, path, announce);
		if (place->watch < 0 || entry->d_type == DT_DIR || !place_wants_file(place, entry->d_name))
			continue;
		if (announce)
			place_touch_file(w, place, entry->d_name, TOUCH_WRITTEN);
		else if (entry->d_type != DT_REG && is_link(w, path))
			note_link(w, NULL, 0, path);
	}
	if (stream != NULL)
		closedir(stream);
	if (place->watch < 0)
		place_look(w, place, announce);
}

/* ---- the folder at a path -------------------------------------------------------------------------------------- */

/* Is the folder of this place still what its path leads to? */
bool place_still_there(const struct watcher *w, const struct place *place)
{
	struct stat st;

	return fstatat(w->folder, place->path, &st, 0) == 0 && S_ISDIR(st.st_mode) && st.st_dev == place->device &&
	       st.st_ino == place->inode;
}

/* A name that may be a folder's came, went or changed. */
void place_touched(struct watcher *w, const struct watched_tree *tree, int level, const char *path)
{
	const struct place *place = place_find(w, path);

	if (place != NULL && place_still_there(w, place))
		return;
	if (place != NULL)
		place_detach(w, path, false);
	place_attach(w, tree, level, path, true);
}

void places_free(struct watcher *w)
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

struct place *place_of_watch(struct watcher *w, int watch, int nth)
{
	struct place *place = *bucket_of(w, watch);

	for (; place != NULL; place = place->next_of_watch)
		if (place->watch == watch && nth-- == 0)
			return place;
	return NULL;
}
