/* settings_change - detects changes of the dataset's settings (engine/settings.h) while a watcher runs. */
#ifndef REFTEST_WATCHER_SETTINGS_CHANGE_H
#define REFTEST_WATCHER_SETTINGS_CHANGE_H

#include <sys/stat.h>

#include "base/err.h"
#include "engine/settings.h"

enum settings_answer {
	SETTINGS_SAME,
	SETTINGS_NEW,	/* a settings file has changed and is valid, or it was removed */
	SETTINGS_BROKEN /* a settings file has changed and is invalid, and `err` says why; returned only once for each
			 * change */
};

struct settings_change {
	struct stat seen[SETTINGS_FILES]; /* stats of settings_files; all zeros: there is no such file */
};

/* Records the stats of the files in settings_files. Call this before the settings are read. */
void settings_change_begin(struct settings_change *change, const char *root);
/* Compares reftest.toml and reftest.json with their state at the previous call. */
enum settings_answer settings_change_look(struct settings_change *change, const char *root, struct err *err);

#endif
