/* watched_tree - the options and the counters of struct watcher. The options say which directories and files are
 * watched. */
#ifndef REFTEST_WATCHER_FS_WATCHED_TREE_H
#define REFTEST_WATCHER_FS_WATCHED_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "watcher/fs/settle.h"

struct watched_tree {
	const char *path;   /* the name of a directory in the root, such as "definitions" */
	int depth;          /* how many levels of directories below `path` are watched */
	int files_from;     /* a file is watched only if at least this many directories are between `path` and the
			     * file; 1: "definitions/x/file" and files in deeper directories */
	const char *suffix; /* if not NULL, a file is watched only if it has this suffix and is not hidden */
};

struct watcher_options {
	const char *root;
	const struct watched_tree *trees; /* the array must stay valid until the watcher is closed */
	int tree_count;
	settle_complete *complete; /* decides whether a file is complete (watcher/fs/settle.h) */
	void *context;                    /* passed to `complete` */
	int watch_limit;                  /* a limit of inotify watches for tests; 0: only the system's limit applies */
	bool poll;                        /* poll all directories, and do not use inotify */
};

struct watcher_counts {
	int watched, polled;       /* the numbers of directories with an inotify watch, and of polled directories */
	int64_t events, overflows; /* the number of inotify events and of overflows of the event queue since the watcher
				    * was opened */
};

#endif
