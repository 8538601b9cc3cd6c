/* places - the folders that are watched, each as a path leads to it, and what watcher.c, events.c and polling.c do with
 * them. Nothing outside of this room includes this.
 *
 * A place is watched by inotify, or polled where it has no watch. Two links to one folder are two places with one watch. */
#ifndef REFTEST_WATCHER_PLACES_H
#define REFTEST_WATCHER_PLACES_H

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>

#include "watcher/shelf.h"
#include "watcher/watcher.h"

enum { WATCH_BUCKETS = 1024 };

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

/* A symbolic link to a file, or to nothing yet: the folder that it leads to may be nobody's. Or a file that is followed. */
struct linked {
	struct linked *next;
	bool followed;                   /* whatever it is */
	bool racy;                       /* followed, and written so recently that its stat proves nothing */
	const struct watched_tree *tree; /* should it come to lead to a folder: whose, and how far down; NULL: a file's */
	int level;
	struct stat st;
	char path[];
};

struct notice;

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

/* A sentence for watcher_notice. */
void watcher_say(struct watcher *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Everything will be told once it is quiet; a queue that overflowed may do so again at once. */
void watcher_lose_track(struct watcher *w);

bool place_wants_file(const struct place *place, const char *name);
/* May a name in this place be a folder that is to be watched? */
bool place_wants_folder(const struct place *place, const char *name);
bool may_be_folder(const struct dirent *entry);
/* The path of a name in the place; "" if it is longer than any that the system could open. */
void place_path(const struct place *place, const char *name, char path[PATH_MAX]);

struct place *place_find(const struct watcher *w, const char *path);                 /* NULL: there is none */
struct place *place_of_watch(struct watcher *w, int watch, int nth);                 /* the nth of a watch; NULL */
bool place_still_there(const struct watcher *w, const struct place *place);          /* does its path lead to it yet? */
int place_open(const struct watcher *w, const struct place *place);                  /* a descriptor; -1 */

/* Watches the folder at `path`, if there is one, and those below it. `announce`: what it holds is told as touched. */
void place_attach(struct watcher *w, const struct watched_tree *tree, int level, const char *path, bool announce);
/* Forgets the place at `path` and those below it, and tells "path/". `gone`: inotify has let go of its watch itself. */
void place_detach(struct watcher *w, const char *path, bool gone);
void places_free(struct watcher *w);

/* A name that may be a folder's came, went or changed. */
void place_touched(struct watcher *w, const struct watched_tree *tree, int level, const char *path);
void place_touch_file(struct watcher *w, const struct place *place, const char *name, enum touch touch);
/* Looks at what a polled place holds, and tells what came, changed or went; of the first look only if `announce`. */
void place_look(struct watcher *w, struct place *place, bool announce);

void link_follow(struct watcher *w, const char *path);
/* Looks at what links to files lead to, which may lie in nobody's folder. */
void links_audit(struct watcher *w);

#endif
