/* workloads - checks the workload file of a definition, and the tensor files that its lines name. */
#ifndef REFTEST_CHECK_WORKLOADS_H
#define REFTEST_CHECK_WORKLOADS_H

#include "check/dataset_index.h"

/* Checks the workload file `file`, and sets the member `uuids` of `definition`. `definition->definition` must not be
 * NULL. */
void check_workloads(const struct dataset_index *index, struct checked_definition *definition,
		     const struct dataset_file *file);

#endif
