/* linked_dataset - makes a dataset of symbolic links to definitions that are in no dataset.
 *
 * Outside a dataset, a definition is a single file, a file in a folder (FlashInfer's tracer writes one file for each
 * call), or a folder with definition.json and workload.jsonl, as in SOL-ExecBench. If a folder with definition.json
 * also has a file truth.py, truth.py is the ground truth of the definition. For definitions outside a dataset, this
 * module makes the folder $XDG_CACHE_HOME/reftest/linked/DIGEST, where DIGEST is a digest of the paths of their files.
 * The folder has the layout of a dataset and contains links to these files. All other modules treat it as an ordinary
 * dataset, and it has a cache of its own. The module does not change the files, and writes nothing beside them. Tensor
 * files are not linked, because reftest does not read a tensor file through a link that leads out of the dataset. */
#ifndef REFTEST_DATASET_LINKED_DATASET_H
#define REFTEST_DATASET_LINKED_DATASET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { LINKED_FILES = 100000 }; /* the maximum number of definitions of a linked dataset */

/* Makes the linked dataset for the `count` files and folders in `paths`, which must exist. Writes the root of the
 * dataset to `root`. Replaces or removes outdated links of earlier calls. Returns the number of definitions, or -1 with
 * a message. A folder without definitions is an error. Two definitions with the same op_type and name are also an
 * error. */
int linked_dataset_make(const char *const *paths, int count, char *root, size_t size, struct err *err);

/* Returns whether `root` is the root of a linked dataset. The files of a linked dataset are links to files
 * elsewhere. */
bool linked_dataset_is_root(const char *root);

/* A folder that contains a file definition.json is called a problem, as in SOL-ExecBench. linked_dataset_is_problem
 * returns whether the folder is a problem, linked_dataset_has_problems whether the folder or one of its subfolders is a
 * problem. */
bool linked_dataset_is_problem(const char *folder);
bool linked_dataset_has_problems(const char *folder);

#endif
