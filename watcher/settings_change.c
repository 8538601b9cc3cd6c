#include "watcher/settings_change.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

void settings_change_begin(struct settings_change *change, const char *root)
{
	char path[PATH_MAX];

	for (int i = 0; i < SETTINGS_FILES; i++) {
		snprintf(path, sizeof path, "%s/%s", root, settings_files[i]);
		if (stat(path, &change->seen[i]) != 0)
			memset(&change->seen[i], 0, sizeof change->seen[i]);
	}
}

enum settings_answer settings_change_look(struct settings_change *change, const char *root, struct err *err)
{
	const struct settings_change before = *change;

	settings_change_begin(change, root);
	if (same_file(&before.seen[0], &change->seen[0]) && same_file(&before.seen[1], &change->seen[1]))
		return SETTINGS_SAME;
	struct settings *settings = settings_read(root, err);

	if (settings == NULL)
		return SETTINGS_BROKEN;
	settings_free(settings);
	return SETTINGS_NEW;
}
