/* linked_dataset - presents definitions that are in no dataset as a dataset of symbolic links.
 *
 * Outside a dataset, a definition is a single file, a file in a folder (FlashInfer's tracer writes one file for each
 * call), or a folder with definition.json and workload.jsonl, as in SOL-ExecBench. If a folder with definition.json
 * also has a file truth.py, truth.py is the ground truth of the definition. This module makes the folder
 * $XDG_CACHE_HOME/reftest/linked/DIGEST. The folder has the layout of a dataset and contains links to these files;
 * DIGEST is a digest of their paths. For all other modules, the folder linked/DIGEST is an ordinary dataset with a
 * cache of its own. The files themselves are not changed, and nothing is written beside them. Tensor files are not
 * linked, because reftest does not read a tensor file through a link that leads out of the dataset. */
#ifndef REFTEST_DATASET_LINKED_DATASET_H
#define REFTEST_DATASET_LINKED_DATASET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { LINKED_FILES = 100000 }; /* the most definitions of one linked dataset */

/* Makes the dataset of `count` files and folders, which must exist. Writes the root of the dataset to `root`. Outdated
 * links of an earlier call are replaced or removed. Returns the number of definitions, or -1 with a message. A folder
 * without definitions is an error. Two definitions with the same op_type and name are also an error. */
int linked_dataset_make(const char *const *paths, int count, char *root, size_t size, struct err *err);

/* Returns whether `root` is the root of a linked dataset. The files of a linked dataset are links to files
 * elsewhere. */
bool linked_dataset_is_root(const char *root);

/* Returns whether a folder is a problem, which means that it has a file definition.json. linked_dataset_has_problems
 * also returns true if the folder contains problems. */
bool linked_dataset_is_problem(const char *folder);
bool linked_dataset_has_problems(const char *folder);

#endif
