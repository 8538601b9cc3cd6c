/* settings_change - says whether the dataset's settings (engine/settings.h) have changed since the watcher started. */
#ifndef REFTEST_WATCHER_SETTINGS_CHANGE_H
#define REFTEST_WATCHER_SETTINGS_CHANGE_H

#include <sys/stat.h>

#include "base/err.h"

enum settings_answer {
	SETTINGS_SAME,
	SETTINGS_NEW,	/* other settings, which are valid; or there are none any more */
	SETTINGS_BROKEN /* the file has changed and cannot be used; the message says why. Given once for each change */
};

struct settings_change {
	struct stat seen[2]; /* of reftest.toml and reftest.json; all zeros: no such file */
};

/* Notes the files as they are now. Call this before the settings are read. */
void settings_change_begin(struct settings_change *change, const char *root);
/* Compares the files with what they were at the last call. */
enum settings_answer settings_change_look(struct settings_change *change, const char *root, struct err *err);

#endif
