/* named_files - finds the dataset for a command line that names definitions by their files. */
#ifndef REFTEST_ENGINE_NAMED_FILES_H
#define REFTEST_ENGINE_NAMED_FILES_H

#include "base/arena.h"
#include "base/err.h"
#include "engine/program.h"

/* Sets program->root if the user set no root and `names` contains files or folders. If all files are in one dataset,
 * sets the root to this dataset, and replaces each name by the file's path in the dataset. If the files are in no
 * dataset, they become a dataset of links (dataset/linked_dataset.h). If a dataset of links is made, sets `count` to 0:
 * without names, a run selects all definitions. If no name is a file or a folder, nothing changes. Returns the number
 * of definitions in the dataset of links, or 0 if there is no such dataset. Returns -1 with a message on error. `names`
 * has `count` elements, which may be replaced. */
int named_files_root(struct program *program, const char **names, int *count, struct arena *arena, struct err *err);

#endif
