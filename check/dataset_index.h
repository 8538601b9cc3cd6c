/* dataset_index - the data that all checks of one dataset share: the definitions of the dataset, with their workloads
 * and solutions. */
#ifndef REFTEST_CHECK_DATASET_INDEX_H
#define REFTEST_CHECK_DATASET_INDEX_H

#include "base/buf.h"
#include "base/string_list.h"
#include "check/findings.h"
#include "dataset/dataset.h"
#include "dataset/workload.h"

struct checked_definition {
	const struct dataset_file *file;
	const struct definition *definition; /* NULL: it is invalid */
	/* The uuids of the valid workloads, sorted. */
	const char **uuids;
	int uuid_count;
	struct string_list solutions, baselines; /* the names of all solutions, and the names of the solutions in
						  * solutions/baseline/ */
	bool others;				 /* an author other than "baseline" has solutions or traces */
	int baseline_traces;			 /* the number of trace files of the author "baseline" */
};

struct dataset_index {
	struct dataset dataset;
	bool linked; /* the definitions are links to files that are in no dataset (dataset/linked_dataset.h) */
	struct checked_definition *items; /* in the order of dataset.definitions, which is the order of paths */
	int count;
	struct arena *arena;
	struct findings *findings;
	struct check_counts *counts;
};

/* Returns the definition with this op_type and name, or NULL. */
struct checked_definition *dataset_index_find(const struct dataset_index *index, const char *op_type, const char *name);

/* Reads a file below the root. If the file cannot be read, adds an error and returns false. */
bool dataset_index_read(const struct dataset_index *index, enum topic topic, const char *path, size_t most, struct buf *out);

#endif
