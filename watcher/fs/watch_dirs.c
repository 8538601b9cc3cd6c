#include "watcher/fs/watch_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/trace.h"

void add_notice(struct watcher *w, const char *format, ...)
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

void watcher_events_lost(struct watcher *w)
{
	settle_touch(&w->settle, "", TOUCH_WRITING, w->now_ms);
}

/* If a file is written twice within one tick of the filesystem's clock, the second write does not change the file's
 * stat. Therefore a file that was checked less than RACY_SECONDS after a write may have been written again, even if its
 * stat is the same. Such a file is read once more. (git calls such files "racily clean".) */
enum { RACY_SECONDS = 2 };

/* IN_EXCL_UNLINK suppresses the events of writes to a deleted file that a program still has open. */
static const uint32_t mask = IN_CLOSE_WRITE | IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                             IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;

/* ---- names ---------------------------------------------------------------------------------------------------- */

bool watch_dir_wants_file(const struct watch_dir *dir, const char *name)
{
	const struct watched_tree *tree = dir->tree;

	if (tree == NULL || dir->level < tree->files_from)
		return false;
	if (tree->suffix == NULL)
		return true;
	size_t length = strlen(name), tail = strlen(tree->suffix);

	return name[0] != '.' && length > tail && strcmp(name + length - tail, tree->suffix) == 0;
}

bool watch_dir_wants_folder(const struct watch_dir *dir, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || dir->tree == NULL)
		return false;
	return dir->level < dir->tree->depth && (name[0] != '.' || dir->tree->suffix == NULL);
}

void watch_dir_path(const struct watch_dir *dir, const char *name, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s%s%s", dir->path, dir->path[0] != '\0' ? "/" : "", name) >= PATH_MAX)
		path[0] = '\0'; /* the path is longer than the system allows */
}

/* ---- links to files -------------------------------------------------------------------------------------------- */

