/* git_index_files - reads the files of a run (definitions, workload files, blobs) from git's index, for `verify
 * --staged`. */
#ifndef REFTEST_ENGINE_GIT_INDEX_FILES_H
#define REFTEST_ENGINE_GIT_INDEX_FILES_H

#include "engine/run_files.h"
#include "engine/staged_dataset.h"

/* Returns the files of `dataset`, a dataset that staged_open made. The result is allocated in `arena`; `staged` and
 * `dataset` must outlive it. */
struct run_files git_index_files(struct staged *staged, const struct dataset *dataset, struct arena *arena);

#endif
