/* definitions - checks definitions, with their workloads and the files that their references read. */
#ifndef REFTEST_CHECK_DEFINITIONS_H
#define REFTEST_CHECK_DEFINITIONS_H

#include "check/dataset_index.h"

/* Checks the contents of a definition file. `op_type` and `name` are the parts of the file's path; they are NULL for a
 * file that is checked alone. Returns the definition, allocated in the arena of `findings`, or NULL if it is
 * invalid. */
const struct definition *check_definition_file(struct findings *findings, const char *path, const char *op_type,
					       const char *name, const struct buf *bytes);

/* Checks definition number `i` of the dataset and its workload file. Fills in index->items[i]. */
void check_definition(struct dataset_index *index, int i);

#endif