static bool is_link(const struct watcher *w, const char *path)
{
	struct stat st;

	return fstatat(w->folder, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Updates the stat of the link's target. If there is no target, sets the stat to zeros. */
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

		if (!linked->followed && !is_link(w, linked->path)) { /* an event has already reported that the link was
								       * removed or replaced */
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
			watch_dir_touched(w, linked->tree, linked->level, linked->path);
	}
}

void watch_dir_touch_file(struct watcher *w, const struct watch_dir *dir, const char *name, enum touch touch)
{
	char path[PATH_MAX];

	watch_dir_path(dir, name, path);
	if (path[0] == '\0')
		return;
	if (touch != TOUCH_GONE && is_link(w, path)) {
		note_link(w, NULL, 0, path);
		touch = TOUCH_WRITTEN; /* the link is complete, because a symbolic link is created in one step */
	}
	settle_touch(&w->settle, path, touch, w->now_ms);
}

/* ---- watched directories --------------------------------------------------------------------------------------- */

static struct watch_dir **bucket_of(struct watcher *w, int watch)
{
	return &w->by_watch[(unsigned)watch % WATCH_BUCKETS];
}

struct watch_dir *watch_dir_find(const struct watcher *w, const char *path)
{
	struct watch_dir *dir = w->dirs;

	while (dir != NULL && strcmp(dir->path, path) != 0)
		dir = dir->next;
	return dir;
}

static bool watch_is_used(struct watcher *w, int watch)
{
	const struct watch_dir *dir = *bucket_of(w, watch);

	while (dir != NULL && dir->watch != watch)
		dir = dir->next_of_watch;
	return dir != NULL;
}

/* Frees the entry. If no other entry uses its inotify watch, removes the watch. If `gone` is true, inotify has already
 * removed the watch. */
static void free_watch_dir(struct watcher *w, struct watch_dir *dir, bool gone)
{
	if (dir->watch >= 0) {
		struct watch_dir **at = bucket_of(w, dir->watch);

		while (*at != dir)
			at = &(*at)->next_of_watch;
		*at = dir->next_of_watch;
		if (!gone && !watch_is_used(w, dir->watch))
			inotify_rm_watch(w->inotify, dir->watch);
	}
	dir_snapshot_free(dir->snapshot);
	*(dir->watch >= 0 ? &w->counts.watched : &w->counts.polled) -= 1;
	free(dir);
}

/* Returns whether files on the filesystem of `full` can change without an inotify event. This is so on network, FUSE
 * and shared filesystems, because not all changes are made by this machine's kernel. Overlayfs is not in the list
 * `blind`: writes through an overlay cause events, and its lower layers must not be changed
 * (Documentation/filesystems/overlayfs.rst). */
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

/* Adds an inotify watch for a directory and returns its descriptor. Returns -1 if the directory must be polled instead.
 * Returns -2 if there is no directory at the path, or if the directory cannot be opened. */
static int add_watch(struct watcher *w, const char *full)
{
	if (w->options.poll || w->inotify < 0)
		return -1;
	if (is_blind(full)) {
		if (!w->warned_blind)
			add_notice(w,
				   "%s is on a filesystem (network, FUSE or shared) whose changes inotify does not "
				   "report; folders on such filesystems are polled twice a second instead",
				   full);
		w->warned_blind = true;
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

static void attach_below(struct watcher *w, struct watch_dir *dir, bool announce);

/* Returns whether the symbolic link at `path` leads to a directory that contains the link. `st` is the stat of the
 * link's target. */
static bool is_loop(const struct watcher *w, const char *path, const struct stat *st)
{
	for (const struct watch_dir *dir = w->dirs; dir != NULL; dir = dir->next) {
		size_t length = strlen(dir->path);

		if (dir->inode == st->st_ino && dir->device == st->st_dev && strncmp(dir->path, path, length) == 0 &&
		    (length == 0 || path[length] == '/'))
			return true;
	}
	return false;
}

void watch_dir_attach(struct watcher *w, const struct watched_tree *tree, int level, const char *path, bool announce)
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
	struct watch_dir *dir = calloc(1, sizeof *dir + length);

	if (dir == NULL)
		die_no_memory();
	*dir = (struct watch_dir){
	    .tree = tree, .level = level, .watch = watch, .link = link, .device = st.st_dev, .inode = st.st_ino};
	memcpy(dir->path, path, length);
	dir->next = w->dirs;
	w->dirs = dir;
	if (watch >= 0) {
		dir->next_of_watch = *bucket_of(w, watch);
		*bucket_of(w, watch) = dir;
	}
	*(watch >= 0 ? &w->counts.watched : &w->counts.polled) += 1;
	trace("watcher", "%s %s", watch >= 0 ? "watching" : "polling", full);
	if (tree != NULL)
		attach_below(w, dir, announce);
}

void watch_dir_detach(struct watcher *w, const char *path, bool gone)
{
	size_t length = strlen(path);
	char folder[PATH_MAX + 1];
	bool any = false;

	for (struct watch_dir **at = &w->dirs; *at != NULL;) {
		struct watch_dir *dir = *at;

		if (strncmp(dir->path, path, length) != 0 || (dir->path[length] != '\0' && dir->path[length] != '/')) {
			at = &dir->next;
			continue;
		}
		*at = dir->next;
		free_watch_dir(w, dir, gone && dir->path[length] == '\0');
		any = true;
	}
	snprintf(folder, sizeof folder, "%s/", path);
	if (any)
		settle_touch(&w->settle, folder, TOUCH_GONE, w->now_ms);
}

/* The context of the callbacks of dir_snapshot_look. */
struct scan {
	struct watcher *watcher;
	const struct watch_dir *dir;
};

static bool is_wanted(const char *name, void *context)
{
	const struct scan *scan = context;

	return watch_dir_wants_file(scan->dir, name);
}

static void report_touch(const char *name, enum touch touch, void *context)
{
	const struct scan *scan = context;

	watch_dir_touch_file(scan->watcher, scan->dir, name, touch);
}

int watch_dir_open(const struct watcher *w, const struct watch_dir *dir)
{
	return openat(w->folder, dir->path[0] == '\0' ? "." : dir->path,
		      O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
}

void watch_dir_look(struct watcher *w, struct watch_dir *dir, bool announce)
{
	struct scan scan = {w, dir};
	int fd = watch_dir_open(w, dir);

	if (fd < 0)
		return;
	dir_snapshot_look(&dir->snapshot, fd, announce, is_wanted, report_touch, &scan);
	close(fd);
}

bool may_be_folder(const struct dirent *entry)
{
	return entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
}

static void attach_below(struct watcher *w, struct watch_dir *dir, bool announce)
{
	int fd = watch_dir_open(w, dir);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (stream == NULL && fd >= 0)
		close(fd);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		char path[PATH_MAX];

		watch_dir_path(dir, entry->d_name, path);
		if (path[0] == '\0')
			continue;
		if (watch_dir_wants_folder(dir, entry->d_name) && may_be_folder(entry))
			watch_dir_attach(w, dir->tree, dir->level + 1, path, announce);
		if (dir->watch < 0 || entry->d_type == DT_DIR || !watch_dir_wants_file(dir, entry->d_name))
			continue;
		if (announce)
			watch_dir_touch_file(w, dir, entry->d_name, TOUCH_WRITTEN);
		else if (entry->d_type != DT_REG && is_link(w, path))
			note_link(w, NULL, 0, path);
	}
	if (stream != NULL)
		closedir(stream);
	if (dir->watch < 0)
		watch_dir_look(w, dir, announce);
}

/* ---- the directory at a path ----------------------------------------------------------------------------------- */

bool watch_dir_still_there(const struct watcher *w, const struct watch_dir *dir)
{
	struct stat st;

	return fstatat(w->folder, dir->path, &st, 0) == 0 && S_ISDIR(st.st_mode) && st.st_dev == dir->device &&
	       st.st_ino == dir->inode;
}

void watch_dir_touched(struct watcher *w, const struct watched_tree *tree, int level, const char *path)
{
	const struct watch_dir *dir = watch_dir_find(w, path);

	if (dir != NULL && watch_dir_still_there(w, dir))
		return;
	if (dir != NULL)
		watch_dir_detach(w, path, false);
	watch_dir_attach(w, tree, level, path, true);
}

void watch_dirs_free(struct watcher *w)
{
	while (w->dirs != NULL) {
		struct watch_dir *dir = w->dirs;

		w->dirs = dir->next;
		dir_snapshot_free(dir->snapshot);
		free(dir);
	}
	while (w->linked != NULL) {
		struct linked *linked = w->linked;

		w->linked = linked->next;
		free(linked);
	}
	memset(w->by_watch, 0, sizeof w->by_watch);
	w->counts.watched = w->counts.polled = 0;
}

struct watch_dir *watch_dir_of_watch(struct watcher *w, int watch, int nth)
{
	struct watch_dir *dir = *bucket_of(w, watch);

	for (; dir != NULL; dir = dir->next_of_watch)
		if (dir->watch == watch && nth-- == 0)
			return dir;
	return NULL;
}
