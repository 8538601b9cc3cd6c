/* ripe - is what lies at a path of the dataset whole, as far as its syntax tells? Editors leave files empty, cut short or
 * absent for a moment; the watcher asks this before it hands a path on. */
#ifndef REFTEST_COMMANDS_RIPE_H
#define REFTEST_COMMANDS_RIPE_H

#include <stdbool.h>

/* `path` is relative to `root`. A definition or workload file is ripe when it parses; whatever else is there is. What
 * can never be read (permissions, its size) is ripe too: waiting will not mend it. */
bool ripe_file(const char *root, const char *path);

#endif
