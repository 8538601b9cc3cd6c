/* named_files - finds the dataset of the definitions that a command line names by their files. */
#ifndef REFTEST_ENGINE_NAMED_FILES_H
#define REFTEST_ENGINE_NAMED_FILES_H

#include "base/arena.h"
#include "base/err.h"
#include "engine/program.h"

/* Sets program->root if the user set no root, and `names` contains files or folders. Files of one dataset select that
 * dataset; the names become paths in it. Files and folders that are in no dataset become a dataset of links
 * (dataset/linked_dataset.h), all of whose definitions are then selected: `count` becomes 0. Other names change
 * nothing. Returns the number of definitions of a dataset of links, otherwise 0, or -1 with a message. `names` has
 * `count` elements, which may be replaced. */
int named_files_root(struct program *program, const char **names, int *count, struct arena *arena, struct err *err);

#endif
