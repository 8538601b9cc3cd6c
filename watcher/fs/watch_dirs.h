/* watch_dirs - manages the list of watched directories for watcher.c, inotify_events.c and polling.c. Only files of
 * watcher/fs include this header.
 *
 * Each entry of the list has its own path, and an inotify watch or, if inotify cannot watch the directory, a snapshot
 * for polling. Two symbolic links to the same directory have two entries with the same inotify watch. */
#ifndef REFTEST_WATCHER_FS_WATCH_DIRS_H
#define REFTEST_WATCHER_FS_WATCH_DIRS_H

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "watcher/fs/dir_snapshot.h"
#include "watcher/fs/watched_tree.h"

enum { WATCH_BUCKETS = 1024 };

struct watch_dir {
	struct watch_dir *next, *next_of_watch;
	const struct watched_tree *tree; /* the tree that contains the directory; NULL for the root */
	int level;                       /* the number of levels from the root of the tree down to the directory */
	int watch;                       /* watch descriptor of inotify; -1: the directory is polled */
	bool link;                       /* the path is a symbolic link */
	dev_t device;
	ino_t inode;
	struct dir_snapshot *snapshot;	 /* the last scan of a polled directory; NULL for other directories */
	char path[];                     /* the path, relative to the root; "" is the root */
};

/* A path whose stat is checked once a second, because no watched directory reports its changes: a path that
 * watcher_follow added, or a symbolic link whose target is a file or does not exist. */
struct linked {
	struct linked *next;
	bool followed;                   /* watcher_follow added `path`, which may be any file */
	bool racy;                       /* the file was written so recently that another write may leave its stat
					  * unchanged */
	const struct watched_tree *tree; /* if the link's target becomes a directory, it is watched as a part of this
					  * tree; NULL: the link is to a file */
	int level;			 /* the number of directory levels between the tree's root and the link */
	struct stat st;
	char path[];
};

/* A message for the user, in the list of messages. */
struct notice {
	struct notice *next;
	char text[];
};

struct watcher {
	struct watcher_options options;
	char *root;         /* an allocated string */
	int inotify;        /* the inotify descriptor; -1: inotify is not available, and all directories are polled */
	int folder;         /* a descriptor of the root; -1: the root does not exist */
	dev_t device;
	ino_t inode;
	bool doubted;       /* the next watcher_turn must check whether the root's path still leads to the same
			     * directory */
	bool warned_away, warned_limit, warned_blind, warned_none;
	int generation;
	struct watch_dir *dirs;
	struct watch_dir *by_watch[WATCH_BUCKETS];
	struct linked *linked;
	struct settle settle; /* the touched paths that have not settled; the path "" stands for all paths */
	struct notice *notices, *said;
	struct watcher_counts counts;
	int64_t now_ms, audit_ms, poll_ms;
};

/* Queues a message for watcher_notice. */
void add_notice(struct watcher *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Call this if events were lost. All paths are then reported as changed, after SETTLE_MS without events. Because of
 * this delay, several overflows in a row cause only one report. */
void watcher_events_lost(struct watcher *w);

bool watch_dir_wants_file(const struct watch_dir *dir, const char *name);
/* Returns whether a subdirectory of `dir` with this name must be watched. */
bool watch_dir_wants_folder(const struct watch_dir *dir, const char *name);
bool may_be_folder(const struct dirent *entry);
/* Sets `path` to "DIRECTORY/name", or to "" if this path has more than PATH_MAX bytes. */
void watch_dir_path(const struct watch_dir *dir, const char *name, char path[PATH_MAX]);

/* Returns the entry with this path, or NULL. */
struct watch_dir *watch_dir_find(const struct watcher *w, const char *path);
/* Several entries may have the same watch descriptor. Returns entry number `nth` (from 0) of the entries with this
 * watch descriptor, or NULL if there are fewer. */
struct watch_dir *watch_dir_of_watch(struct watcher *w, int watch, int nth);
/* Returns whether the path of the entry still leads to the same directory. */
bool watch_dir_still_there(const struct watcher *w, const struct watch_dir *dir);
/* Opens the directory. Returns a descriptor, or -1 on error. */
int watch_dir_open(const struct watcher *w, const struct watch_dir *dir);

/* If there is a directory at `path`, watches it and the directories below it. If `announce` is true, reports all files
 * in these directories as changed. */
void watch_dir_attach(struct watcher *w, const struct watched_tree *tree, int level, const char *path, bool announce);
/* Removes the directory at `path`, and the directories below it, from the list, and reports "path/" as changed. `gone`
 * means that inotify has already removed the watch. */
void watch_dir_detach(struct watcher *w, const char *path, bool gone);
void watch_dirs_free(struct watcher *w);

/* Updates the list of watched directories after `path` was created, replaced or removed. Call this if `path` is a
 * directory, was one, or may be one. */
void watch_dir_touched(struct watcher *w, const struct watched_tree *tree, int level, const char *path);
void watch_dir_touch_file(struct watcher *w, const struct watch_dir *dir, const char *name, enum touch touch);
/* Scans a polled directory, and reports the files that were created, changed or removed since the last scan. The first
 * scan reports all files if `announce` is true, and no file if it is false. */
void watch_dir_look(struct watcher *w, struct watch_dir *dir, bool announce);

void link_follow(struct watcher *w, const char *path);
/* Checks the stat of each file that watcher_follow added, and of the target of each symbolic link to a file, because
 * the directories of these files may not be watched. */
void links_audit(struct watcher *w);

#endif
