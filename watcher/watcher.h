/* watcher - folders below a root, watched: which paths changed, as soon as what lies there has settled.
 *
 * It has never heard of definitions: a tree is a folder name, how many levels of folders below it count, and how the
 * names of its files end. Its promise: after whatever happened to the trees, each path whose content may differ from
 * what it was is told at least once, after the last change to it; or "everything" is. A folder is watched before it is
 * listed, and what is in it when it appears is told like what is written later. Events only say where to look:
 *
 *   a file                written, made, moved, deleted, its permissions changed     -> its path
 *   a folder              made, moved in, a link to one replaced                     -> each path in it
 *                         deleted, moved away, its link gone                         -> "folder/": anything below it
 *   the queue overflowed  the watches are made anew, once it is quiet               -> everything
 *   the root              deleted, moved, unmounted, hidden by a mount; and back    -> gone; then everything
 *
 * What inotify cannot see is polled by content twice a second, and a sentence says so once: filesystems that change
 * behind the kernel's back (NFS, FUSE, 9p, …, by statfs), and the folders beyond the limit of watches. What a symbolic
 * link leads to outside of the watched folders is looked at once a second. */
#ifndef REFTEST_WATCHER_WATCHER_H
#define REFTEST_WATCHER_WATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "watcher/settle.h"

struct watched_tree {
	const char *path;   /* a name in the root: "definitions" */
	int depth;          /* levels of folders below it that are watched */
	int files_from;     /* the first level whose files count: 1 = "definitions/x/file" and below */
	const char *suffix; /* of names that count (hidden ones do not); NULL: all count */
};

struct watcher_options {
	const char *root;
	const struct watched_tree *trees; /* must live as long as the watcher */
	int tree_count;
	settle_ripe *ripe;                /* may a path be acted on? (watcher/settle.h) */
	void *context;
	int watch_limit;                  /* pretend that inotify has no more watches than these; 0: ask the system */
	bool poll;                        /* pretend that inotify sees nothing */
};

struct watcher; /* opaque */

/* The watches are set when this returns: whatever is read from now on is read after. */
struct watcher *watcher_open(const struct watcher_options *options, struct err *err);
void watcher_close(struct watcher *watcher);

int watcher_fd(const struct watcher *watcher);           /* readable: watcher_turn has something to do; may change; -1 */
int64_t watcher_deadline(const struct watcher *watcher); /* when it has something to do at the latest, ms */

/* Takes in what has happened, without waiting. */
void watcher_turn(struct watcher *watcher, int64_t now_ms);

/* A file that lies in none of the trees counts, too, from now on until everything is told: it is looked at once a second. */
void watcher_follow(struct watcher *watcher, const char *path);

/* Polled folders and links are looked at in the next turn, whenever that was due. */
void watcher_hurry(struct watcher *watcher);

struct changes {
	const char *const *paths; /* relative to the root, sorted, each once; "folder/": anything below */
	int count;
	bool everything; /* then there are no paths */
};
/* What has settled since the last call; false: nothing. */
bool watcher_changes(struct watcher *watcher, int64_t now_ms, struct arena *arena, struct changes *out);

int watcher_pending(const struct watcher *watcher); /* touched paths that have not settled */
bool watcher_has_root(const struct watcher *watcher);
int watcher_generation(const struct watcher *watcher); /* raised when another folder has taken the root's place */

/* The next sentence that the user should hear, once each; NULL: none. Valid until the next call. */
const char *watcher_notice(struct watcher *watcher);

struct watcher_counts {
	int watched, polled;       /* folders */
	int64_t events, overflows; /* since it was opened */
};
struct watcher_counts watcher_counts(const struct watcher *watcher);

#endif
