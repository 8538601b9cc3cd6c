/* watch_state - the state of `reftest watch`, which watcher/loop.c and watcher/settled_paths.c share. */
#ifndef REFTEST_WATCHER_WATCH_STATE_H
#define REFTEST_WATCHER_WATCH_STATE_H

#include <stdbool.h>

#include "base/arena.h"
#include "watcher/batches.h"
#include "watcher/debounce.h"
#include "watcher/fs/watcher.h"
#include "watcher/rebuild.h"
#include "watcher/server.h"
#include "watcher/settings_change.h"
#include "watcher/tty.h"

struct watch_options; /* defined in watcher/loop.h */

struct watch {
	const struct watch_options *options;
	struct program *program;
	struct batches session;
	struct watcher *watcher;
	struct debounce debounce;
	struct server server;
	struct tty tty;
	struct rebuild rebuild;
	struct settings_change settings;
	struct arena arena;
	double noticed;   /* the time at which the oldest change that is not yet in a batch was detected; 0: there is
			   * no such change */
	int generation;   /* the last seen value of watcher_generation, which grows when another directory replaces the
			   * root */
	bool restart;     /* this process must be replaced: make has rebuilt the program, or the settings have
			   * changed */
	bool ready, ended;
	int code;
};

#endif
