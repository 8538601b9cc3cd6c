/* watched_tree - the options of struct watcher (which directories and files to watch) and its statistics. */
#ifndef REFTEST_WATCHER_FS_WATCHED_TREE_H
#define REFTEST_WATCHER_FS_WATCHED_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "watcher/fs/settle.h"

struct watched_tree {
	const char *path;   /* a directory in the root: "definitions" */
	int depth;          /* how many levels of directories below `path` are watched */
	int files_from;     /* the first directory level below `path` on which files are watched; 1:
			     * "definitions/x/file" and deeper files */
	const char *suffix; /* watch only files that have this suffix and are not hidden; NULL: watch all files */
};

struct watcher_options {
	const char *root;
	const struct watched_tree *trees; /* must outlive the watcher */
	int tree_count;
	settle_complete *complete; /* decides whether a file is complete (watcher/fs/settle.h) */
	void *context;                    /* is passed to `complete` */
	int watch_limit;                  /* the limit of inotify watches, which tests set; 0: the system's limit */
	bool poll;                        /* poll all directories instead of using inotify */
};

struct watcher_counts {
	int watched, polled;       /* the numbers of directories with an inotify watch, and of polled directories */
	int64_t events, overflows; /* since the watcher was opened: how many inotify events came, and how often the
				    * event queue overflowed */
};

#endif
